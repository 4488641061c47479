"""Partials that are Python objects, combined by the user's functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials.lists import ordered_tuples
from muntin.aggregates.partials.ranges import spread
from muntin.encoding import decode, encode
from muntin.errors import UserCodeError
from muntin.expressions import Expr

__all__ = [
    "Folded",
    "Folds",
    "Functions",
    "Objects",
    "decoded",
    "empty",
    "encoded",
    "filled",
    "object_bytes",
    "pylists",
]

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Functions:
    """The user's functions, called so that a failure names the aggregate and the values."""

    name: str
    lift: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any] | None = None
    invert: Callable[[Any, Any], Any] | None = None
    identity: Any = field(default=None, hash=False)

    def each(self, step: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """The results of calling one of the functions with each of these arguments."""
        function = getattr(self, step)
        args: tuple[Any, ...] = ()
        results = []
        try:
            for args in calls:
                results.append(function(*args))
        except Exception as error:
            raise self.failure(step, args, error) from error
        return results

    def fold(self, parts: Sequence[Any] | Objects) -> Any:
        """All parts combined from left to right; there is at least one."""
        combine = self.combine
        p, q = parts[0], None
        try:
            for q in parts[1:]:
                p = combine(p, q)
        except Exception as error:
            raise self.failure("combine", (p, q), error) from error
        return p

    def failure(self, step: str, args: tuple[Any, ...], error: Exception) -> UserCodeError:
        """What to raise when one of the functions raised."""
        shown = ", ".join(f"{arg!r:.80}" for arg in args)
        return UserCodeError(
            f'user-defined aggregate "{self.name}": {step}({shown}) failed: {type(error).__name__}: {error}'
        )


@dataclass(frozen=True, slots=True)
class Folds:
    """Per row the number of tuples and, where there is one, their fold."""

    count: Ints
    value: Objects


@dataclass(frozen=True, slots=True)
class Folded(Partial):
    """The fold of all tuples in any order, for a combine that commutes. Nulls are skipped."""

    inputs: tuple[Expr, ...]
    functions: Functions

    @property
    def invertible(self) -> bool:
        return self.functions.invert is not None

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Folds:
        offsets, index = ordered_tuples(g, self.inputs)
        lifted = self.functions.each("lift", pylists(g, self.inputs, index))
        return self._fold(offsets, lifted)

    def _fold(self, offsets: Ints, parts: list[Any]) -> Folds:
        value = empty(len(offsets) - 1)
        bounds = offsets.tolist()
        for j in np.flatnonzero(np.diff(offsets)).tolist():
            value[j] = self.functions.fold(parts[bounds[j] : bounds[j + 1]])
        return Folds(np.diff(offsets), value)

    def reduce(
        self,
        state: Folds,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Folds:
        index, which = spread(rows, lo, hi)
        there = state.count[index] > 0
        index, which = index[there], which[there]
        offsets = np.searchsorted(which, np.arange(len(lo) + 1)).astype(np.int64)
        found = self._fold(offsets, state.value[index].tolist())
        count = np.zeros(len(lo), dtype=np.int64)
        np.add.at(count, which, state.count[index])
        return Folds(count, found.value)

    def invert(self, whole: Folds, part: Folds) -> Folds:
        count, value = whole.count - part.count, empty(len(whole.count))
        changed = np.flatnonzero((part.count > 0) & (count > 0))
        calls = zip(whole.value[changed], part.value[changed], strict=True)
        for j, found in zip(changed, self.functions.each("invert", calls), strict=True):
            value[j] = found
        same = part.count == 0
        value[same] = whole.value[same]
        return Folds(count, value)

    def concat(self, states: list[Folds]) -> Folds:
        return Folds(
            np.concatenate([s.count for s in states]),
            np.concatenate([s.value for s in states]),
        )

    def take(self, state: Folds, index: Ints) -> Folds:
        return Folds(state.count[index], state.value[index])

    def size(self, state: Folds) -> int:
        return len(state.count)

    def nbytes(self, state: Folds) -> int:
        return state.count.nbytes + object_bytes(state.value)

    def to_arrow(self, state: Folds) -> dict[str, pa.Array]:
        return {"count": pa.array(state.count), "value": encoded(state.value, state.count)}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Folds:
        return Folds(np.array(columns["count"], dtype=np.int64), decoded(columns["value"]))


def pylists(g: Groups, inputs: tuple[Expr, ...], index: Ints) -> Iterable[tuple[Any, ...]]:
    """The values of these tuples, as Python values, one tuple of arguments each."""
    if not inputs:
        return [()] * len(index)
    taken = pa.array(index)
    return zip(*(g.array(expr).take(taken).to_pylist() for expr in inputs), strict=True)


def empty(rows: int) -> Objects:
    """An array of objects, all None."""
    return np.full(rows, None, dtype=np.object_)


def filled(values: list[Any]) -> Objects:
    """An array of these objects; lists among them stay lists."""
    out = empty(len(values))
    for i, value in enumerate(values):
        out[i] = value
    return out


def encoded(values: Objects, count: Ints | None = None) -> pa.Array:
    """Objects as text for a snapshot; null where the count is 0."""
    there = np.ones(len(values), dtype=np.bool_) if count is None else count > 0
    texts = [encode(value) if ok else None for value, ok in zip(values, there, strict=True)]
    return pa.array(texts, pa.large_string())


def decoded(texts: pa.Array) -> Objects:
    """The objects that `encoded` wrote."""
    return filled([None if text is None else decode(text) for text in texts.to_pylist()])


def object_bytes(values: Objects) -> int:
    """Memory of the objects, with what they contain to a depth of a few levels."""
    return values.nbytes + sum(_deep_size(value, 4) for value in values)


def _deep_size(value: Any, depth: int) -> int:
    size = sys.getsizeof(value)
    if depth and isinstance(value, (tuple, list, set, frozenset)):
        size += sum(_deep_size(item, depth - 1) for item in value)
    elif depth and isinstance(value, dict):
        size += sum(_deep_size(k, depth - 1) + _deep_size(v, depth - 1) for k, v in value.items())
    return size
