"""The slice table: the slices of all keys as sorted columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from muntin.slicing.blaming import about_rows
from muntin.slicing.partials import PartialSet, States

Column = npt.NDArray[np.int64]
META = ("key", "first", "last", "n", "fresh", "mark", "rank", "level")


@dataclass(slots=True)
class SliceTable:
    """Rows are slices, sorted by (key, first); each column is an array, each partial a state.

    first, last: time of the first and last tuple in the slice. n: its tuples; fresh: how many of
    them came since the last emission. mark: a sum of hashes of its tuples, equal for equal
    contents. rank: number of ranked tuples of the key before it, or -1 where tuples came too late
    to be ranked. level: how many session classes, smallest gap first, it takes no part in.
    """

    key: Column
    first: Column
    last: Column
    n: Column
    fresh: Column
    mark: Column
    rank: Column
    level: Column
    states: States
    _offsets: Column | None = field(default=None, repr=False)

    @classmethod
    def empty(cls, partials: PartialSet) -> SliceTable:
        """A table without rows."""
        return cls(**{name: np.zeros(0, dtype=np.int64) for name in META}, states=partials.empty())

    def __len__(self) -> int:
        return len(self.key)

    @property
    def columns(self) -> dict[str, Column]:
        """The metadata columns by name."""
        return {name: getattr(self, name) for name in META}

    @property
    def nbytes(self) -> int:
        """Bytes of the metadata columns."""
        return sum(int(c.nbytes) for c in self.columns.values())

    def offsets(self, keys: int) -> Column:
        """Rows of key k are offsets[k]:offsets[k+1]."""
        if self._offsets is None or len(self._offsets) != keys + 1:
            from muntin.slicing.table_kernels import key_offsets

            self._offsets = key_offsets(self.key, keys)
        return self._offsets

    def take(self, index: Column, partials: PartialSet) -> SliceTable:
        """The rows at these positions."""
        meta = {name: column[index] for name, column in self.columns.items()}
        return SliceTable(**meta, states=partials.take(self.states, index))

    def holding(self, key: Column, time: Column) -> Column:
        """For each tuple the row that holds it; each lies in one."""
        from muntin.slicing.table_kernels import merge_order

        order = np.lexsort((time, key))
        both = merge_order(self.key, self.first, key[order], time[order])
        is_row = both < len(self)
        found = np.empty(len(key), dtype=np.int64)
        found[order] = (np.cumsum(is_row) - 1)[~is_row]
        return found

    def settle(self) -> None:
        """Nothing is fresh any more."""
        self.fresh = np.zeros(len(self), dtype=np.int64)

    def renumbered(self, new_ids: Column) -> SliceTable:
        """The same rows after the keys got new ids (in the same order)."""
        return replace(self, key=new_ids[self.key], _offsets=None)


def concat(tables: list[SliceTable], partials: PartialSet) -> SliceTable:
    """The rows of several tables one after the other."""
    meta = {name: np.concatenate([getattr(t, name) for t in tables]) for name in META}
    return SliceTable(**meta, states=partials.concat([t.states for t in tables]))


def combine_runs(table: SliceTable, rows: Column, lo: Column, hi: Column, partials: PartialSet) -> SliceTable:
    """One row for each run `rows[lo:hi]`, none of them empty."""
    from muntin.slicing.table_kernels import reduce_rows

    head = rows[lo]
    with about_rows(lambda j: table.key[head[j]]):
        states = partials.reduce(table.states, rows, lo, hi)
    out = {name: np.empty(len(lo), dtype=np.int64) for name in ("first", "last", "n", "fresh", "mark")}
    reduce_rows(rows, lo, hi, table.first, table.last, table.n, table.fresh, table.mark, *out.values())
    return SliceTable(
        key=table.key[head],
        rank=table.rank[head],
        level=table.level[head],
        states=states,
        **out,
    )


def merge(
    table: SliceTable, new: SliceTable, edges: Column, gap: int, partials: PartialSet
) -> tuple[SliceTable, int]:
    """Merge new rows into the table; returns it with the number of combines that this took.

    Rows of one slice combine (update), rows whose session gap closed fuse (merge), and a row in a
    gap stays a row of its own: the paper's split, without recomputing anything. [scotty §6.2]
    """
    from muntin.slicing.table_kernels import fuse_runs, merge_order

    if not len(new):
        return table, 0
    if not len(table) and len(new) == 1:
        return new, 0
    keep = _untouched(table, new)
    head, tail = _split(table, keep, partials)
    both = concat([tail, new], partials) if len(tail) else new
    rows = merge_order(tail.key, tail.first, new.key, new.first)
    lo = np.empty(len(rows), dtype=np.int64)
    hi = np.empty(len(rows), dtype=np.int64)
    count = fuse_runs(
        rows, len(tail), both.key, both.first, both.last, both.level, both.rank, edges, gap, lo, hi
    )
    merged = combine_runs(both, rows, lo[:count], hi[:count], partials)
    combines = len(rows) - count
    return (concat([head, merged], partials) if len(head) else merged), combines


def _untouched(table: SliceTable, new: SliceTable) -> int:
    """How many rows at the front lie before all new ones (and are no neighbour of the first)."""
    if not len(table):
        return 0
    key = int(new.key[0])
    low = int(np.searchsorted(table.key, key))
    high = int(np.searchsorted(table.key, key, side="right"))
    return max(0, low + int(np.searchsorted(table.first[low:high], new.first[0])) - 1)


def _split(table: SliceTable, at: int, partials: PartialSet) -> tuple[SliceTable, SliceTable]:
    if at == 0:
        return table.take(np.zeros(0, dtype=np.int64), partials), table
    index = np.arange(len(table), dtype=np.int64)
    return table.take(index[:at], partials), table.take(index[at:], partials)
