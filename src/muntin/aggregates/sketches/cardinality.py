"""approx_count_distinct and theta: the number of distinct values, and a sketch of their set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from muntin.aggregates.arguments import whole_within
from muntin.aggregates.sketches.base import SketchAggregate, SketchKind, updated

__all__ = ["ApproxCountDistinct", "Theta"]


@dataclass(frozen=True, slots=True)
class Hll(SketchKind):
    """An `hll_sketch` with 8 bits for each of its 2**lg_k buckets."""

    lg_k: int

    user = "approx_count_distinct"

    @property
    def type(self) -> Any:
        return self.package.hll_sketch

    def new(self) -> Any:
        return self.type(self.lg_k, self.package.HLL_8)

    def merge(self, sketches: Sequence[Any]) -> Any:
        return updated(self.package.hll_union(self.lg_k), sketches).get_result(self.package.HLL_8)

    def settled(self, sketch: Any) -> Any:
        # A sketch estimates better before its first merge, from the order of its updates. Merged with
        # itself it forgets that order, and nothing else.
        return self.merge([sketch, sketch])

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize_compact())

    def nbytes(self, sketch: Any) -> int:
        return int(sketch.get_updatable_serialization_bytes())


@dataclass(frozen=True, slots=True)
class ThetaSketch(SketchKind):
    """A `compact_theta_sketch` of at most 2**lg_k hashes: the smallest ones, whatever the order."""

    lg_k: int

    user = "theta"

    @property
    def type(self) -> Any:
        return self.package.compact_theta_sketch

    def new(self) -> Any:
        return self.package.update_theta_sketch(self.lg_k)

    def build(self, values: Any, counts: list[int]) -> Any:
        sketch = updated(self.new(), values)
        # Trimmed, it depends on its values only and not on when it was last made smaller.
        sketch.trim()
        return sketch.compact()

    def merge(self, sketches: Sequence[Any]) -> Any:
        return updated(self.package.theta_union(self.lg_k), sketches).get_result()


@dataclass(frozen=True, slots=True)
class _Cardinality(SketchAggregate):
    def estimate(self, sketch: Any | None) -> int:
        return 0 if sketch is None else round(sketch.get_estimate())


@dataclass(frozen=True, slots=True)
class ApproxCountDistinct(_Cardinality):
    """The number of distinct values, about; 0 over none.

    The standard error is 1.04 / sqrt(2**lg_k): 1.6% at lg_k=12, where a sketch takes at most 4 KiB;
    small numbers are practically exact. Equal integers of any width hash equal, strings as UTF-8, as in
    Apache DataSketches for Java, which also leaves out the empty string. `result="bytes"` gives the
    sketch, an `hll_sketch`, which Spark's `hll_sketch_estimate` and `hll_union` read.

    >>> users = ApproxCountDistinct("user")
    >>> users.lower(users.combine(users.lift("ann"), users.combine(users.lift("bob"), users.lift("ann"))))
    2
    """

    lg_k: int = field(default=12, metadata=whole_within(7, 21, "7 to 21 (the size is 2**lg_k)"))

    def sketch(self, text: bool) -> Hll:
        return Hll(self.lg_k)


@dataclass(frozen=True, slots=True)
class Theta(_Cardinality):
    """The number of distinct values, about, or a sketch of their set; 0 over none.

    Exact up to 2**lg_k distinct values. Beyond, the standard error is 1 / sqrt(2**lg_k - 1): 1.6% at
    lg_k=12, where a sketch takes at most 32 KiB. For the number alone `approx_count_distinct` is
    smaller; with `result="bytes"`, sketches of two windows or of two filtered inputs can be united,
    intersected and subtracted by `muntin.aggregates.sketches`. Values hash as there.

    >>> users = Theta("user")
    >>> users.lower(users.combine(users.lift("ann"), users.combine(users.lift("bob"), users.lift("ann"))))
    2
    """

    lg_k: int = field(default=12, metadata=whole_within(5, 26, "5 to 26 (the size is 2**lg_k)"))

    def sketch(self, text: bool) -> ThetaSketch:
        return ThetaSketch(self.lg_k)
