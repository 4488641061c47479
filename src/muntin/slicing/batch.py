"""A batch of tuples inside the operator: keys as ids, times as int64, inputs as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import joining
from muntin.aggregates.groups import in_turn
from muntin.expressions import Expr
from muntin.memory import fresh, rows_at
from muntin.slicing.cutting_kernels import all_equal, once_each
from muntin.slicing.key_kernels import select_keys
from muntin.slicing.lifted_tuples import LiftedTuples
from muntin.slicing.sorting_kernels import merge_sorted, split_sorted, ties_in_turn
from muntin.timeline import INF, TimeExtent
from muntin.timeline.extent_kernels import extent

Column = npt.NDArray[np.int64]


class Extent(NamedTuple):
    """Smallest and largest time of a batch; whether times never go back; whether it has one key."""

    low: int
    high: int
    ordered: bool
    one_key: bool


@dataclass
class Batch:
    """Tuples in order of arrival, or sorted by (key, time, arrival) where a function says so.

    Without `ids`, all have the key 0. Where `arrival` is a number, it is that of the first tuple,
    and the others count up from it. Columns given in this short form are made when they are read.
    Tuples that are a part of a `whole` batch are cut into slices as they would be in that one. What
    `times` would find may be `known`, and so may the number of keys that the ids are `among`.
    """

    ids: Column | None
    time: Column
    arrival: Column | int
    values: dict[Expr, pa.Array]
    whole: Batch | None = None
    known: TimeExtent | None = None
    among: int | None = None
    lifted: LiftedTuples | None = None
    """The partials of single tuples, where tuples are stored and an aggregate has the user's `lift`."""
    _extent: Extent | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def key(self) -> Column:
        """The id of each tuple's key."""
        return np.zeros(len(self), dtype=np.int64) if self.ids is None else self.ids

    @cached_property
    def seq(self) -> Column:
        """The number of each tuple in order of arrival."""
        return in_turn(self.arrival, len(self))

    @cached_property
    def keys(self) -> int:
        """Every id is smaller."""
        if self.ids is None:
            return 1
        return extent(self.ids)[1] + 1 if self.among is None else self.among

    @property
    def one_key(self) -> bool:
        """Whether all tuples have the same key; there is at least one."""
        return self.ids is None or self.extent.one_key

    @property
    def times(self) -> TimeExtent:
        """Smallest and largest time of at least one tuple, and whether times never go back."""
        if self.known is None:
            self.known = extent(self.time)
        return self.known

    @property
    def extent(self) -> Extent:
        """What one look at a batch of at least one tuple tells."""
        if self._extent is None:
            low, high, ordered = self.times
            one_key = self.ids is None or self.among == 1 or all_equal(self.ids)
            self._extent = Extent(low, high, ordered and self._in_turn(), one_key)
        return self._extent

    def _in_turn(self) -> bool:
        """Whether tuples of one time, in order of time, are in order of arrival, too."""
        if isinstance(self.arrival, int):
            return True
        return not ((self.time[1:] == self.time[:-1]) & (self.arrival[1:] < self.arrival[:-1])).any()

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, those of keys and arrival as if they had been made."""
        columns_bytes = 3 * self.time.nbytes
        return columns_bytes + sum(int(v.nbytes) for v in self.values.values())

    def take(self, index: Column | slice) -> Batch:
        """The tuples at these positions; those of a range without a copy."""
        return self._taken(index, self.time[index])

    def _taken(self, index: Column | slice, time: Column) -> Batch:
        seq: Column | int
        if not isinstance(self.arrival, int):
            seq = self.arrival[index]
        elif isinstance(index, slice):
            seq = self.arrival + index.indices(len(self))[0]
        else:
            seq = self.arrival + index
        return Batch(
            None if self.ids is None else self.ids[index],
            time,
            seq,
            {e: values_at(v, index) for e, v in self.values.items()},
            among=self.among,
            lifted=None if self.lifted is None else self.lifted.take(index),
        )

    def with_columns(self, types: Mapping[Expr, pa.DataType]) -> Batch:
        """The same tuples with null in the columns that they lack: no window has read them before.

        A column of another type has been null all the time, and its type was not known.
        """
        values = {e: pa.nulls(len(self), kind) for e, kind in types.items()}
        values |= {e: v for e, v in self.values.items() if e in types and v.type == types[e]}
        return Batch(self.ids, self.time, self.arrival, values)

    def in_order(self, in_turn: bool = False) -> tuple[Batch, Column]:
        """The tuples sorted by (key, time, arrival), and the previous position of each.

        `in_turn`: tuples of one key and time are known to be in order of arrival.
        """
        order, time = self._by_time()
        counted = in_turn or isinstance(self.arrival, int)
        if not counted and not ties_in_turn(order, self.key, self.time, self.seq):
            order, time = np.lexsort((self.seq, self.time, self.key)), None
        return self._taken(order, self.time[order] if time is None else time), order

    def _by_time(self) -> tuple[Column, Column | None]:
        """Where the tuples sorted by key and time stood, ties as they are; and their times, if at hand.

        Key, time and position are packed into one number, which is all that is sorted. Numbers that are
        in order already are not: out of order, most of a stream still is.
        """
        low, high, _ = self.times if len(self) else (0, 0, True)
        keys = 1 if not len(self) or self.one_key else self.keys
        span, bits = high - low + 1, len(self).bit_length()
        if keys * span << bits >= 2**62:
            return np.lexsort((self.time, self.key)), None
        ahead, behind = np.empty((2, len(self) + 1), dtype=np.int64)
        sorted_already, late = split_sorted(
            self.time, self.ids if keys > 1 else None, low, span, bits, ahead, behind
        )
        behind[:late].sort()
        ahead[sorted_already] = behind[late] = INF
        order, place = np.empty((2, len(self)), dtype=np.int64)
        merge_sorted(ahead, behind, bits, order, place)
        return order, place + low if keys == 1 else None


def values_at(column: pa.Array, index: Column | slice) -> pa.Array:
    """The values at these positions."""
    return column[index] if isinstance(index, slice) else joining.taken(column, index)


def share_of(batch: Batch, begin: int, end: int) -> Batch:
    """The tuples of the keys from `begin` to `end`, numbered from 0; sliced as in the whole batch."""
    index = fresh(len(batch) + 1)
    index = index[: select_keys(batch.key, begin, end, index)]
    ids = rows_at(batch.key, index)
    ids -= begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # An arrival number of the batch is that of the share too: only the order of arrivals matters.
    arrival = batch.arrival if isinstance(batch.arrival, int) else batch.arrival[index]
    lifted = None if batch.lifted is None else batch.lifted.take(index)
    return Batch(ids, rows_at(batch.time, index), arrival, values, batch, among=end - begin, lifted=lifted)


def ranges(begin: Column, size: Column) -> Column | slice:
    """The positions of ranges one after the other; of a single one, the range itself."""
    if len(begin) == 1:
        return slice(int(begin[0]), int(begin[0] + size[0]))
    return numbers(begin, size)


def numbers(begin: Column, size: Column) -> Column:
    """The ranges of `size` numbers from each `begin`, concatenated."""
    if len(begin) == 1:
        return np.arange(begin[0], begin[0] + size[0], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    return np.repeat(begin - offsets[:-1], size) + np.arange(offsets[-1], dtype=np.int64)


def distinct(column: Column) -> Column:
    """The distinct values, in order. `np.unique` takes three to ten times as long for up to 10,000 values."""
    ordered = np.sort(column)
    return ordered[: once_each(ordered)]


def concat(batches: list[Batch]) -> Batch:
    """The tuples of several batches one after the other."""
    if len(batches) == 1:
        return batches[0]
    return Batch(
        None if all(b.ids is None for b in batches) else np.concatenate([b.key for b in batches]),
        np.concatenate([b.time for b in batches]),
        np.concatenate([b.seq for b in batches]),
        {e: joining.concat([b.values[e] for b in batches]) for e in batches[0].values},
        lifted=LiftedTuples.concat([b.lifted for b in batches], [len(b) for b in batches]),
    )
