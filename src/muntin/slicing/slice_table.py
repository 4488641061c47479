"""The slice table: the slices of all keys as sorted columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import PlacedError
from muntin.memory import rows_at
from muntin.slicing.error_places import note_key_of_row
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.schema import Role, Schema, Table
from muntin.slicing.slice_table_kernels import (
    key_offsets,
    merge_order,
    merge_rows,
    reduce_rows,
    undisturbed,
    untouched,
)

Column = npt.NDArray[np.int64]
FIXED = ("key", "first", "last", "n", "mark", "rank")
"""The columns that are the rows of one matrix, so that taking or joining rows is one operation."""
_FIXED, _COLUMNS = len(FIXED), len(FIXED) + 2

_SHARE = 4
"""If fewer than one row in this many stays unchanged, merging all rows is faster than copying around them."""
_MOST_MERGED = 256
"""Up to this many numeric rows, merging all of them is faster than looking for unchanged ones."""


@dataclass(slots=True)
class SliceTable(Table):
    """Rows are slices, sorted by (key, first); each partial is a state with one entry per row.

    first, last: time of the first and last tuple in the slice. n: its tuples; fresh: how many of
    them arrived since the last emission. mark: a sum of hashes of its tuples, equal for equal
    contents. rank: number of ranked tuples of the key before it, or -1 where tuples arrived too late
    to be ranked. level: the number of session classes, smallest gap first, that it takes no part in.

    `fresh` and `level` may change while the slices stay the same, so they are no part of the matrix.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "key": Role.KEY, "first": Role.TIME, "last": Role.TIME, "n": Role.POSITIVE, "mark": Role.ANY,
            "rank": Role.RANK, "fresh": Role.COUNT, "level": Role.COUNT,
        },
        order=("key", "first"),
        time="first",
    )  # fmt: skip

    partials: PartialSet
    fixed: Column
    fresh: Column
    level: Column
    given: States | None
    """The partials; None where they are made of `words` when they are first read."""
    key: Column = field(init=False)
    first: Column = field(init=False)
    last: Column = field(init=False)
    n: Column = field(init=False)
    mark: Column = field(init=False)
    rank: Column = field(init=False)
    seen: tuple[int, int] = field(default=(0, 0), init=False, repr=False)
    """The number that a store gave this table, and how many of its first rows have not changed since."""
    _offsets: Column | None = field(default=None, init=False, repr=False)
    _words: Column | None = field(default=None, init=False, repr=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Column:
            """Name the rows of the matrix when one is first read: the compiled step reads none."""
            if name not in FIXED:
                raise AttributeError(name)
            self.key, self.first, self.last, self.n, self.mark, self.rank = self.fixed
            return getattr(self, name)

    @classmethod
    def empty(cls, partials: PartialSet) -> SliceTable:
        """A table without rows."""
        return cls.of(partials, {name: np.zeros(0, dtype=np.int64) for name in cls.SCHEMA.columns}, None)

    @classmethod
    def of(cls, partials: PartialSet, columns: Mapping[str, Column], states: States | None) -> SliceTable:
        """A table of these columns."""
        fixed = np.empty((_FIXED, len(columns["key"])), dtype=np.int64)
        for row, name in enumerate(FIXED):
            fixed[row] = columns[name]
        states = partials.empty() if states is None else states
        return cls(partials, fixed, columns["fresh"], columns["level"], states)

    @classmethod
    def of_words(cls, partials: PartialSet, words: Column, level: Column) -> SliceTable:
        """A table of numeric partials, nothing fresh, as the compiled step makes it."""
        table = cls(partials, words[:_FIXED], np.zeros(words.shape[1], dtype=np.int64), level, None)
        table._words = words
        return table

    @property
    def states(self) -> States:
        """The partials, one state each."""
        if self.given is None:
            assert self._words is not None
            self.given = self.partials.from_words(self._words[_FIXED:])
        return self.given

    @property
    def words(self) -> Column:
        """The matrix, and below it the columns of numeric partials as 64-bit words."""
        if self._words is None:
            self._words = np.concatenate([self.fixed, self.partials.to_words(self.states)])
        return self._words

    def __len__(self) -> int:
        return len(self.fresh)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns and partials."""
        numbers = self.fixed.nbytes + self.fresh.nbytes + self.level.nbytes
        return int(numbers) + self.partials.nbytes(self.states)

    def offsets(self, keys: int) -> Column:
        """Rows of key k are offsets[k]:offsets[k+1]."""
        if self._offsets is None or len(self._offsets) != keys + 1:
            one = keys == 1
            self._offsets = np.array((0, len(self.key))) if one else key_offsets(self.key, keys)
        return self._offsets

    def take(self, rows: Column | npt.NDArray[np.bool_]) -> SliceTable:
        """The rows at these positions, or where the mask is true."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        fixed, fresh, level = (
            self.fixed.take(rows, axis=1),
            rows_at(self.fresh, rows),
            rows_at(self.level, rows),
        )
        return SliceTable(self.partials, fixed, fresh, level, self.partials.take(self.states, rows))

    def between(self, low: int, high: int) -> SliceTable:
        """The rows from one position to another, without a copy."""
        if high - low == len(self):
            return self
        states = self.partials.cut(self.states, low, high)
        fixed, fresh, level = self.fixed[:, low:high], self.fresh[low:high], self.level[low:high]
        return SliceTable(self.partials, fixed, fresh, level, states)

    def changed(self, **columns: Column) -> SliceTable:
        """The same rows with other values in some columns."""
        if not columns.keys() <= {"fresh", "level"}:
            return SliceTable.of(self.partials, self.columns | columns, self.states)
        fresh, level = columns.get("fresh", self.fresh), columns.get("level", self.level)
        same = SliceTable(self.partials, self.fixed, fresh, level, self.states)
        same._offsets, same.seen = self._offsets, self.seen
        return same

    def holding(self, key: Column, time: Column) -> Column:
        """For each tuple the row that holds it; each lies in one."""
        order = np.lexsort((time, key))
        both = np.empty(len(self) + len(key), dtype=np.int64)
        merge_order(self.key, self.first, key[order], time[order], both)
        is_row = both < len(self)
        rows = np.empty(len(key), dtype=np.int64)
        rows[order] = (np.cumsum(is_row) - 1)[~is_row]
        return rows

    def with_states(self, partials: PartialSet, states: States) -> SliceTable:
        """The same slices with these partials instead."""
        return SliceTable(partials, self.fixed, self.fresh, self.level, states)

    def carried(self, partials: PartialSet) -> SliceTable:
        """The same slices with other partials, of which new ones have seen no tuple."""
        return self.with_states(partials, partials.carried(self.states, len(self), self.partials))

    def renumbered(self, ids: Column) -> Self:
        """The same rows with the new numbers of their keys, in the same order of keys."""
        return self.changed(key=ids[self.key])  # type: ignore[return-value]  # the class is final

    def of_keys(self, begin: int, end: int) -> Self:
        low, high = np.searchsorted(self.key, (begin, end)).tolist()
        rows = self.between(low, high)
        return rows.changed(key=rows.key - begin) if begin else rows  # type: ignore[return-value]  # as above

    def among_all(self, begin: int, end: int) -> Self:
        return self.changed(key=self.key + begin)  # type: ignore[return-value]  # as above

    def attached(self) -> dict[str, pa.Array]:
        """The partials as Arrow columns: `i/name` is a column of the i-th partial."""
        columns: dict[str, pa.Array] = {}
        for i, (partial, state) in enumerate(zip(self.partials.partials, self.states, strict=True)):
            columns |= {f"{i}/{name}": array for name, array in partial.to_arrow(state).items()}
        return columns


