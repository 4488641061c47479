"""Minimum and maximum: of order keys by compiled loops, of strings, bytes and long decimals by Arrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from muntin.aggregates import arrays, joining
from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import step_codes
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ArrayPartial, ScalarPartial
from muntin.aggregates.partials.ranges import spread
from muntin.expressions import Expr
from muntin.scalars import LARGEST, SMALLEST, Scalars

__all__ = ["ArrowExtremum", "KeyExtremum", "extreme_per_group", "has_arrow_order"]


@dataclass(frozen=True, slots=True)
class KeyExtremum(ScalarPartial):
    """The smallest or largest order key; the identity where there is no value."""

    expr: Expr
    largest: bool

    @property
    def scalars(self) -> Scalars:
        return LARGEST if self.largest else SMALLEST

    @property
    def step_code(self) -> int:
        return step_codes.LARGEST if self.largest else step_codes.SMALLEST

    @property
    def step_input(self) -> tuple[Expr, Callable[[pa.Array], Ints]]:
        return self.expr, lambda column: arrays.order_keys(arrays.plain(column))

    def lift(self, g: Groups, needs: States) -> Ints:
        return self.lifted(g, g.keys(self.expr), g.valid(self.expr))

    @property
    def removable(self) -> bool:
        return True

    def without(self, whole: Ints, part: Ints, wholes: States, parts: States) -> tuple[Ints, Bools]:
        # A value other than the extreme leaves it as it is [scotty §10.3.2].
        return whole, (part < whole if self.largest else part > whole) | (part == self.scalars.identity)


@dataclass(frozen=True, slots=True)
class ArrowExtremum(ArrayPartial):
    """The smallest or largest value of a type whose order needs more than 64 bits.

    State: an Arrow array, null where there is no value. Strings compare by code point, as in Spark.
    """

    expr: Expr
    largest: bool

    def lift(self, g: Groups, needs: States) -> pa.Array:
        return extreme_per_group(g.array(self.expr), g.ids(), g.n, self.largest)

    def reduce(
        self, state: pa.Array, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> pa.Array:
        index, group = spread(rows, lo, hi)
        return extreme_per_group(state.take(pa.array(index)), group, len(lo), self.largest)

    def concat(self, states: list[pa.Array]) -> pa.Array:
        return joining.concat(states)

    def take(self, state: pa.Array, index: Ints) -> pa.Array:
        return state.take(pa.array(index))

    def to_arrow(self, state: pa.Array) -> dict[str, pa.Array]:
        return {"value": state}

    def from_arrow(self, columns: dict[str, pa.Array]) -> pa.Array:
        return columns["value"]


def has_arrow_order(type_: pa.DataType) -> bool:
    """Whether Arrow's grouped minimum and maximum compare the type: strings, bytes, long decimals."""
    return (
        types.is_string(type_)
        or types.is_large_string(type_)
        or types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_fixed_size_binary(type_)
        or arrays.is_decimal(type_)
    )


def extreme_per_group(values: pa.Array, group: Ints, n: int, largest: bool) -> pa.Array:
    """The smallest or largest value of each of n groups; null for a group without one."""
    name = "max" if largest else "min"
    extremes = (
        pa.table({"group": group, "value": values})
        .group_by("group", use_threads=False)
        .aggregate([("value", name)])
        .combine_chunks()
    )
    which = extremes["group"].to_numpy()
    index = np.full(n + 1, -1, dtype=np.int64)  # the last entry is for group -1
    index[which] = np.arange(len(which))
    column = extremes[f"value_{name}"]
    winners = column.chunk(0) if column.num_chunks else pa.array([], values.type)
    return arrays.take_or_null(winners, index[:n])
