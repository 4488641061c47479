"""approx_quantile: a KLL sketch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Floats
from muntin.aggregates.base import Groups, refuse
from muntin.aggregates.quantiles import fraction
from muntin.aggregates.sketches.base import SketchAggregate, SketchKind
from muntin.aggregates.sketches.items import Items, numbers
from muntin.aggregates.sketches.package import datasketches
from muntin.errors import QueryError, value_text
from muntin.expressions import Expr

__all__ = ["ApproxQuantile"]


@dataclass(frozen=True, slots=True)
class Kll(SketchKind):
    """A `kll_doubles_sketch`."""

    k: int

    def values(self, array: pa.Array) -> Floats:
        return arrays.floats(array)

    def items(self, g: Groups, expr: Expr) -> Items:
        return numbers(g, expr)

    def build(self, values: Any, counts: list[int]) -> Any:
        sketch = self._new()
        sketch.update(values)
        return sketch

    def merge(self, sketches: Sequence[Any]) -> Any:
        merged = self._new()
        for sketch in sketches:
            merged.merge(sketch)
        return merged

    def dump(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize())

    def load(self, data: bytes) -> Any:
        return datasketches("approx_quantile").kll_doubles_sketch.deserialize(data)

    def nbytes(self, sketch: Any) -> int:
        return 64 + 8 * int(sketch.num_retained)

    def _new(self) -> Any:
        return datasketches("approx_quantile").kll_doubles_sketch(self.k)


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

    q: float
    k: int = 200

    constructor = "approx_quantile"

    def __post_init__(self) -> None:
        SketchAggregate.__post_init__(self)
        fraction(self.q, "q")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 8 <= self.k <= 65_535:
            raise QueryError(f"k must be a whole number from 8 to 65535: got {value_text(self.k)}")

    def sketch(self, text: bool) -> Kll:
        return Kll(self.k)

    def accept(self, types: tuple[pa.DataType, ...]) -> None:
        type_ = arrays.plain_type(types[0])
        if not (t.is_integer(type_) or t.is_floating(type_) or arrays.is_decimal(type_)):
            raise refuse(self, self.inputs[0], types[0], "numbers")

    def estimate(self, sketch: Any | None) -> float | None:
        if sketch is None or sketch.is_empty():
            return None
        return float(sketch.get_quantile(self.q, True))

    def column_of(self, estimates: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array(estimates, pa.float64())
