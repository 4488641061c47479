"""Calls with arguments that a function does not take, or without those that it needs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any, ParamSpec, TypeVar

from muntin import foreign_names
from muntin.errors import QueryError, value_text

P = ParamSpec("P")
R = TypeVar("R")

Reason = Callable[[str, str, object], str]
"""Why a function takes no argument of this name and value, and the cure; empty where there is no reason."""


def checked_call(
    reason: Reason | None = None, foreign: Mapping[str, str] = foreign_names.ARGUMENTS
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Answer a call that does not fit the parameters of a function with a QueryError instead of a TypeError.

    >>> @checked_call()
    ... def session(gap):
    ...     return gap
    >>> session(gaps=5)
    Traceback (most recent call last):
    muntin.errors.QueryError: session takes no gaps: got 5; it takes gap. Did you mean "gap"?
    >>> session()
    Traceback (most recent call last):
    muntin.errors.QueryError: session needs gap: write session(gap)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except TypeError:
                error = refusal(function.__name__, function, args, kwargs, reason, foreign)
                if error is None:  # the arguments fit: it comes from inside
                    raise
            raise error

        return called

    return decorate


def path_text(path: object, rule: str) -> str:
    """A path as text; a QueryError that begins with the rule for any other value.

    >>> path_text(None, 'write takes a path, like "out.csv"')
    Traceback (most recent call last):
    muntin.errors.QueryError: write takes a path, like "out.csv": got None
    """
    text = fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(text, str) or not text:
        raise QueryError(f"{rule}: got {value_text(path)}")
    return text


def refusal(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    reason: Reason | None = None,
    foreign: Mapping[str, str] = foreign_names.ARGUMENTS,
) -> QueryError | None:
    """The error for arguments that do not fit a function, which it calls `name`; None if they fit."""
    parameters = inspect.signature(function).parameters
    known = {key: one for key, one in parameters.items() if key != "self"}
    given = args[len(parameters) - len(known) :]
    for key, value in kwargs.items():
        if key not in known:
            takes = f"it takes {', '.join(known) or 'no arguments'}.{foreign_names.hint(key, known, foreign)}"
            cure = (reason(name, key, value) if reason else "") or takes
            shown = f'"{value}"' if isinstance(value, str) else value_text(value)
            return QueryError(f"{name} takes no {key}: got {shown}; {cure}")
    by_place = [
        key for key, one in known.items() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    needed = [
        key for key, one in known.items() if one.default is one.empty and one.kind is not one.VAR_POSITIONAL
    ]
    missing = [key for key in needed if key not in kwargs and key not in by_place[: len(given)]]
    if missing:
        return QueryError(f"{name} needs {' and '.join(missing)}: write {name}({', '.join(needed)})")
    twice = next((key for key in by_place[: len(given)] if key in kwargs), None)
    if twice is not None:
        return QueryError(f"{name} takes one {twice}: got two, by place and by name; leave one out")
    if len(given) > len(by_place) and not any(one.kind is one.VAR_POSITIONAL for one in known.values()):
        named = [key for key in known if key not in by_place]
        others = f"; name the others, as in {named[0]}=..." if named else "; leave the others out"
        places = f"only {', '.join(by_place)}" if by_place else "no argument"
        return QueryError(f"{name} takes {places} without a name: got {len(given)} values{others}")
    return None
