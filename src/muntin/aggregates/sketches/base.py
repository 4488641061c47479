"""Sketches as aggregates: a bounded summary of all values, merged when slices combine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Groups, Ints, Order, joined, refuse
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ArrayPartial
from muntin.aggregates.partials.ranges import spread
from muntin.aggregates.sketches.items import Items, distinct_items, hashed, is_hashed
from muntin.errors import QueryError, SnapshotError, value_text
from muntin.expressions import Expr

__all__ = ["HashedSketch", "Result", "SketchAggregate", "SketchKind", "Sketched", "power_of_two"]

Result: TypeAlias = Literal["estimate", "bytes"]

Objects: TypeAlias = npt.NDArray[np.object_]

_Typed: TypeAlias = tuple[pa.DataType, bytes]


class SketchKind(ABC):
    """One kind of sketch with its parameters; frozen and hashable.

    The sketches themselves are objects of DataSketches. None is changed once it is part of a state.
    """

    __slots__ = ()

    def values(self, array: pa.Array) -> Any:
        """The values as `build` takes them; there are no nulls."""
        return hashed(array)

    def items(self, g: Groups, expr: Expr) -> Items:
        """What of each group goes into its sketch."""
        return distinct_items(g, expr, self.values)

    @abstractmethod
    def build(self, values: Any, counts: list[int]) -> Any:
        """The sketch of these items with these counts."""

    @abstractmethod
    def merge(self, sketches: Sequence[Any]) -> Any:
        """A new sketch of all items of these."""

    @abstractmethod
    def dump(self, sketch: Any) -> bytes:
        """The sketch in the binary form that DataSketches reads in every language."""

    @abstractmethod
    def load(self, data: bytes) -> Any:
        """The sketch that `dump` wrote."""

    @abstractmethod
    def nbytes(self, sketch: Any) -> int:
        """Memory of a sketch, about."""

    def settled(self, sketch: Any) -> Any:
        """The sketch in a form that does not depend on the order or the batches of its values."""
        return sketch

    def empty(self) -> Any:
        """The sketch of no values."""
        return self.merge([])


@dataclass(frozen=True, slots=True)
class Sketched(ArrayPartial):
    """A sketch of all values that are not null. State: an array of sketches, None for rows without values."""

    expr: Expr
    kind: SketchKind

    def lift(self, g: Groups, needs: States) -> Objects:
        items = self.kind.items(g, self.expr)
        out = np.full(g.n, None, dtype=np.object_)
        bounds = items.offsets.tolist()
        for j in np.flatnonzero(np.diff(items.offsets)).tolist():
            row = slice(bounds[j], bounds[j + 1])
            out[j] = self.kind.build(items.values[row], items.counts[row])
        return out

    def reduce(
        self, state: Objects, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> Objects:
        index, which = spread(rows, lo, hi)
        there = np.array([sketch is not None for sketch in state], dtype=np.bool_)[index]
        index, which = index[there], which[there]
        bounds = np.searchsorted(which, np.arange(len(lo) + 1)).tolist()
        sketches = state[index].tolist()
        out = np.full(len(lo), None, dtype=np.object_)
        for j in np.unique(which).tolist():
            mine = sketches[bounds[j] : bounds[j + 1]]
            out[j] = mine[0] if len(mine) == 1 else self.kind.merge(mine)
        return out

    def nbytes(self, state: Objects) -> int:
        return state.nbytes + sum(self.kind.nbytes(sketch) for sketch in state if sketch is not None)

    def to_arrow(self, state: Objects) -> dict[str, pa.Array]:
        dumped = [None if sketch is None else self.kind.dump(sketch) for sketch in state]
        return {"sketch": pa.array(dumped, pa.large_binary())}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Objects:
        out = np.full(len(columns["sketch"]), None, dtype=np.object_)
        for j, data in enumerate(columns["sketch"].to_pylist()):
            out[j] = None if data is None else self._loaded(data)
        return out

    def _loaded(self, data: bytes) -> Any:
        try:
            return self.kind.load(data)
        except Exception as error:  # of the kinds that C++ raises
            raise SnapshotError(f"a sketch of {len(data)} bytes cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class SketchAggregate(Aggregate):
    """Base of the sketches.

    The scalar partial is the type of the values and the sketch as bytes, or None for no value.
    """

    column: ColumnLike
    result: Result = field(default="estimate", kw_only=True)

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        if self.result not in ("estimate", "bytes"):
            raise QueryError(
                f'result must be "estimate" or "bytes" (the sketch): got {value_text(self.result)}'
            )

    @abstractmethod
    def sketch(self, text: bool) -> SketchKind:
        """The kind of sketch that it keeps, of strings or of numbers."""

    @abstractmethod
    def estimate(self, sketch: Any | None) -> Any:
        """The result from a sketch; None is a sketch of nothing."""

    @abstractmethod
    def accept(self, types: tuple[pa.DataType, ...]) -> None:
        """A DataError for a type that makes no sense."""

    @abstractmethod
    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        """Results as a column; `type_` is that of the input."""

    def lift(self, value: Any, at: Order = ORIGIN) -> _Typed | None:
        if value is None:
            return None
        array = pa.array([value])
        kind = self.sketch(_is_text(array.type))
        return array.type, kind.dump(kind.build(kind.values(array), [1]))

    def combine(self, p: _Typed | None, q: _Typed | None) -> Any:
        def merge(p: _Typed, q: _Typed) -> _Typed:
            kind = self.sketch(_is_text(p[0]))
            return p[0], kind.dump(kind.merge([kind.load(p[1]), kind.load(q[1])]))

        return joined(p, q, merge)

    def lower(self, p: _Typed | None) -> Any:
        if p is None:
            kind = self.sketch(False)
            return kind.dump(kind.empty()) if self.result == "bytes" else self.estimate(None)
        kind = self.sketch(_is_text(p[0]))
        sketch = kind.settled(kind.load(p[1]))
        if self.result == "bytes":
            return kind.dump(sketch)
        return self.column_of([self.estimate(sketch)], p[0])[0].as_py()

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        self.accept(types)
        type_ = arrays.plain_type(types[0])
        kind = self.sketch(_is_text(type_))
        kind.empty()  # an error here, not in the middle of a stream, if the package is missing
        partial = Sketched(self.inputs[0], kind)
        if self.result == "bytes":
            return Bound(pa.binary(), (partial,), lambda states: _dumped(states[0], kind))
        return Bound(
            self.column_of([], type_).type,
            (partial,),
            lambda states: self.column_of([self.estimate(one) for one in _settled(states[0], kind)], type_),
        )


@dataclass(frozen=True, slots=True)
class HashedSketch(SketchAggregate):
    """Base of the sketches that hash their values."""

    whole: ClassVar[bool] = False
    """Whether it takes neither floats nor decimals."""

    def accept(self, types: tuple[pa.DataType, ...]) -> None:
        type_ = arrays.plain_type(types[0])
        if not is_hashed(type_, self.whole):
            numbers = "whole numbers" if self.whole else "numbers"
            raise refuse(self, self.inputs[0], types[0], f"{numbers}, times or strings")


def power_of_two(lg: object, name: str, low: int, high: int) -> None:
    """A QueryError if a user gave something else than an exponent in this range."""
    if isinstance(lg, bool) or not isinstance(lg, int) or not low <= lg <= high:
        raise QueryError(
            f"{name} must be a whole number from {low} to {high} (the size is 2**{name}): "
            f"got {value_text(lg)}"
        )


def _is_text(type_: pa.DataType) -> bool:
    return bool(t.is_string(type_) or t.is_large_string(type_))


def _settled(state: Objects, kind: SketchKind) -> list[Any]:
    return [None if sketch is None else kind.settled(sketch) for sketch in state]


def _dumped(state: Objects, kind: SketchKind) -> pa.Array:
    nothing = kind.dump(kind.empty())
    sketches = _settled(state, kind)
    return pa.array([nothing if one is None else kind.dump(one) for one in sketches], pa.binary())