def combine_runs(table: SliceTable, rows: Column, lo: Column, hi: Column) -> SliceTable:
    """One row for each run `rows[lo:hi]`, none of them empty."""
    fixed = np.empty((_FIXED, len(lo)), dtype=np.int64)
    fresh, level = np.empty((2, len(lo)), dtype=np.int64)
    reduce_rows(rows, lo, hi, table.fixed, table.fresh, table.level, fixed, fresh, level)
    return SliceTable(
        table.partials, fixed, fresh, level, _reduced(table.partials, table.states, rows, lo, hi, fixed)
    )


def merge(table: SliceTable, new: SliceTable, edges: Column, gap: int) -> tuple[SliceTable, int]:
    """Merge new rows into the table; returns it with the number of combines that this took.

    Rows of one slice combine (update), rows whose session gap closed fuse (merge), and a row in a
    gap stays a row of its own: the paper's split, without recomputing anything. [scotty §6.2]
    """
    old, added, partials = len(table.fresh), len(new.fresh), table.partials
    if not added:
        return table, 0
    keep, upto = 0, added
    if old + added > _MOST_MERGED or not partials.numeric:
        # Old rows before all new ones stay unchanged, and so do new rows behind all old ones.
        upto = undisturbed(table.fixed, new.fixed, new.level, edges)
        if upto == 0:
            return new, 0
        keep = untouched(table.fixed, new.fixed)
        if (added - upto + keep) * _SHARE < old + added:
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
    tables = [table, new] if all_rows else [table.between(keep, old), new.between(0, upto)]
    states = _reduced(partials, partials.concat([part.states for part in tables]), order, lo, hi, fixed)
    merged = SliceTable(partials, fixed, columns[-2], columns[-1], states)
    if not all_rows:
        merged = concat([table.between(0, keep), merged, new.between(upto, added)])
        merged.seen = table.seen[0], min(table.seen[1], keep)
    return merged, size - count


def concat(tables: list[SliceTable]) -> SliceTable:
    """The rows of at least one table, one after the other."""
    tables = [table for table in tables if len(table)] or tables[:1]
    if len(tables) == 1:
        return tables[0]
    partials = tables[0].partials
    return SliceTable(
        partials,
        np.concatenate([table.fixed for table in tables], axis=1),
        np.concatenate([table.fresh for table in tables]),
        np.concatenate([table.level for table in tables]),
        partials.concat([table.states for table in tables]),
    )


def _reduced(
    partials: PartialSet, states: States, rows: Column, lo: Column, hi: Column, fixed: Column
) -> States:
    try:
        return partials.reduce(states, rows, lo, hi)
    except PlacedError as error:
        note_key_of_row(error, lambda j: fixed[0, j])
        raise
