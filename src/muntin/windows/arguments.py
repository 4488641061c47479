"""Arguments that a constructor does not take, and what the user may have meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from muntin.errors import QueryError, nearest
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

# Words of other systems.
_ALSO_CALLED = {
    "size": "length",
    "duration": "length",
    "width": "length",
    "slide": "every",
    "hop": "every",
    "period": "every",
    "timeout": "gap",
    "timezone": "tz",
    "zone": "tz",
}


def constructor(make: Callable[P, W]) -> Callable[P, W]:
    """Refuse arguments that a constructor does not take with a reason and a cure.

    >>> @constructor
    ... def session(gap):
    ...     return gap
    >>> session(5, emit_partial=True)
    Traceback (most recent call last):
    muntin.errors.QueryError: session takes no emit_partial: got True; only count windows wait to be full
    >>> session(gaps=5)
    Traceback (most recent call last):
    muntin.errors.QueryError: session takes no gaps: got 5; it takes gap. Did you mean "gap"?
    """
    known = inspect.signature(make).parameters

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> W:
        for name, value in kwargs.items():
            if name not in known:
                cure = _cure(make.__name__, name, value, known)
                raise QueryError(f"{make.__name__} takes no {name}: got {shown(value)}; {cure}")
        return make(*args, **kwargs)

    return made


def _cure(window: str, name: str, value: object, known: Iterable[str]) -> str:
    if window == "tumbling" and _ALSO_CALLED.get(name, name) == "every":
        return f"did you mean sliding(length, every={shown(value)})?"
    if name in _REASONS:
        return _REASONS[name]
    meant = _ALSO_CALLED.get(name, name)
    hint = f' Did you mean "{meant}"?' if meant in known else nearest(name, known)
    return f"it takes {', '.join(known)}.{hint}"
