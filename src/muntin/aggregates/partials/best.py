"""A bounded number of tuples chosen per slice, with a payload of any type: nth and top_k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays, joining
from muntin.aggregates.base import Groups, Ints, Partial
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.codes import order_codes
from muntin.aggregates.partials.lists import stacked
from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.partials import best_kernels, list_kernels
else:
    best_kernels = DeferredImport("muntin.aggregates.partials.best_kernels")
    list_kernels = DeferredImport("muntin.aggregates.partials.list_kernels")

__all__ = ["Best", "BestItems"]

_PARTS = ("time", "seq", "by", "payload")


@dataclass(frozen=True, slots=True)
class BestItems:
    """Row j holds the items `offsets[j]:offsets[j + 1]`, the best one first."""

    offsets: Ints
    time: Ints
    seq: Ints
    by: pa.Array | None
    payload: pa.Array

    def at(self, offsets: Ints, index: Ints) -> BestItems:
        """Rows of the items at these places."""
        place = pa.array(index)
        payload = self.payload.take(place)
        by = self.by
        if by is not None:
            by = payload if by is self.payload else by.take(place)
        return BestItems(offsets, self.time[index], self.seq[index], by, payload)


@dataclass(frozen=True, slots=True)
class Best(Partial):
    """The k tuples with the largest `by`, of equal ones the first; without `by`, the k newest ones.

    It carries (time, arrival), so it commutes, and no other tuple needs to be kept. Nulls in `by`
    are skipped, nulls in the payload only on demand.
    """

    payload: Expr
    k: int
    by: Expr | None = None
    skip_nulls: bool = False

    def lift(self, g: Groups, needs: States) -> BestItems:
        wanted = ((self.by,) if self.by is not None else ()) + ((self.payload,) if self.skip_nulls else ())
        offsets, index = list_kernels.arrange(g.ids(), g.valid_in_all(wanted), g.n)
        by = None if self.by is None else g.array(self.by)
        return self._best(BestItems(offsets, g.time, g.seq, by, g.array(self.payload)), offsets, index)

    def _best(self, items: BestItems, offsets: Ints, index: Ints) -> BestItems:
        keys = None if items.by is None else order_codes(items.by)
        newest = self.by is None
        return items.at(
            *best_kernels.best_of_rows(offsets, index, keys, items.time, items.seq, self.k, True, newest)
        )

    def reduce(
        self, state: BestItems, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> BestItems:
        offsets, index = list_kernels.gather(state.offsets, rows, lo, hi)
        return self._best(state, offsets, index)

    def concat(self, states: list[BestItems]) -> BestItems:
        payload = joining.concat([s.payload for s in states])
        by = None
        if self.by is not None:
            by = payload if self.by == self.payload else joining.concat([s.by for s in states])
        return BestItems(
            stacked([s.offsets for s in states]),
            np.concatenate([s.time for s in states]),
            np.concatenate([s.seq for s in states]),
            by,
            payload,
        )

    def take(self, state: BestItems, index: Ints) -> BestItems:
        return state.at(*list_kernels.gather(state.offsets, None, index, index + 1))

    def cut(self, state: BestItems, low: int, high: int) -> BestItems:
        offsets = state.offsets[low : high + 1]
        items = slice(offsets[0], offsets[-1])
        by = None if state.by is None else state.by[items]
        return BestItems(offsets - offsets[0], state.time[items], state.seq[items], by, state.payload[items])

    def size(self, state: BestItems) -> int:
        return len(state.offsets) - 1

    def nbytes(self, state: BestItems) -> int:
        return state.offsets.nbytes + sum(part.nbytes for part in _parts(state).values())

    def to_arrow(self, state: BestItems) -> dict[str, pa.Array]:
        return {name: arrays.to_lists(state.offsets, part) for name, part in _parts(state).items()}

    def from_arrow(self, columns: dict[str, pa.Array]) -> BestItems:
        names = [name for name in _PARTS if name in columns]
        offsets, items = arrays.read_lists(columns, *names)
        parts = dict(zip(names, items, strict=True))
        time, seq = arrays.read_numbers(parts["time"]), arrays.read_numbers(parts["seq"])
        return BestItems(offsets, time, seq, parts.get("by"), parts["payload"])


def _parts(state: BestItems) -> dict[str, Ints | pa.Array]:
    parts = {name: getattr(state, name) for name in _PARTS}
    return {name: cast("Ints | pa.Array", part) for name, part in parts.items() if part is not None}
