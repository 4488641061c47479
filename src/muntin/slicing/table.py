"""The slice table: the slices of all keys as sorted columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from muntin.errors import PlacedError
from muntin.memory import rows_at
from muntin.slicing.blaming import blame_row
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.table_kernels import (
    key_offsets,
    merge_order,
    merge_rows,
    reduce_rows,
    undisturbed,
    untouched,
)

Column = npt.NDArray[np.int64]
FIXED = ("key", "first", "last", "n", "mark", "rank")
COLUMNS = (*FIXED, "fresh", "level")
_FIXED, _COLUMNS = len(FIXED), len(COLUMNS)

_SHARE = 4
"""Where fewer than one in so many rows stay as they are, it is quicker to look at all."""
_FEW = 256
"""So many rows of numbers take less time to look at than to join with others."""


@dataclass(slots=True)
class SliceTable:
    """Rows are slices, sorted by (key, first); each column is an array, each partial a state.

    first, last: time of the first and last tuple in the slice. n: its tuples; fresh: how many of
    them came since the last emission. mark: a sum of hashes of its tuples, equal for equal
    contents. rank: number of ranked tuples of the key before it, or -1 where tuples came too late
    to be ranked. level: how many session classes, smallest gap first, it takes no part in.

    Most columns are the rows of one matrix, `fixed`: taking or joining them is then one operation.
    Those two that are replaced while the slices stay the same stand apart.
    """

    fixed: Column
    fresh: Column
    level: Column
    states: States
    key: Column = field(init=False)
    first: Column = field(init=False)
    last: Column = field(init=False)
    n: Column = field(init=False)
    mark: Column = field(init=False)
    rank: Column = field(init=False)
    _offsets: Column | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.key, self.first, self.last, self.n, self.mark, self.rank = self.fixed

    @classmethod
    def empty(cls, partials: PartialSet) -> SliceTable:
        """A table without rows."""
        return cls.of({name: np.zeros(0, dtype=np.int64) for name in COLUMNS}, partials.empty())

    @classmethod
    def of(cls, columns: Mapping[str, Column], states: States) -> SliceTable:
        """A table of these columns."""
        fixed = np.empty((len(FIXED), len(columns["key"])), dtype=np.int64)
        for row, name in enumerate(FIXED):
            fixed[row] = columns[name]
        return cls(fixed, columns["fresh"], columns["level"], states)

    def __len__(self) -> int:
        return len(self.fresh)

    @property
    def columns(self) -> dict[str, Column]:
        """All columns but the partials by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def nbytes(self) -> int:
        """Bytes of all columns but the partials."""
        return int(self.fixed.nbytes + self.fresh.nbytes + self.level.nbytes)

    def offsets(self, keys: int) -> Column:
        """Rows of key k are offsets[k]:offsets[k+1]."""
        if self._offsets is None or len(self._offsets) != keys + 1:
            one = keys == 1
            self._offsets = np.array((0, len(self.key))) if one else key_offsets(self.key, keys)
        return self._offsets

    def take(self, index: Column, partials: PartialSet) -> SliceTable:
        """The rows at these positions."""
        return SliceTable(
            self.fixed.take(index, axis=1),
            rows_at(self.fresh, index),
            rows_at(self.level, index),
            partials.take(self.states, index),
        )

    def changed(self, **columns: Column) -> SliceTable:
        """The same rows with other values in some columns."""
        return SliceTable.of(self.columns | columns, self.states)

    def holding(self, key: Column, time: Column) -> Column:
        """For each tuple the row that holds it; each lies in one."""
        order = np.lexsort((time, key))
        both = np.empty(len(self) + len(key), dtype=np.int64)
        merge_order(self.key, self.first, key[order], time[order], both)
        is_row = both < len(self)
        found = np.empty(len(key), dtype=np.int64)
        found[order] = (np.cumsum(is_row) - 1)[~is_row]
        return found

    def settle(self) -> None:
        """Nothing is fresh any more."""
        self.fresh = np.zeros(len(self), dtype=np.int64)

    def renumbered(self, new_ids: Column) -> SliceTable:
        """The same rows after the keys got new ids (in the same order)."""
        return self.changed(key=new_ids[self.key])


