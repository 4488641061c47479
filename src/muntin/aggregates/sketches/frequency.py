"""frequent_items and count_min: how often values occur, about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.accepted_types import Accepted, is_text
from muntin.aggregates.arguments import BETWEEN_0_AND_1, Rule, must, number, whole_within
from muntin.aggregates.base import Aggregate
from muntin.aggregates.sketches.base import SketchAggregate, SketchKind, updated
from muntin.aggregates.sketches.items import from_stored, is_hashed, stored
from muntin.errors import DataError, QueryError, value_text

__all__ = ["CountMin", "FrequentItems"]

_ITEMS = Rule(
    'be a list of strings or whole numbers, like ["a", "b"]',
    lambda items: isinstance(items, (list, tuple)) and all(number(item, int, str) for item in items),
)
_SHORT_ITEMS = Rule(
    "fit into 64 bits",
    lambda items: all(isinstance(item, str) or -(2**63) <= item < 2**63 for item in items),
)


@dataclass(frozen=True, slots=True)
class Frequent(SketchKind):
    """A `frequent_strings_sketch`, or a `frequent_items_sketch` of integers."""

    lg_size: int
    strings: bool

    user = "frequent_items"

    @property
    def type(self) -> Any:
        return self.package.frequent_strings_sketch if self.strings else self.package.frequent_items_sketch

    def new(self) -> Any:
        return self.type(self.lg_size)

    def values(self, array: pa.Array) -> list[Any]:
        return stored(array)  # to be read back, so in the unit of the column

    def build(self, values: Any, counts: list[int]) -> Any:
        return updated(self.new(), values, counts)

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize(*self._serde()))

    def load(self, data: bytes) -> Any:
        return self.type.deserialize(data, *self._serde())

    def nbytes(self, sketch: Any) -> int:
        return int(sketch.get_serialized_size_bytes(*self._serde()))

    def _serde(self) -> tuple[Any, ...]:
        return () if self.strings else (self.package.PyLongsSerDe(),)


@dataclass(frozen=True, slots=True)
class FrequentItems(SketchAggregate):
    """The values that occur most often, about, the most frequent first; the empty list over none.

    A list of structs `item`, `count`, `lower`, `upper`: the true count lies between the bounds, which
    are at most 3.5 / 2**lg_size of all values apart (0.34% at lg_size=10), and are equal while there
    are at most 0.75 * 2**lg_size distinct values. Only values that surely occur more often than that
    come out. Of equally frequent ones the smallest is first. `result="bytes"` gives the sketch, a
    `frequent_strings_sketch` of Apache DataSketches, or for numbers and times a
    `frequent_items_sketch` of 64-bit integers.

    >>> pages = FrequentItems("page")
    >>> both = pages.combine(pages.lift("home"), pages.combine(pages.lift("cart"), pages.lift("home")))
    >>> pages.lower(both)[0]
    {'item': 'home', 'count': 2, 'lower': 2, 'upper': 2}
    """

    lg_size: int = field(default=10, metadata=whole_within(3, 26, "3 to 26 (the size is 2**lg_size)"))

    accepted = Accepted("whole numbers, times or strings", lambda type_: is_hashed(type_, whole=True))

    def sketch(self, text: bool) -> Frequent:
        return Frequent(self.lg_size, text)

    def estimate(self, sketch: Any | None) -> list[dict[str, Any]]:
        if sketch is None:
            return []
        kind = self.sketch(False).package.frequent_items_error_type.NO_FALSE_POSITIVES
        items = sorted(sketch.get_frequent_items(kind), key=lambda item: (-item[1], item[0]))
        return [dict(zip(("item", "count", "lower", "upper"), item, strict=True)) for item in items]

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        if t.is_uint64(type_):  # the sketch has the same 64 bits as signed numbers, in another order
            estimates = [
                sorted(estimate, key=lambda one: (-one["count"], one["item"] % 2**64))
                for estimate in estimates
            ]
        return _lists(estimates, type_, ("count", "lower", "upper"))


@dataclass(frozen=True, slots=True)
class Counts(SketchKind):
    """A `count_min_sketch`."""

    hashes: int
    buckets: int

    user = "count_min"

    @property
    def type(self) -> Any:
        return self.package.count_min_sketch

    def new(self) -> Any:
        return self.type(self.hashes, self.buckets)

    def build(self, values: Any, counts: list[int]) -> Any:
        return updated(self.new(), values, map(float, counts))

    def nbytes(self, sketch: Any) -> int:
        return 64 + 8 * self.hashes * self.buckets


@dataclass(frozen=True, slots=True)
class CountMin(SketchAggregate):
    """How often each of `items` occurs, about, as a list of structs `item`, `count`; never too few.

    A count is too large by at most `error` times the number of all values, with that `confidence`.
    A sketch takes 8 bytes times e / error times -ln(1 - confidence): 11 KiB by default. The empty
    string is left out. `result="bytes"`, which needs no items, gives the sketch, a
    `count_min_sketch` of Apache DataSketches, to be asked for any item.

    >>> pages = CountMin("page", ["home", "help"])
    >>> pages.lower(pages.combine(pages.lift("home"), pages.lift("home")))
    [{'item': 'home', 'count': 2}, {'item': 'help', 'count': 0}]
    """

    items: Sequence[Any] = field(default=(), metadata=must(_ITEMS, _SHORT_ITEMS))
    error: float = field(default=0.01, metadata=must(BETWEEN_0_AND_1))
    confidence: float = field(default=0.99, metadata=must(BETWEEN_0_AND_1))

    accepted = Accepted("whole numbers or strings", lambda type_: is_text(type_) or t.is_integer(type_))

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        object.__setattr__(self, "items", tuple(self.items))
        if not self.items and self.result == "estimate":
            raise QueryError('count_min needs items=["a", "b"], whose counts it gives, or result="bytes"')

    def sketch(self, text: bool) -> Counts:
        # DataSketches needs three buckets or more.
        buckets = max(3, math.ceil(math.e / self.error))
        return Counts(math.ceil(-math.log(1 - self.confidence)), buckets)

    def accept(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        type_ = SketchAggregate.accept(self, types)
        for item in self.items:
            if isinstance(item, str) != is_text(type_):
                raise DataError(
                    f'count_min needs items like its column: "{self.column}" is {type_}; '
                    f"got {value_text(item)}"
                )
        return type_

    def estimate(self, sketch: Any | None) -> list[dict[str, Any]]:
        counts = [0 if sketch is None else round(sketch.get_estimate(item)) for item in self.items]
        return [{"item": item, "count": count} for item, count in zip(self.items, counts, strict=True)]

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        return _lists(estimates, type_, ("count",))


def _lists(estimates: list[Any], type_: pa.DataType, numbers: tuple[str, ...]) -> pa.Array:
    """Lists of structs of an item and some numbers."""
    flat = [one for estimate in estimates for one in estimate]
    offsets = [0, *accumulate(map(len, estimates))]
    columns = {"item": from_stored([one["item"] for one in flat], type_)}
    columns |= {name: pa.array([one[name] for one in flat], pa.int64()) for name in numbers}
    structs = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
