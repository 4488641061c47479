"""theta: a sketch of a set, with union, intersection and difference."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.aggregates.sketches.base import HashedSketch, SketchAggregate, SketchKind, power_of_two
from muntin.aggregates.sketches.package import datasketches

__all__ = ["Theta"]


@dataclass(frozen=True, slots=True)
class ThetaSketch(SketchKind):
    """A `compact_theta_sketch` of at most 2**lg_k hashes: the smallest ones, whatever the order."""

    lg_k: int

    def build(self, values: Any, counts: list[int]) -> Any:
        sketch = datasketches("theta").update_theta_sketch(self.lg_k)
        deque(map(sketch.update, values), maxlen=0)
        # Trimmed, it depends on its values only and not on when it was last made smaller.
        sketch.trim()
        return sketch.compact()

    def merge(self, sketches: Sequence[Any]) -> Any:
        union = datasketches("theta").theta_union(self.lg_k)
        for sketch in sketches:
            union.update(sketch)
        return union.get_result()

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize())

    def load(self, data: bytes) -> Any:
        return datasketches("theta").compact_theta_sketch.deserialize(data)

    def nbytes(self, sketch: Any) -> int:
        return 64 + 8 * int(sketch.num_retained)


@dataclass(frozen=True, slots=True)
class Theta(HashedSketch):
    """The number of distinct values, about, or a sketch of their set; 0 over none.

    Exact up to 2**lg_k distinct values. Beyond, the standard error is 1 / sqrt(2**lg_k - 1): 1.6% at
    lg_k=12, where a sketch takes at most 32 KiB. For the number alone `approx_count_distinct` is
    smaller; with `result="bytes"`, sketches of two windows or of two filtered inputs can be united,
    intersected and subtracted by `muntin.aggregates.sketches`. Values hash as there.

    >>> users = Theta("user")
    >>> users.lower(users.combine(users.lift("ann"), users.combine(users.lift("bob"), users.lift("ann"))))
    2
    """

    lg_k: int = 12

    constructor = "theta"

    def __post_init__(self) -> None:
        SketchAggregate.__post_init__(self)
        power_of_two(self.lg_k, "lg_k", 5, 26)

    def sketch(self, text: bool) -> ThetaSketch:
        return ThetaSketch(self.lg_k)

    def estimate(self, sketch: Any | None) -> int:
        return 0 if sketch is None else round(sketch.get_estimate())

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array(estimates, pa.int64())
