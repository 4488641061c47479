"""Tuples in order: the part of the stream whose order, and so whose edges, may still change.

Tuple-driven windows (count, punctuation, frames, ...) have their edges between tuples, so out of
order their tuples are stored until they are final [scotty §5.1, Fig. 4]. Tuples are sliced when the
watermark reaches them. A tuple that arrives later, within the allowed lateness, takes the slices of its
key back to the last final edge, and they are cut again.

Two positions per key, both ranks in the key's order of (time, arrival):
    committed   everything before is final; contexts and slices there never change
    sliced      everything before is in the slice table
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.aggregates.joining import MOST_BYTES, TextError, text_bytes
from muntin.expressions import Expr
from muntin.slicing.batch import Batch, concat, distinct, ranges
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.schema import Change, Table, extended, no_rows
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table_kernels import ends_until, key_offsets
from muntin.slicing.tuple_tables import STAGES, Positions, Progress, TupleRows
from muntin.timeline import NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.slice_table import SliceTable

__all__ = ["TupleState"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class TupleState:
    """The tuples of tuple-driven windows in (key, time, arrival) order, and the positions of each key.

    A step changes a draft. Arrays that are written to are copied once per draft, by `own`.
    """

    def __init__(self) -> None:
        self.batch: Batch | None = None
        """The tuples in order."""
        self.fresh: Mask = np.zeros(0, dtype=np.bool_)
        """Which of them arrived since the last emission."""
        self.arrived: tuple[Batch, ...] = ()
        """Tuples that are not yet among the ordered ones."""
        self.offsets: Column = np.zeros(1, dtype=np.int64)
        """The tuples of key k are offsets[k]:offsets[k + 1]."""
        self.positions = Positions()
        self.committed = Progress()
        self.sliced = Progress()
        self.closed_windows: dict[str, ClosedWindows] = {}
        self.expired: dict[str, ExpiredWindows] = {}
        self.text_bytes: dict[Expr, int] = {}
        """The bytes of each column of texts: stored tuples must fit into one Arrow column."""
        self.counted = False
        """Whether arrivals of all tuples were counted here, so that new ones come behind those stored."""
        self.is_ahead = False
        """Whether tuples beyond the watermark are sliced, for early results."""
        self.sliced_until = NEG_INF
        """The time up to which tuples were last sliced."""
        self.has_unseen = True
        """Whether windows were closed for another reason than to be emitted."""
        self.ahead: SliceTable | None = None
        """Slices beyond the watermark that were taken back, for the next call that slices up to there."""
        self._owned = True

    def draft(self) -> TupleState:
        """A copy for a step; its arrays are shared until `own`."""
        new = object.__new__(TupleState)
        new.__dict__.update(self.__dict__)
        new.closed_windows, new.expired, new.text_bytes = (
            self.closed_windows.copy(),
            self.expired.copy(),
            self.text_bytes.copy(),
        )
        new._owned = False
        return new

    def own(self) -> None:
        """Copy what may be written to in this step."""
        if not self._owned:
            self.positions, self._owned = self.positions.copy(), True
            self.committed, self.sliced = self.committed.copy(), self.sliced.copy()

    def __len__(self) -> int:
        return (0 if self.batch is None else len(self.batch)) + sum(len(b) for b in self.arrived)

    def tables(self, inputs: tuple[Expr, ...]) -> Iterator[tuple[str, Table]]:
        """All tables with their names; `inputs` are the columns of the tuples."""
        if self.batch is not None:
            yield "tuples", TupleRows(self.batch, self.fresh, inputs)
        for i, batch in enumerate(self.arrived):
            yield f"arrived/{i}", TupleRows(batch, np.ones(len(batch), dtype=np.bool_), inputs)
        yield "positions", self.positions
        for stage in STAGES:
            yield f"progress/{stage}", getattr(self, stage)
        yield from ((f"closed/{name}", table) for name, table in self.closed_windows.items())
        yield from ((f"expired/{name}", table) for name, table in self.expired.items())

    def batches(self) -> list[Batch]:
        """All stored tuples."""
        return [*self.arrived, *([] if self.batch is None else [self.batch])]

    def change_tables(self, change: Change) -> None:
        """Replace all tables; where keys get other numbers, `index` must follow."""
        self.ahead = None
        arrived = [change(TupleRows(batch, np.ones(len(batch), dtype=np.bool_))) for batch in self.arrived]
        self.arrived = tuple(rows.batch for rows in arrived)
        if self.batch is not None:
            rows = change(TupleRows(self.batch, self.fresh))
            self.batch, self.fresh = rows.batch, rows.fresh
        self.positions = change(self.positions)
        self.committed, self.sliced = change(self.committed), change(self.sliced)
        self.closed_windows = {name: change(table) for name, table in self.closed_windows.items()}
        self.expired = {name: change(table) for name, table in self.expired.items()}

    def grow(self, keys: int, windows: tuple[ServedWindow, ...], lives: bool) -> None:
        """Make room for new keys and windows."""
        self.own()
        self.offsets = extended(self.offsets, keys + 1, int(self.offsets[-1]))
        self.positions = self.positions.with_room(keys, windows)
        self.committed = self.committed.with_room(keys, windows, lives)
        self.sliced = self.sliced.with_room(keys, windows, lives)

    def without(self, names: list[str]) -> None:
        """Drop all that belongs to these windows."""
        self.own()
        self.committed, self.sliced = self.committed.without(names), self.sliced.without(names)
        for tables in (self.positions.skipped, self.closed_windows, self.expired):
            for name in names:
                tables.pop(name, None)

    def arrive(self, batch: Batch) -> None:
        """Store these tuples; a TextError if the texts of a column no longer fit into one Arrow column."""
        for expr, column in batch.values.items():
            more = text_bytes(column)
            if more:
                size = self.text_bytes.get(expr, 0) + more
                if size > MOST_BYTES:
                    raise TextError(f'"{expr}" has {size:,} bytes in tuples that wait for a watermark')
                self.text_bytes[expr] = size
        self.arrived += (batch,)

    def count_texts(self) -> None:
        """Count the bytes of texts in all tuples."""
        sizes: dict[Expr, int] = {}
        for batch in self.batches():
            for expr, column in batch.values.items():
                if size := text_bytes(column):
                    sizes[expr] = sizes.get(expr, 0) + size
        self.text_bytes = sizes

    def mark(self, fresh: bool) -> None:
        """All tuples count as fresh from now on, or none does."""
        self.fresh = np.full(len(self.fresh), fresh, dtype=np.bool_)

    def settle(self, keys: int, reached: int) -> tuple[Column, Mask | None]:
        """Sort arrivals in; returns the keys whose sliced part they reach, and which tuples are new.

        `reached`: windows that time alone may close have seen no tuple before this time.
        """
        if not self.arrived:
            return no_rows(), None
        stored = self.batch if self.batch is not None and len(self.batch) else None
        counted = all(isinstance(batch.arrival, int) for batch in self.arrived)
        self.counted = counted and (stored is None or self.counted)
        new = concat(list(self.arrived))
        self.arrived = ()
        dirty = self._reached_into(new, reached)
        fresh = np.ones(len(new), dtype=np.bool_)
        known = 0 if stored is None else len(stored)
        if stored is not None:
            new = concat([stored, new])
            fresh = np.concatenate([self.fresh, fresh])
        self.batch, order = new.in_order(in_turn=self.counted)
        self.fresh = fresh[order]
        self.count_texts()
        self.index(keys)
        return dirty, order >= known

    def _reached_into(self, new: Batch, reached: int) -> Column:
        """The keys of which some tuple comes before one that was sliced."""
        sliced = self.positions.reached
        if new.times[0] > max(int(sliced.max()), reached):
            return no_rows()
        behind = new.time < np.maximum(sliced[new.key], reached)
        if self.batch is not None and len(self.batch):
            # The input may say itself which of several tuples of one time comes first.
            behind |= (new.time == sliced[new.key]) & (new.seq < self.batch.seq.max())
        return distinct(new.key[behind])

    def index(self, keys: int) -> None:
        """Find where the tuples of each key lie."""
        if self.batch is None:
            self.offsets = np.zeros(keys + 1, dtype=np.int64)
        elif self.batch.ids is None:
            self.offsets = np.full(keys + 1, len(self.batch), dtype=np.int64)
            self.offsets[0] = 0
        else:
            self.offsets = key_offsets(self.batch.ids, keys)

    def positions_until(self, upto: int) -> Column:
        """Per key: position behind its last tuple with time <= upto."""
        if self.batch is None or not len(self.batch):
            return self.offsets[1:].copy()
        return ends_until(self.batch.time, self.offsets, upto)

    def ranks_until(self, upto: int) -> Column:
        """Per key: the number of its tuples with time <= upto."""
        return self.positions.base + self.positions_until(upto) - self.offsets[:-1]

    def drop_before(self, rank: Column) -> None:
        """Forget the tuples with smaller ranks, key by key."""
        base = self.positions.base
        if self.batch is None or not (rank > base).any():
            return
        skipped = np.maximum(rank - base, 0)
        left = np.maximum(self.offsets[1:] - self.offsets[:-1] - skipped, 0)
        keep = ranges(self.offsets[:-1] + skipped, left)
        if isinstance(keep, slice) and 2 * int(left[0]) < len(self.batch):
            keep = np.arange(keep.start, keep.stop)  # a view of few tuples would hold the memory of all
        self.batch = self.batch.take(keep)
        self.fresh = self.fresh[keep]
        self.count_texts()
        self.positions.base = np.maximum(base, rank)
        self.index(len(base))

    def skip(self, window: ServedWindow, keys: Column | None = None) -> Column:
        """Per key: the rank of the window's first tuple; a window that was added later counts from there."""
        base = self.positions.base
        keys = np.arange(len(base), dtype=np.int64) if keys is None else keys
        if window.since == NEG_INF:
            return np.zeros(len(keys), dtype=np.int64)
        self.own()
        known = extended(self.positions.skipped.get(window.name, no_rows()), len(base), -1)
        self.positions.skipped[window.name] = known
        times = self.batch.time if self.batch is not None else no_rows()
        inside = np.concatenate([[0], np.cumsum(times < window.since)])
        early = inside[self.offsets[keys + 1]] - inside[self.offsets[keys]]
        # Once a tuple of its own has left, no earlier one can arrive any more.
        settled = (known[keys] >= 0) & (early == 0)
        known[keys] = np.where(settled, known[keys], base[keys] + early)
        return known[keys]
