"""Calls of a user's functions, with errors that name the failed call, and detection of changed arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muntin.errors import UserCodeError, cause_text, value_text

__all__ = ["Failed", "Functions", "copied", "unchanged"]

_FIRST, _THEN, _CALLS = 32, 256, 8
"""Watched folds: the first 32, then every 256th; of each the first 8 calls."""

_REFUSED = 'repair it, or choose bad="skip" or bad="route"'
_FAILED = 'repair the function, or choose on_error="skip", which gives null'


@dataclass(frozen=True, slots=True)
class Failed:
    """The partial aggregate of a `combine` that failed; combined with any other it stays as it is."""

    reason: str


@dataclass(slots=True)
class _Watch:
    """Decides which folds are watched: watching copies the arguments, so it is done for some only."""

    turns: int = 0

    def is_sampled(self) -> bool:
        self.turns += 1
        return self.turns <= _FIRST or self.turns % _THEN == 0


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of a user's aggregate, and its name for messages.

    Windows share the partial aggregates of their slices. A function that changed its argument would
    change the results of other windows, so that is an error.
    """

    name: str
    lift: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any] | None = None
    invert: Callable[[Any, Any], Any] | None = None
    identity: Any = field(default=None, hash=False)
    watch: _Watch = field(default_factory=_Watch, compare=False, repr=False)
    absorbing: bool = field(default=False, compare=False)
    """Whether a `combine` that fails gives a `Failed`, so that only the windows that contain it fail."""

    def each(self, step: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """The results of calling one of the functions with each of these arguments."""
        function = getattr(self, step)
        watched = _CALLS if step != "lift" and self.watch.is_sampled() else 0
        args: tuple[Any, ...] = ()
        results: list[Any] = []
        try:
            for args in calls:
                if len(results) < watched:
                    results.append(self._watched(step, args))
                else:
                    results.append(function(*args))
        except UserCodeError as error:
            error.part = len(results)
            raise
        except Exception as error:
            raise self.failure(step, args, error, len(results)) from error
        return results

    def fold(self, partials: Sequence[Any]) -> Any:
        """All partial aggregates, at least one, combined from left to right."""
        if self.absorbing:
            failed = next((partial for partial in partials if type(partial) is Failed), None)
            if failed is not None:
                return failed
        combine = self.combine
        watched = _CALLS if self.watch.is_sampled() else 0
        p = partials[0]
        k = 0
        try:
            for k in range(1, len(partials)):
                p = self._watched("combine", (p, partials[k])) if k <= watched else combine(p, partials[k])
        except UserCodeError as error:
            error.part = k
            raise
        except Exception as error:
            failure = self.failure("combine", (p, partials[k]), error, k)
            if self.absorbing:
                return Failed(str(failure))
            raise failure from error
        return p

    def failure(self, step: str, args: tuple[Any, ...], error: Exception, part: int) -> UserCodeError:
        """The exception for a function that raised."""
        failed = f"{self._call(step, args)} failed: {cause_text(error)}"
        failure = UserCodeError(f'user-defined aggregate "{self.name}": {failed}')
        failure.part, failure.cure = part, _REFUSED if step == "lift" else _FAILED
        return failure

    def _call(self, step: str, args: tuple[Any, ...]) -> str:
        return f"{step}({', '.join(value_text(arg, 80) for arg in args)})"

    def _watched(self, step: str, args: tuple[Any, ...]) -> Any:
        before = [copied(arg) for arg in args]
        result = getattr(self, step)(*args)
        if all(map(unchanged, before, args)):
            return result
        called = self._call(step, tuple(before))
        raise UserCodeError(
            f'user-defined aggregate "{self.name}": {called} changed its argument, which other windows '
            f"share: return a new value and leave {'both' if len(args) > 1 else 'it'} as given"
        )


_ATOMS = (bool, int, float, complex, str, bytes, type(None))


def copied(value: Any) -> Any:
    """A copy to compare with later; the value itself if it cannot change or cannot be compared."""
    own: Any = type(value)
    if isinstance(value, _ATOMS) or own.__eq__ is object.__eq__:
        return value
    try:
        return copy.deepcopy(value)
    except (TypeError, ValueError, AttributeError, RecursionError):
        return value


def unchanged(before: Any, after: Any) -> bool:
    """Whether a value equals the copy made of it; true where the two cannot be compared."""
    if before is after:
        return True
    if isinstance(after, np.ndarray):
        return bool(np.array_equal(before, after, equal_nan=after.dtype.kind in "fc"))
    try:
        return bool(before == after)
    except (TypeError, ValueError):  # arrays inside of a list have no single answer
        return True
