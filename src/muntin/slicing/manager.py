"""The Slice Manager: adds tuples to slices, and merges, splits and drops slices as windows need."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import PlacedError
from muntin.expressions import Expr
from muntin.metrics import Metrics
from muntin.slicing.batch import Batch
from muntin.slicing.edges import NO_TIMES, crossed
from muntin.slicing.flood import Limit
from muntin.slicing.judging import Late, Raw, Waiting, late_output, levels, verdicts
from muntin.slicing.kept import KeptSlicer
from muntin.slicing.listing_kernels import starts_before
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.partials import PartialSet
from muntin.slicing.slicer import slice_batch
from muntin.slicing.table import SliceTable, combine_runs, merge
from muntin.slicing.table_kernels import needed_runs
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.base import ContextFreeWindow, Window

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class SliceManager:
    """Owns the slice table. Knows queries only through their edges and session gaps.

    Tuples that every query can still take go into slices at once, or among the kept tuples where
    the plan keeps them. Older ones wait until the watermark moves next: only then is it known which
    sessions they touch, whatever the order in which they came. [scotty §8]
    """

    IN_PLACE = ("waiting", "failed")

    def __init__(
        self,
        live: LiveSet,
        partials: PartialSet,
        lateness: int,
        metrics: Metrics,
        in_order: bool = False,
        forget: int | None = None,
    ) -> None:
        self.live = live
        self.partials = partials
        self.lateness = lateness
        self.in_order = in_order
        self.forget = forget
        self.metrics = metrics
        self.table = SliceTable.empty(partials)
        self.kept: KeptSlicer | None = KeptSlicer(self) if live.driven else None
        self.watermark = NEG_INF
        self.newest = NEG_INF
        self.keys = 1
        self.limit = Limit()
        self.retained_from = NEG_INF
        self.touched = False
        self.folds = 0
        self.waiting: list[Waiting] = []
        self.skips_errors = False
        """Whether a value that cannot be computed is null, as on_error="skip" says."""
        self.failed: list[PlacedError] = []
        """Skipped errors that were not reported yet."""
        self._crowded = 0
        self._folded_at = 64

    @property
    def final(self) -> int:
        """Tuples before this time are late for every window that counts tuples."""
        if self.watermark in (NEG_INF, INF):
            return self.watermark
        return max(self.watermark - self.lateness, -LIMIT)

    @property
    def pending(self) -> int:
        """Tuples that wait to be judged."""
        return sum(int(w.rows.n.sum()) for w in self.waiting)

    def oldest(self) -> Column:
        """Per key the time of its oldest tuple in slices or kept; INF if there is none."""
        parts = [(self.table.key, self.table.first)]
        if self.kept is not None:
            parts += [(batch.key, batch.time) for batch in self.kept.tuples.batches()]
        oldest = np.full(self.keys, INF, dtype=np.int64)
        for key, time in parts:
            np.minimum.at(oldest, key, time)
        return oldest

    @property
    def nbytes(self) -> int:
        """Bytes of slices and tuples."""
        size = self.table.nbytes + self.partials.nbytes(self.table.states)
        for part in self.waiting:
            size += part.rows.nbytes + self.partials.nbytes(part.rows.states)
            size += 0 if part.raw is None else int(part.raw.tuples.nbytes)
        return size + (0 if self.kept is None else self.kept.nbytes)

    def add(self, batch: Batch, raw: pa.RecordBatch | None) -> None:
        """Take tuples in. `raw` are the same tuples as they came, for the late output."""
        rows = len(batch.time)
        if not rows:
            return
        self.metrics.update_combines += rows * len(self.partials.partials)
        extent = batch.extent
        if extent.low < self.final:
            old = batch.time < self.final
            late = np.flatnonzero(old)
            self._wait(batch.take(late), None if raw is None else raw.take(pa.array(late)))
            batch = batch.take(np.flatnonzero(~old))
            if not len(batch):
                return
            extent = batch.extent
        self._notice(extent.low, extent.high)
        if self.kept is not None:
            self.kept.add(batch)
        else:
            edges = self._edges_of(batch)
            self.insert(slice_batch(batch, edges, self.live.gap, self.partials), edges)

    def add_slices(self, rows: SliceTable) -> None:
        """Take tuples in that were sliced elsewhere, at the edges of the same queries."""
        self.metrics.update_combines += int(rows.n.sum()) * len(self.partials.partials)
        old = rows.first < self.final
        if old.any():
            self.waiting.append(Waiting(rows.take(np.flatnonzero(old), self.partials)))
            rows = rows.take(np.flatnonzero(~old), self.partials)
        if len(rows):
            edges = self._edges_of_rows(rows)
            self._notice(int(rows.first.min()), int(rows.last.max()))
            self.insert(rows, edges)

    def _notice(self, low: int, high: int) -> None:
        # A tuple at the watermark itself may close a window that is complete already.
        self.touched = self.touched or low <= self.watermark
        self.newest = max(self.newest, high)

    def _wait(self, batch: Batch, raw: pa.RecordBatch | None) -> None:
        rows = slice_batch(batch, self._edges_of(batch), self.live.gap, self.partials)
        self.waiting.append(Waiting(rows, None if raw is None else Raw(batch.key, batch.time, raw)))

    def _edges_of(self, batch: Batch) -> Column:
        whole = batch if batch.whole is None else batch.whole
        extent = whole.extent
        return self.edges_around(extent.low, extent.high, whole.time)

    def _edges_of_rows(self, rows: SliceTable) -> Column:
        times = np.concatenate([rows.first, rows.last])
        return self.edges_around(int(times.min()), int(times.max()), times)

    def edges_around(self, low: int, high: int, times: Column) -> Column:
        """The fixed edges that separate these times from each other and from the rows of the table."""
        return self.live.edges.around(low, high, times, self.table.first, self.table.last)

    def insert(self, rows: SliceTable, edges: Column) -> None:
        """Merge rows into the table; `edges` separate them from each other and from its rows."""
        if not len(self.table.fresh) and self.live.gap < 0 and self.kept is None:
            self.table = rows  # each of them lies between two edges, and no gap could close
            return
        self.table, combines = merge(self.table, rows, edges, self.live.gap, self.partials)
        self.metrics.combined(combines * len(self.partials.partials))

    # Tuples before `final`: judged per query when the watermark moves. ------------------------------

    def judge(self) -> tuple[list[Late], SliceTable]:
        """Decide for the waiting tuples which queries they still count for.

        Returns the late tuples, and the slices of all tuples that waited.
        """
        rows = self._all_waiting()
        waiting, self.waiting = self.waiting, []
        accepted, late = verdicts(rows, self.live.queries, self.live, self.final)
        if late:
            self.metrics.late += int(rows.n[np.logical_or.reduce([refused for _, refused in late])].sum())
        self.newest = max(self.newest, int(rows.last.max()))
        result = late_output(rows, late, waiting)
        self._drop_unheard(rows, ~accepted)
        if accepted.any():
            self.touched = True
            accepted_rows = rows.take(np.flatnonzero(accepted), self.partials)
            self.insert(accepted_rows, self._edges_of_rows(accepted_rows))
        return result, rows

    def late_for(self, query: LiveQuery) -> list[Late]:
        """What has come too late for a query that ends now; for the others the tuples go on waiting."""
        if not self.waiting:
            return []
        rows = self._all_waiting()
        _, late = verdicts(rows, (query,), self.live, self.final)
        return late_output(rows, late, self.waiting)

    def _all_waiting(self) -> SliceTable:
        """The slices of all that waits, with their levels."""
        if self.kept is not None:
            self.kept.slice(self.watermark)
        rows = self._together([part.rows for part in self.waiting])
        return rows.changed(
            level=levels(self.table, rows, self.live.gaps, self.final)
        )  # those that wait stay as they are

    def _together(self, parts: list[SliceTable]) -> SliceTable:
        """The slices of these rows, as if their tuples had come at once."""
        times = np.concatenate([column for rows in parts for column in (rows.first, rows.last)])
        edges = self.edges_around(int(times.min()), int(times.max()), times)
        table = SliceTable.empty(self.partials)
        for rows in parts:
            table, combines = merge(table, rows, edges, self.live.gap, self.partials)
            self.metrics.combined(combines * len(self.partials.partials))
        return table

    def _drop_unheard(self, rows: SliceTable, dropped: Mask) -> None:
        if dropped.any():
            self.retained_from = max(self.retained_from, int(rows.last[dropped].max()) + 1)

    def settle(self, fresh: bool = True) -> None:
        """What is due was emitted; with `fresh`, nothing counts as fresh any more."""
        self.touched = False
        if fresh:
            self.table.settle()
            if self.kept is not None:
                self.kept.mark(fresh=False)

    def unsettle(self) -> None:
        """Everything counts as fresh: a new query has emitted nothing of it yet.

        Only for those who remember what they emitted, and so can tell what others need not see again.
        """
        self.table.fresh = self.table.n.copy()
        if self.kept is not None:
            self.kept.mark(fresh=True)

    # Slices that no window needs. ------------------------------------------------------------------

    def expire_sessions(self, query_class: int, rows: Column) -> None:
        """The sessions of this class that these rows form are over: nothing joins them any more."""
        level = self.table.level.copy()
        level[rows] = np.maximum(level[rows], query_class + 1)
        self.table.level = level

    def needed_from(self) -> int:
        """Slices that begin before this time lie in no window that could still be emitted."""
        if self.kept is not None or self.live.sessions or not self.live.free:
            return NEG_INF
        return self.live.first_start(self.final)

    def evict(self, force: bool = False) -> None:
        """Drop the slices that lie in no window that could still be emitted, and fold what is left.

        Not at every watermark, but when there are enough of them: looking costs, too.
        """
        if not len(self.table) and (self.kept is None or self.forget is None):
            return
        if self.final == INF and self.live.only_edges:
            self.retained_from = max(self.retained_from, self.newest + 1)
            self.table = SliceTable.empty(self.partials)
            return
        if self.kept is not None:
            self.kept.commit()
        elif len(self.table) <= self._crowded and not force:
            return
        needed = self.table.level < len(self.live.gaps)
        if self.live.free:
            needed |= self.table.first >= self.live.first_start(self.final)
        if self.kept is not None:
            needed |= self.kept.needs(self.table)
        dropped = len(needed) - int(needed.sum())
        if dropped and (force or dropped * 4 > len(needed) or len(needed) < 4096):
            gone = self.table.last[~needed]
            self.retained_from = max(self.retained_from, int(gone.max()) + 1)
            self.table = self.table.take(np.flatnonzero(needed), self.partials)
        if len(self.table) and (force or len(self.table) > 2 * self._folded_at):
            self._fold()
        self._crowded = max(64, 2 * len(self.table))

    def _fold(self) -> None:
        """Join neighbouring slices where no window that is still alive begins or ends between them."""
        table = self.table
        final = self.final
        hard = np.zeros(len(table), dtype=np.bool_)
        if self.kept is not None:
            hard = self.kept.needed_cuts(table)
        lo = np.empty(len(table), dtype=np.int64)
        hi = np.empty(len(table), dtype=np.int64)
        count = needed_runs(
            table.key, table.first, table.last, table.level, table.rank,
            self._needed_starts(final), self.live.gaps, final, hard, lo, hi,
        )  # fmt: skip
        if count < len(table):
            self.folds += 1
            self.metrics.combined((len(table) - count) * len(self.partials.partials))
            self.retained_from = max(self.retained_from, final)
            rows = np.arange(len(table), dtype=np.int64)
            self.table = combine_runs(table, rows, lo[:count], hi[:count], self.partials)
        self._folded_at = max(64, len(self.table))

    def _needed_starts(self, final: int) -> Column:
        """Starts, up to `final`, of windows that end after it: the only old edges still needed."""
        parts = [self.live.edges.points]
        oldest = int(self.table.first.min())
        if self.live.periodic and oldest <= final < INF:
            grid = self.live.grid
            parts.append(starts_before(grid.length, grid.slide, grid.offset, oldest, final))
        for _, window in self.live.uneven:
            low = max(window.first_start(final), oldest)
            if low <= final < INF:
                parts.append(window.starts(low, final))
        return np.unique(np.concatenate([p for p in parts if len(p)] or [NO_TIMES]))

    # Queries that come and go. ---------------------------------------------------------------------

    def serves_from(self, window: Window, after: int) -> int:
        """The first time from which a new query finds all tuples, in slices that its edges do not cut.

        Later than `after`, which is for whoever must choose the same time for several operators.
        """
        if max(self.newest, after) == NEG_INF and not self.waiting:
            return NEG_INF
        self.evict(force=True)
        if not isinstance(window, ContextFreeWindow):
            return max(self.newest, self.newest_pending, after) + 1
        low = max(self.retained_from, window.first_start(max(self.watermark, -LIMIT)), after + 1)
        if window.emit_empty:
            # Where its empty windows lie depends on the extent of each key, noted from now on.
            low = max(low, self.newest + 1, self.newest_pending + 1)
        if self.kept is not None:
            self.kept.slice(self.watermark)
        for rows in (self.table, *(part.rows for part in self.waiting)):
            if len(rows):
                cut = crossed(window, rows.first, rows.last)
                if cut.any():
                    low = max(low, int(rows.last[cut].max()) + 1)
        if low <= -LIMIT:
            return NEG_INF
        return next_start(window, low)

    @property
    def newest_pending(self) -> int:
        """The time of the newest tuple that waits to be judged."""
        return max((int(part.rows.last.max()) for part in self.waiting), default=NEG_INF)

    def adapt(self, live: LiveSet, partials: PartialSet, inputs: Mapping[Expr, pa.DataType]) -> None:
        """Go on with other queries: session classes are renumbered, tuples kept or not as they need."""
        old = self.live
        self.live = live
        self.partials = partials
        self.table.level = _renumber(self.table.level, old.gaps, live.gaps)
        if self.kept is not None:
            self.kept.adapt(old, live, inputs)
            if not live.driven:
                self.kept.dissolve()
                self.kept = None
        elif live.driven:
            self.kept = KeptSlicer(self)


def next_start(window: ContextFreeWindow, low: int) -> int:
    """The first window start at or after `low`."""
    reach = 1
    while True:
        starts = window.starts(low, low + reach)
        if len(starts):
            return int(starts[0])
        if reach > LIMIT // 2:
            return INF
        reach *= 2


def _renumber(level: Column, old: Column, new: Column) -> Column:
    """Levels count the smaller gaps that a slice takes no part in; now over other gaps."""
    # A slice of level l has expired for old gaps below old[l]; it takes part from that gap on.
    bound = np.concatenate([old, [INF]])[np.minimum(level, len(old))]
    return np.where(level == 0, 0, np.searchsorted(new, bound)).astype(np.int64)
