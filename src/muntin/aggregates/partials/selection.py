"""One tuple chosen per slice, with a payload of any type: first, last, arg_min, arg_max."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import selection_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.extrema import extreme_per_group
from muntin.aggregates.partials.ranges import spread
from muntin.aggregates.partials.records import Record, RecordPartial
from muntin.expressions import Expr

__all__ = ["Choice", "Chosen"]


@dataclass(frozen=True, slots=True)
class Chosen(Record):
    """The chosen tuples: their place in the stream, what they were chosen by, what they carry."""

    time: Ints
    seq: Ints
    """-1 where there is no tuple."""
    keys: Ints | None
    by: pa.Array | None
    payload: pa.Array

    numbers = ("time", "seq", "keys")
    optional = ("keys", "by")

    def at(self, index: Ints) -> Chosen:
        """The rows at these places; none at -1."""
        there = index >= 0
        place = np.where(there, index, 0)
        return Chosen(
            _numbers(self.time, place, there, 0),
            _numbers(self.seq, place, there, -1),
            None if self.keys is None else _numbers(self.keys, place, there, 0),
            None if self.by is None else arrays.take_or_null(self.by, index),
            arrays.take_or_null(self.payload, index),
        )


@dataclass(frozen=True, slots=True)
class Choice(RecordPartial):
    """The tuple with the smallest or largest `by`, and of those the first or the last.

    The partial includes (time, arrival), so it commutes, and slices need no tuples for the order. Nulls in
    `by` are skipped, nulls in the payload only on demand.
    """

    payload: Expr
    by: Expr | None = None
    largest: bool = False
    latest: bool = False
    skip_nulls: bool = False

    record = Chosen

    def lift(self, g: Groups, needs: States) -> Chosen:
        by = None if self.by is None else g.array(self.by)
        keyed = by is not None and arrays.has_keys(by.type)
        tuples = Chosen(
            g.time,
            g.seq,
            g.keys(cast(Expr, self.by)) if keyed else None,
            None if keyed else by,
            g.array(self.payload),
        )
        valid = None if self.by is None else g.valid(self.by)
        if self.skip_nulls:
            valid = _both(valid, g.valid(self.payload))
        return self._choose(tuples, valid, g.ids(), g.n)

    def _choose(self, tuples: Chosen, valid: Bools | None, group: Ints, n: int) -> Chosen:
        if tuples.by is not None:
            # No key in 64 bits: Arrow finds the extreme, and the candidates are those that equal it.
            import pyarrow.compute as pc

            winners = extreme_per_group(tuples.by, group, n, self.largest)
            theirs = arrays.take_or_null(winners, group)
            equal = pc.fill_null(pc.equal(tuples.by, theirs), False)
            valid = _both(valid, np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_))
        place = selection_kernels.choose_scatter(
            tuples.keys, valid, tuples.time, tuples.seq, group, n, self.largest, self.latest
        )
        return tuples.at(place)

    def reduce(self, state: Chosen, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Chosen:
        if state.by is not None:
            index, group = spread(rows, lo, hi)
            spelled = state.at(index)
            return self._choose(spelled, spelled.seq >= 0, group, len(lo))
        return state.at(
            selection_kernels.choose_rows(
                state.keys, state.time, state.seq, rows, lo, hi, self.largest, self.latest
            )
        )

    @property
    def removable(self) -> bool:
        return True

    def without(self, whole: Chosen, part: Chosen, wholes: States, parts: States) -> tuple[Chosen, Bools]:
        # The best of the tuples that leave is the chosen one, or the chosen one stays [scotty §10.3.2].
        return whole, (part.seq != whole.seq) | (part.seq < 0)

    def take(self, state: Chosen, index: Ints) -> Chosen:
        return state.at(index)

    def cut(self, state: Chosen, low: int, high: int) -> Chosen:
        return Chosen(
            state.time[low:high],
            state.seq[low:high],
            None if state.keys is None else state.keys[low:high],
            None if state.by is None else state.by[low:high],
            state.payload[low:high],
        )


def _numbers(values: Ints, place: Ints, there: Bools, absent: int) -> Ints:
    if not len(values):
        return np.full(len(place), absent, dtype=np.int64)
    return np.where(there, values[place], absent)


def _both(p: Bools | None, q: Bools | None) -> Bools | None:
    if p is None or q is None:
        return q if p is None else p
    return p & q
