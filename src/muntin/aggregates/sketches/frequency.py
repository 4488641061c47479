"""frequent_items and count_min: how often values occur, about."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import refuse
from muntin.aggregates.sketches.base import HashedSketch, SketchAggregate, SketchKind, power_of_two
from muntin.aggregates.sketches.items import from_stored, stored
from muntin.aggregates.sketches.package import datasketches
from muntin.errors import DataError, QueryError, value_text

__all__ = ["CountMin", "FrequentItems"]


@dataclass(frozen=True, slots=True)
class Frequent(SketchKind):
    """A `frequent_strings_sketch`, or a `frequent_items_sketch` of integers."""

    lg_size: int
    strings: bool

    def values(self, array: pa.Array) -> list[Any]:
        return stored(array)  # to be read back, so in the unit of the column

    def build(self, values: Any, counts: list[int]) -> Any:
        sketch = self.merge([])
        deque(map(sketch.update, values, counts), maxlen=0)
        return sketch

    def merge(self, sketches: Sequence[Any]) -> Any:
        merged = self._class()(self.lg_size)
        for sketch in sketches:
            merged.merge(sketch)
        return merged

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize(*self._serde()))

    def load(self, data: bytes) -> Any:
        return self._class().deserialize(data, *self._serde())

    def nbytes(self, sketch: Any) -> int:
        return int(sketch.get_serialized_size_bytes(*self._serde()))

    def _class(self) -> Any:
        package = datasketches("frequent_items")
        return package.frequent_strings_sketch if self.strings else package.frequent_items_sketch

    def _serde(self) -> tuple[Any, ...]:
        return () if self.strings else (datasketches("frequent_items").PyLongsSerDe(),)


@dataclass(frozen=True, slots=True)
class FrequentItems(HashedSketch):
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

    lg_size: int = 10

    constructor = "frequent_items"
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        SketchAggregate.__post_init__(self)
        power_of_two(self.lg_size, "lg_size", 3, 26)

    def sketch(self, text: bool) -> Frequent:
        return Frequent(self.lg_size, text)

    def estimate(self, sketch: Any | None) -> list[dict[str, Any]]:
        if sketch is None:
            return []
        kind = datasketches("frequent_items").frequent_items_error_type.NO_FALSE_POSITIVES
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

    def build(self, values: Any, counts: list[int]) -> Any:
        sketch = self.merge([])
        deque(map(sketch.update, values, map(float, counts)), maxlen=0)
        return sketch

    def merge(self, sketches: Sequence[Any]) -> Any:
        merged = datasketches("count_min").count_min_sketch(self.hashes, self.buckets)
        for sketch in sketches:
            merged.merge(sketch)
        return merged

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize())

    def load(self, data: bytes) -> Any:
        return datasketches("count_min").count_min_sketch.deserialize(data)

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

    items: Sequence[Any] = ()
    error: float = 0.01
    confidence: float = 0.99

    constructor = "count_min"

    def __post_init__(self) -> None:
        SketchAggregate.__post_init__(self)
        object.__setattr__(self, "items", _checked_items(self.items, self.result))
        for name in ("error", "confidence"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
                raise QueryError(f"{name} must be a number between 0 and 1: got {value_text(value)}")

    def sketch(self, text: bool) -> Counts:
        # DataSketches needs three buckets or more.
        buckets = max(3, math.ceil(math.e / self.error))
        return Counts(math.ceil(-math.log(1 - self.confidence)), buckets)

    def accept(self, types: tuple[pa.DataType, ...]) -> None:
        type_ = arrays.plain_type(types[0])
        text = t.is_string(type_) or t.is_large_string(type_)
        if not text and not t.is_integer(type_):
            raise refuse(self, self.inputs[0], types[0], "whole numbers or strings")
        for item in self.items:
            if isinstance(item, str) != text:
                name = self.inputs[0]
                raise DataError(
                    f'count_min needs items like its column: "{name}" is {type_}; got {value_text(item)}'
                )

    def estimate(self, sketch: Any | None) -> list[dict[str, Any]]:
        counts = [0 if sketch is None else round(sketch.get_estimate(item)) for item in self.items]
        return [{"item": item, "count": count} for item, count in zip(self.items, counts, strict=True)]

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        return _lists(estimates, type_, ("count",))


def _checked_items(items: Sequence[Any], result: str) -> tuple[Any, ...]:
    if not isinstance(items, (list, tuple)) or any(
        isinstance(item, bool) or not isinstance(item, (int, str)) for item in items
    ):
        raise QueryError(
            f'items must be a list of strings or whole numbers, like ["a", "b"]: got {value_text(items)}'
        )
    if any(isinstance(item, int) and not -(2**63) <= item < 2**63 for item in items):
        raise QueryError(f"items must fit into 64 bits: got {value_text(items)}")
    if not items and result == "estimate":
        raise QueryError('count_min needs items=["a", "b"], whose counts it gives, or result="bytes"')
    return tuple(items)


def _lists(estimates: list[Any], type_: pa.DataType, numbers: tuple[str, ...]) -> pa.Array:
    """Lists of structs of an item and some numbers."""
    flat = [one for estimate in estimates for one in estimate]
    offsets = [0]
    for estimate in estimates:
        offsets.append(offsets[-1] + len(estimate))
    columns = {"item": from_stored([one["item"] for one in flat], type_)}
    columns |= {name: pa.array([one[name] for one in flat], pa.int64()) for name in numbers}
    structs = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
