"""Sketches as aggregates: a bounded summary of all values, merged when slices combine."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.accepted_types import Accepted, is_text, require
from muntin.aggregates.arguments import Rule, must
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Groups, Ints, Order, joined
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ArrayPartial
from muntin.aggregates.partials.ranges import spread
from muntin.aggregates.sketches.items import HASHED, Items, distinct_items, hashed
from muntin.errors import MuntinError, SnapshotError
from muntin.expressions import Expr

__all__ = ["SketchAggregate", "SketchKind", "Sketched", "datasketches", "updated"]

Objects: TypeAlias = npt.NDArray[np.object_]

_Typed: TypeAlias = tuple[pa.DataType, bytes]

_RESULT = Rule('be "estimate" or "bytes" (the sketch)', lambda result: result in ("estimate", "bytes"))


def datasketches(user: str) -> Any:
    """The package Apache DataSketches, imported on first use; `user` names the function that needs it.

    A MuntinError with the command that installs it where it is missing.
    """
    try:
        return importlib.import_module("datasketches")
    except ImportError as error:
        cure = "install it with: pip install 'muntin[sketches]'"
        if sys.version_info >= (3, 14):
            cure = "datasketches 5.2 has no wheels for Python 3.14: use Python 3.13, or build it from source"
        raise MuntinError(f"{user} needs the package datasketches, which is not installed; {cure}") from error


def updated(sketch: Any, *columns: Iterable[Any]) -> Any:
    """The sketch (or the set operation) after one update per row of these columns."""
    deque(map(sketch.update, *columns), maxlen=0)
    return sketch


class SketchKind(ABC):
    """One kind of sketch with its parameters; frozen and hashable.

    The sketches themselves are objects of DataSketches. None is changed once it is part of a state.
    """

    __slots__ = ()

    user: ClassVar[str]
    """The constructor of the aggregate."""

    @property
    def package(self) -> Any:
        """Apache DataSketches."""
        return datasketches(self.user)

    @property
    @abstractmethod
    def type(self) -> Any:
        """The class of the sketches."""

    @abstractmethod
    def new(self) -> Any:
        """An empty sketch that takes updates."""

    def values(self, array: pa.Array) -> Any:
        """The values as `build` takes them; there are no nulls."""
        return hashed(array)

    def items(self, g: Groups, expr: Expr) -> Items:
        """The items of each group that go into its sketch."""
        return distinct_items(g, expr, self.values)

    def build(self, values: Any, counts: list[int]) -> Any:
        """The sketch of these items with these counts."""
        return updated(self.new(), values)

    def merge(self, sketches: Sequence[Any]) -> Any:
        """A new sketch of all items of these."""
        merged = self.new()
        for sketch in sketches:
            merged.merge(sketch)
        return merged

    def dump(self, sketch: Any) -> bytes:
        """The sketch in the binary form that DataSketches reads in every language."""
        return bytes(sketch.serialize())

    def load(self, data: bytes) -> Any:
        """The sketch that `dump` wrote."""
        return self.type.deserialize(data)

    def nbytes(self, sketch: Any) -> int:
        """Memory of a sketch, about."""
        return 64 + 8 * int(sketch.num_retained)

    def settled(self, sketch: Any) -> Any:
        """The sketch in a form that does not depend on the order or the batches of its values."""
        return sketch


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
            out[j] = mine[0] if len(mine) == 1 else self._merged(mine)
        return out

    def _merged(self, sketches: list[Any]) -> Any:
        try:
            return self.kind.merge(sketches)
        except (ValueError, OverflowError, RuntimeError) as error:
            # Sketches that values were added to can always be merged; bytes may hold anything.
            raise SnapshotError(
                f"sketches of the snapshot cannot be merged ({error}); take an older one"
            ) from error

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
    result: Literal["estimate", "bytes"] = field(default="estimate", kw_only=True, metadata=must(_RESULT))

    accepted: ClassVar[Accepted] = HASHED

    @abstractmethod
    def sketch(self, text: bool) -> SketchKind:
        """The kind of sketch that it keeps, of strings or of numbers."""

    @abstractmethod
    def estimate(self, sketch: Any | None) -> Any:
        """The result from a sketch; None is a sketch of nothing."""

    def accept(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The plain type of the input; a DataError for an unsupported one."""
        return require(self, types, self.accepted)

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        """Results as a column; `type_` is that of the input."""
        return pa.array(estimates, pa.int64())

    def lift(self, value: Any, at: Order = ORIGIN) -> _Typed | None:
        if value is None:
            return None
        array = pa.array([value])
        kind = self.sketch(is_text(array.type))
        return array.type, kind.dump(kind.build(kind.values(array), [1]))

    def combine(self, p: _Typed | None, q: _Typed | None) -> Any:
        def merge(p: _Typed, q: _Typed) -> _Typed:
            kind = self.sketch(is_text(p[0]))
            return p[0], kind.dump(kind.merge([kind.load(p[1]), kind.load(q[1])]))

        return joined(p, q, merge)

    def lower(self, p: _Typed | None) -> Any:
        type_ = pa.int64() if p is None else p[0]
        kind = self.sketch(is_text(type_))
        state = np.array([None if p is None else kind.load(p[1])], dtype=np.object_)
        return self._results(state, kind, type_)[0].as_py()

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        type_ = self.accept(types)
        kind = self.sketch(is_text(type_))
        kind.new()  # an error here, not in the middle of a stream, if the package is missing
        return Bound(
            pa.binary() if self.result == "bytes" else self.column_of([], type_).type,
            (Sketched(self.inputs[0], kind),),
            lambda states: self._results(states[0], kind, type_),
        )

    def _results(self, state: Objects, kind: SketchKind, type_: pa.DataType) -> pa.Array:
        sketches = [None if sketch is None else kind.settled(sketch) for sketch in state]
        if self.result == "estimate":
            try:
                return self.column_of([self.estimate(sketch) for sketch in sketches], type_)
            except (ValueError, OverflowError, RuntimeError) as error:
                # A sketch that values were added to can always be estimated; bytes may hold anything.
                raise SnapshotError(
                    f"a sketch of the snapshot cannot be estimated ({error}); take an older one"
                ) from error
        nothing = kind.dump(kind.merge([]))
        return pa.array([nothing if one is None else kind.dump(one) for one in sketches], pa.binary())
