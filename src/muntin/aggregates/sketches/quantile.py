"""approx_quantile: a KLL sketch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import NUMBERS
from muntin.aggregates.arguments import FRACTION, must, whole_within
from muntin.aggregates.arrays import Floats
from muntin.aggregates.base import Groups
from muntin.aggregates.sketches.base import SketchAggregate, SketchKind
from muntin.aggregates.sketches.items import Items, numbers
from muntin.expressions import Expr

__all__ = ["ApproxQuantile"]


@dataclass(frozen=True, slots=True)
class Kll(SketchKind):
    """A `kll_doubles_sketch`."""

    k: int

    user = "approx_quantile"

    @property
    def type(self) -> Any:
        return self.package.kll_doubles_sketch

    def new(self) -> Any:
        return self.type(self.k)

    def values(self, array: pa.Array) -> Floats:
        return arrays.floats(array)

    def items(self, g: Groups, expr: Expr) -> Items:
        return numbers(g, expr)

    def build(self, values: Any, counts: list[int]) -> Any:
        sketch = self.new()
        sketch.update(values)
        return sketch


@dataclass(frozen=True, slots=True)
class ApproxQuantile(SketchAggregate):
    """A value of the window below which the fraction `q` of the values lies, about; null over none.

    With fewer than `k` values it is exact: the smallest value such that at least the fraction `q`
    of the values is not larger. With more its rank is off by at most 1.33% of the values at k=200,
    with 99% confidence, and about in proportion to 1/k otherwise. The sketch drops values at random, so
    results of two runs may differ by this error. NaN is ignored.

    All quantiles of a column with the same `k` share one sketch. `result="bytes"` gives the sketch,
    a `kll_doubles_sketch` of Apache DataSketches.

    >>> p95 = ApproxQuantile("latency", 0.95)
    >>> p95.lower(p95.combine(p95.lift(1.0), p95.lift(2.0)))
    2.0
    """

    q: float = field(metadata=must(FRACTION))
    k: int = field(default=200, metadata=whole_within(8, 65_535, "8 to 65535"))

    accepted = NUMBERS

    def sketch(self, text: bool) -> Kll:
        return Kll(self.k)

    def estimate(self, sketch: Any | None) -> float | None:
        if sketch is None or sketch.is_empty():
            return None
        return float(sketch.get_quantile(self.q, True))

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array(estimates, pa.float64())