def combine_runs(table: SliceTable, rows: Column, lo: Column, hi: Column, partials: PartialSet) -> SliceTable:
    """One row for each run `rows[lo:hi]`, none of them empty."""
    fixed = np.empty((len(FIXED), len(lo)), dtype=np.int64)
    fresh, level = np.empty((2, len(lo)), dtype=np.int64)
    reduce_rows(rows, lo, hi, table.fixed, table.fresh, table.level, fixed, fresh, level)
    try:
        return SliceTable(fixed, fresh, level, partials.reduce(table.states, rows, lo, hi))
    except PlacedError as error:
        blame_row(error, lambda j: fixed[0, j])
        raise


def merge(
    table: SliceTable, new: SliceTable, edges: Column, gap: int, partials: PartialSet
) -> tuple[SliceTable, int]:
    """Merge new rows into the table; returns it with the number of combines that this took.

    Rows of one slice combine (update), rows whose session gap closed fuse (merge), and a row in a
    gap stays a row of its own: the paper's split, without recomputing anything. [scotty §6.2]
    """
    old, added = len(table.fresh), len(new.fresh)
    if not added:
        return table, 0
    keep, upto = 0, added
    if old + added > _FEW or not partials.numeric:
        # Rows at the front that lie before all new ones stay as they are, and so do new ones behind all
        # others.
        upto = undisturbed(table.fixed, new.fixed, new.level, edges)
        if upto == 0:
            return new, 0
        keep = untouched(table.fixed, new.fixed)
        if (added - upto + keep) * _SHARE < old + added:  # not worth a copy of all the others
            keep, upto = 0, added
    size = old - keep + upto
    order, lo, hi = np.empty((3, size), dtype=np.int64)
    both, out = np.empty((_COLUMNS, size), dtype=np.int64), np.empty(_COLUMNS * size, dtype=np.int64)
    count = merge_rows(
        table.fixed, table.fresh, table.level, keep, new.fixed, new.fresh, new.level, upto, edges, gap,
        both, order, lo, hi, out,
    )  # fmt: skip
    lo, hi, columns = lo[:count], hi[:count], out[: _COLUMNS * count].reshape(_COLUMNS, count)
    fixed = columns[:_FIXED]
    all_rows = not keep and upto == added
    parts = [(table, keep, old), (new, 0, upto)]
    states = partials.concat([table.states, new.states] if all_rows else _cut(parts, partials))
    try:
        merged = SliceTable(fixed, columns[-2], columns[-1], partials.reduce(states, order, lo, hi))
    except PlacedError as error:
        blame_row(error, lambda j: fixed[0, j])
        raise
    if not all_rows:
        merged = joined([(table, 0, keep), (merged, 0, count), (new, upto, added)], partials)
    return merged, size - count


def joined(parts: list[tuple[SliceTable, int, int]], partials: PartialSet) -> SliceTable:
    """The rows from one position to another of some tables, one after the other."""
    parts = [part for part in parts if part[1] < part[2]]
    if len(parts) == 1 and parts[0][2] - parts[0][1] == len(parts[0][0]):
        return parts[0][0]
    return SliceTable(
        np.concatenate([table.fixed[:, low:high] for table, low, high in parts], axis=1),
        np.concatenate([table.fresh[low:high] for table, low, high in parts]),
        np.concatenate([table.level[low:high] for table, low, high in parts]),
        partials.concat(_cut(parts, partials)),
    )


def _cut(parts: list[tuple[SliceTable, int, int]], partials: PartialSet) -> list[States]:
    return [
        table.states if high - low == len(table) else partials.cut(table.states, low, high)
        for table, low, high in parts
    ]
