"""Steps on several threads: the same results as on one, in the same order and bit for bit.

Compiled code, Arrow and NumPy release the interpreter's lock, so that threads run in parallel. Large batches
are sliced by ranges of time (`time_ranges`), as Spark's partitions are sliced apart. Then windows are
completed by time where a whole table is given and all windows end at known edges (`by_time`), otherwise by
key (`by_key`). Tuples are sliced as in the whole batch, and slices are combined one by one, in order of time.
A thread that fails changes nothing: the step then runs on one thread, which raises the same error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import MuntinError
from muntin.slicing.batch import Batch, share_of
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.intermediate_watermarks import are_independent, intermediate_watermarks
from muntin.slicing.emission.result_order import Runs
from muntin.slicing.eviction import evict
from muntin.slicing.keys import KeyTable
from muntin.slicing.parallel.by_key import divided, joined, key_bounds
from muntin.slicing.parallel.by_time import can_emit_by_range, results_by_time
from muntin.slicing.parallel.key_numbering import number_keys
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.parallel.time_ranges import Blocks, TimeRange, slice_range, slice_ranges, time_ranges_of
from muntin.slicing.slice_manager import add_slices, edges_around
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.state import State
from muntin.timeline import INF, TimeExtent
from muntin.timeline.extent_kernels import extent

__all__ = ["ParallelSteps"]

Column = npt.NDArray[np.int64]
Complete = Callable[[BoundPlan, State, int, bool], list[Emission]]
Add = Callable[[BoundPlan, State, Batch], None]

LEAST_TUPLES = 65_536
"""Below this many tuples, slicing and numbering keys on one thread is faster."""
LEAST_SLICES = 32_768
"""Below this many slices, combining on one thread is faster."""
LEAST_ROWS = 32_768
"""Below this many rows of results, one thread makes the table faster."""


class ParallelSteps:
    """Runs steps on several threads."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self._blocks: Blocks | None = None

    def extent(self, times: Column) -> TimeExtent:
        """The extent of times, searched by all threads."""
        if len(times) < LEAST_TUPLES:
            return extent(times)
        self._blocks = Blocks.of(times, self.threads)
        return self._blocks.extent

    def encode(self, keys: KeyTable, columns: list[pa.Array]) -> Column:
        """The numbers of keys, computed by all threads."""
        if len(columns[0]) < LEAST_TUPLES:
            return keys.encode(columns)
        return number_keys(keys, columns, self.threads)

    def run(self, plan: BoundPlan, state: State, batch: Batch) -> tuple[pa.Table | None, bool]:
        """The results of a batch that is the whole stream, by time.

        No table where that does not apply; then also whether the batch was added.
        """
        time_ranges = self._time_ranges(plan, state, batch)
        is_new = not len(state.slices) and not state.emitted
        if (
            time_ranges is None
            or not is_new
            or not are_independent(plan, state)
            or not can_emit_by_range(plan, time_ranges)
        ):
            return None, False
        draft = state.draft()
        try:
            tables = self._sliced(plan, state, batch, time_ranges)
            size = sum(map(len, tables))
            if _is_near_limit(plan, size):
                return None, False
            if size < LEAST_SLICES:
                for rows in tables:
                    add_slices(plan, draft, rows)
                _take_over(state, draft)
                return None, True
            table = results_by_time(plan.for_shares(1), draft, time_ranges, tables, self.threads)
        except MuntinError:
            return None, False
        state.metrics, state.watermark, state.newest = draft.metrics, INF, batch.extent.high
        evict(plan, state)
        return table, True

    def add(self, plan: BoundPlan, state: State, batch: Batch) -> bool:
        """Slice a batch by ranges of time; False where that does not apply, and nothing has changed."""
        time_ranges = self._time_ranges(plan, state, batch)
        if time_ranges is None or any(plan.partials.growing(plan.partials.empty())):
            return False
        low, high = batch.extent.low, batch.extent.high
        edges = edges_around(plan, state, low, high, batch.time)
        draft = state.draft()
        try:
            sliced = slice_ranges(batch, time_ranges, edges, plan.served.gap, plan.partials, self.threads)
            if sliced is None:
                return False
            add_slices(plan, draft, sliced)
        except MuntinError:
            return False
        _take_over(state, draft)
        return True

    def complete(
        self, plan: BoundPlan, state: State, batch: Batch | None, watermark: int, add: Add, complete: Complete
    ) -> tuple[list[pa.Table], list[Emission]] | None:
        """Add tuples and move the watermark on, by key; None where that does not apply.

        Returns the results of intermediate watermarks, and the windows of the last step. Before the end of
        the stream nothing is evicted: the caller evicts from the whole state, as after a step on one thread,
        since folded slices add up in another order.
        """
        size = len(state.slices)
        tuples = (0 if state.tuples is None else len(state.tuples)) + (0 if batch is None else len(batch))
        if state.key_count < 2 or not plan.combines_windows_alone or state.late_tuples:
            return None
        if any(q.window.interpreted for q in plan.served.all):  # a window that was added later
            return None
        if (size < LEAST_SLICES and tuples < LEAST_TUPLES) or _is_near_limit(plan, size):
            return None
        if batch is not None and batch.extent.low < plan.final(state.watermark):
            return None
        bounds = key_bounds(state, batch, self.threads.number)
        number = len(bounds) - 1
        if number < 2:
            return None
        share_plan, whole = plan.for_shares(number), state.draft()
        if batch is not None:
            whole.newest = max(state.newest, batch.extent.high)
        shares = divided(plan, whole, bounds)
        tables: list[pa.Table] = []
        emissions: list[Emission] = []
        try:
            if batch is not None:
                self.threads.map(
                    lambda share, begin, end: add(share_plan, share, share_of(batch, begin, end)),
                    shares, bounds[:-1], bounds[1:],
                )  # fmt: skip
                if _is_near_limit(plan, sum(len(share.slices) for share in shares)):
                    return None
            whole.slices = max((share.slices for share in shares), key=len)  # to count windows
            for each in [*intermediate_watermarks(plan, whole, watermark), watermark]:
                if emissions:
                    tables.append(self.table(plan, state, emissions))
                emitted = self.threads.map(
                    lambda share, begin, each=each: [
                        _among_all(e, begin) for e in complete(share_plan, share, each, each < INF)
                    ],
                    shares, bounds[:-1],
                )  # fmt: skip
                emissions = [e for of_share in emitted for e in of_share]
        except MuntinError:
            return None
        joined(state, shares, bounds)
        return tables, emissions

    def table(self, plan: BoundPlan, state: State, emissions: list[Emission]) -> pa.Table:
        """The table of results, made by all threads if it is long."""
        is_long = sum(len(e.windows) for e in emissions) >= LEAST_ROWS
        return plan.results.table(emissions, state.keys, self.threads if is_long else None)

    def _time_ranges(self, plan: BoundPlan, state: State, batch: Batch) -> list[TimeRange] | None:
        """A range of time per thread; None where tuples must be stored or are late."""
        if len(batch) < LEAST_TUPLES or state.tuples is not None or plan.served.with_empty:
            return None
        if batch.extent.low < plan.final(state.watermark):
            return None
        if self._blocks is None or self._blocks.times is not batch.time:  # bad tuples, or another unit
            self.extent(batch.time)
        assert self._blocks is not None
        edges = edges_around(plan, state, batch.extent.low, batch.extent.high, batch.time)
        return time_ranges_of(batch, edges, plan.served.gap, self._blocks, self.threads.number)

    def _sliced(
        self, plan: BoundPlan, state: State, batch: Batch, time_ranges: list[TimeRange]
    ) -> list[SliceTable]:
        edges = edges_around(plan, state, batch.extent.low, batch.extent.high, batch.time)
        gap, partials = plan.served.gap, plan.partials
        return self.threads.map(
            lambda time_range: slice_range(batch, time_range, edges, gap, partials), time_ranges
        )


def _take_over(state: State, draft: State) -> None:
    """Take over the slices that were added to a draft."""
    state.slices, state.metrics = draft.slices, draft.metrics
    state.newest, state.has_late_change = draft.newest, draft.has_late_change


def _is_near_limit(plan: BoundPlan, size: int) -> bool:
    """Whether this many slices may exceed the limit of windows: a share counts only its windows."""
    return size * plan.served.most_overlapping > plan.limit.most(size)


def _among_all(emission: Emission, before: int) -> Emission:
    """The windows of a share with the key numbers of the whole state, of which `before` precede it."""
    windows = emission.windows
    runs = Runs.of(windows.end, windows.start, windows.number) if emission.is_first else None
    return replace(emission, windows=windows.behind(before) if before else windows, runs=runs)
