"""Arguments that a constructor of windows does not take, and what the user may have meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from muntin.call_errors import checked_call
from muntin.foreign_names import ARGUMENTS, plain
from muntin.windows.validation import shown

P = ParamSpec("P")
W = TypeVar("W")

# Why an argument of some windows makes no sense with the others.
_REASONS = {
    "emit_empty": "only tumbling, sliding, cumulate, calendar, fixed_band and landmark windows on time "
    "lie somewhere when they are empty",
    "emit_partial": "only count windows wait to be full",
    "measure": "tumbling, sliding, cumulate, session, punctuation, threshold, delta, boundary and until "
    "take one",
    "offset": "tumbling, sliding, cumulate, calendar and last lie on a grid that can be moved",
    "max_length": "only sessions have a greatest length",
}


def constructor(make: Callable[P, W]) -> Callable[P, W]:
    """Refuse arguments that a constructor does not take with a reason and a cure.

    >>> @constructor
    ... def session(gap):
    ...     return gap
    >>> session(5, emit_partial=True)
    Traceback (most recent call last):
    muntin.errors.QueryError: session takes no emit_partial: got True; only count windows wait to be full
    """
    return checked_call(_reason)(make)


def _reason(window: str, name: str, value: object) -> str:
    if window == "tumbling" and (name == "every" or plain(name) in ARGUMENTS["every"].split()):
        return f"did you mean sliding(length, every={shown(value)})?"
    return _REASONS.get(name, "")
