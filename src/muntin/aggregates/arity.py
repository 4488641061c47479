"""The number of values that the functions of a user-defined aggregate take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from muntin.errors import QueryError

__all__ = ["check_arity"]

_TAKES = {
    "combine": (("p", "q"), "two partial aggregates"),
    "lower": (("p",), "one partial aggregate"),
    "invert": (("whole", "part"), "two partial aggregates"),
}
"""The names of the arguments, for the cure, and what they are."""


def check_arity(role: str, function: Callable[..., Any], columns: Sequence[object]) -> None:
    """A QueryError where the function cannot be called with what the role gives it.

    >>> check_arity("lift", lambda x, y: x, ["price"])
    Traceback (most recent call last):
    muntin.errors.QueryError: lift must take one value per column, 1: got a function of (x, y); write \
lift=lambda price: ..., or name more columns
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some built-in functions
        return
    if role == "lift":
        rule = f"one value per column, {len(columns)}"
        names = [str(c) if str(c).isidentifier() else f"x{i}" for i, c in enumerate(columns, 1)]
        more = ", or name more columns" if len(signature.parameters) > len(columns) else ""
    else:
        (names, rule), more = (list(_TAKES[role][0]), _TAKES[role][1]), ""
    try:
        signature.bind(*names)
    except TypeError:
        given, cure = ", ".join(signature.parameters), f"{role}=lambda {', '.join(names)}: ..."
        raise QueryError(
            f"{role} must take {rule}: got a function of ({given}); write {cure}{more}"
        ) from None
