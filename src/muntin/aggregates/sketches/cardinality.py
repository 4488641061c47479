"""approx_count_distinct: a HyperLogLog sketch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.aggregates.sketches.base import HashedSketch, SketchAggregate, SketchKind, power_of_two
from muntin.aggregates.sketches.package import datasketches

__all__ = ["ApproxCountDistinct"]

_SMALLEST, _LARGEST = 7, 21


@dataclass(frozen=True, slots=True)
class Hll(SketchKind):
    """An `hll_sketch` with 8 bits for each of its 2**lg_k buckets."""

    lg_k: int

    def build(self, values: Any, counts: list[int]) -> Any:
        package = datasketches("approx_count_distinct")
        sketch = package.hll_sketch(self.lg_k, package.HLL_8)
        deque(map(sketch.update, values), maxlen=0)
        return sketch

    def merge(self, sketches: Sequence[Any]) -> Any:
        package = datasketches("approx_count_distinct")
        union = package.hll_union(self.lg_k)
        for sketch in sketches:
            union.update(sketch)
        return union.get_result(package.HLL_8)

    def settled(self, sketch: Any) -> Any:
        # A sketch estimates better before its first merge, from the order of its updates. Merged with
        # itself it forgets that order, and nothing else.
        return self.merge([sketch, sketch])

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize_compact())

    def load(self, data: bytes) -> Any:
        return datasketches("approx_count_distinct").hll_sketch.deserialize(data)

    def nbytes(self, sketch: Any) -> int:
        return int(sketch.get_updatable_serialization_bytes())


@dataclass(frozen=True, slots=True)
class ApproxCountDistinct(HashedSketch):
    """The number of distinct values, about; 0 over none.

    The standard error is 1.04 / sqrt(2**lg_k): 1.6% at lg_k=12, where a sketch takes at most 4 KiB;
    small numbers are practically exact. Equal integers of any width hash equal, strings as UTF-8, as in
    Apache DataSketches for Java, which also leaves out the empty string. `result="bytes"` gives the
    sketch, an `hll_sketch`, which Spark's `hll_sketch_estimate` and `hll_union` read.

    >>> users = ApproxCountDistinct("user")
    >>> users.lower(users.combine(users.lift("ann"), users.combine(users.lift("bob"), users.lift("ann"))))
    2
    """

    lg_k: int = 12

    constructor = "approx_count_distinct"

    def __post_init__(self) -> None:
        SketchAggregate.__post_init__(self)
        power_of_two(self.lg_k, "lg_k", _SMALLEST, _LARGEST)

    def sketch(self, text: bool) -> Hll:
        return Hll(self.lg_k)

    def estimate(self, sketch: Any | None) -> int:
        return 0 if sketch is None else round(sketch.get_estimate())

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array(estimates, pa.int64())
