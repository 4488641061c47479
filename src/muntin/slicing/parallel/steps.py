"""Steps on several threads: the same results as on one, in the same order and bit for bit.

Compiled code, Arrow and NumPy release the interpreter's lock, so that parts run at the same time. Large
batches are sliced in pieces of time (`pieces`), as Spark's partitions are sliced apart. Then windows are
completed by time where a whole table is given and all windows end at known edges (`by_time`), otherwise by
key (`by_key`). Tuples are cut into slices as in the whole batch, and slices are combined one by one, in
order of time. A part that fails changes nothing: the step is then made on one thread, with the same error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import MuntinError
from muntin.slicing.batch import Batch
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.portions import are_independent, portions
from muntin.slicing.emission.result_order import Runs
from muntin.slicing.eviction import evict
from muntin.slicing.keys import KeyTable
from muntin.slicing.numbering import number_keys
from muntin.slicing.parallel.by_key import divided, joined, key_bounds, share_of
from muntin.slicing.parallel.by_time import results_by_time, suits_pieces
from muntin.slicing.parallel.pieces import Blocks, Piece, pieces_of, slice_piece, slice_pieces
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.slice_manager import add_slices, edges_around
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.state import State
from muntin.timeline import INF, TimeExtent
from muntin.timeline.extent_kernels import extent

__all__ = ["ParallelSteps"]

Column = npt.NDArray[np.int64]
Complete = Callable[[BoundPlan, State, int, bool], list[Emission]]
Add = Callable[[BoundPlan, State, Batch], None]

FEW = 65_536
"""Below this many tuples, slicing and numbering on one thread is faster."""
FEW_SLICES = 32_768
"""Below this many slices, combining on one thread is faster."""
FEW_ROWS = 32_768
"""Below this many rows of results, one thread makes the table faster."""


class ParallelSteps:
    """Runs the parts of steps on threads."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self._blocks: Blocks | None = None

    def extent(self, times: Column) -> TimeExtent:
        """The extent of times, searched by all threads."""
        if len(times) < FEW:
            return extent(times)
        self._blocks = Blocks.of(times, self.threads)
        return self._blocks.extent

    def encode(self, keys: KeyTable, columns: list[pa.Array]) -> Column:
        """The numbers of keys, found by all threads."""
        if len(columns[0]) < FEW:
            return keys.encode(columns)
        return number_keys(keys, columns, self.threads)

    def run(self, plan: BoundPlan, state: State, batch: Batch) -> tuple[pa.Table | None, bool]:
        """All windows of one batch, which is the whole stream, by time.

        No table where that does not apply; then also whether the batch was added.
        """
        pieces = self._pieces(plan, state, batch)
        is_new = not len(state.slices) and not state.emitted
        if pieces is None or not is_new or not are_independent(plan, state) or not suits_pieces(plan, pieces):
            return None, False
        part = state.draft()
        try:
            tables = self._sliced(plan, state, batch, pieces)
            size = sum(map(len, tables))
            if _is_near_limit(plan, size):
                return None, False
            if size < FEW_SLICES:
                for rows in tables:
                    add_slices(plan, part, rows)
                _take_over(state, part)
                return None, True
            table = results_by_time(plan.for_parts(1), part, pieces, tables, self.threads)
        except MuntinError:
            return None, False
        state.metrics, state.watermark, state.newest = part.metrics, INF, batch.extent.high
        evict(plan, state)
        return table, True

    def add(self, plan: BoundPlan, state: State, batch: Batch) -> bool:
        """Slice a batch in pieces of time; False where that does not apply, and nothing has changed."""
        pieces = self._pieces(plan, state, batch)
        if pieces is None or any(plan.partials.growing(plan.partials.empty())):
            return False
        low, high = batch.extent.low, batch.extent.high
        edges = edges_around(plan, state, low, high, batch.time)
        part = state.draft()
        try:
            sliced = slice_pieces(batch, pieces, edges, plan.served.gap, plan.partials, self.threads)
            if sliced is None:
                return False
            add_slices(plan, part, sliced)
        except MuntinError:
            return False
        _take_over(state, part)
        return True

    def complete(
        self, plan: BoundPlan, state: State, batch: Batch | None, watermark: int, add: Add, complete: Complete
    ) -> tuple[list[pa.Table], list[Emission]] | None:
        """Add tuples and move the watermark on, by key; None where that does not apply.

        Returns the results of all portions but the last, and the windows of that one. Nothing is evicted
        before the end of the stream: the caller does that for the whole state, as after a step on one
        thread, since folded slices add up in another order.
        """
        size = len(state.slices)
        tuples = (0 if state.tuples is None else len(state.tuples)) + (0 if batch is None else len(batch))
        if state.key_count < 2 or not plan.adds_up_alike or state.late_tuples:
            return None
        if any(q.window.interpreted for q in plan.served.all):  # a window that was added later
            return None
        if (size < FEW_SLICES and tuples < FEW) or _is_near_limit(plan, size):
            return None
        if batch is not None and batch.extent.low < plan.final(state.watermark):
            return None
        bounds = key_bounds(state, batch, self.threads.number)
        number = len(bounds) - 1
        if number < 2:
            return None
        part_plan, whole = plan.for_parts(number), state.draft()
        if batch is not None:
            whole.newest = max(state.newest, batch.extent.high)
        parts = divided(plan, whole, bounds)
        tables: list[pa.Table] = []
        emissions: list[Emission] = []
        try:
            if batch is not None:
                self.threads.map(
                    lambda part, begin, end: add(part_plan, part, share_of(batch, begin, end)),
                    parts, bounds[:-1], bounds[1:],
                )  # fmt: skip
                if _is_near_limit(plan, sum(len(part.slices) for part in parts)):
                    return None
            whole.slices = max((part.slices for part in parts), key=len)  # for the size of portions
            on_the_way = portions(plan, whole, watermark)
            for stop in [*on_the_way, watermark]:
                if emissions:
                    tables.append(self.table(plan, state, emissions))
                found = self.threads.map(
                    lambda part, begin, stop=stop: [
                        _among_all(e, begin) for e in complete(part_plan, part, stop, stop < INF)
                    ],
                    parts, bounds[:-1],
                )  # fmt: skip
                emissions = [e for part in found for e in part]
        except MuntinError:
            return None
        joined(state, parts, bounds)
        return tables, emissions

    def table(self, plan: BoundPlan, state: State, emissions: list[Emission]) -> pa.Table:
        """Rows of results, made by all threads where they are many."""
        many = sum(len(e.windows) for e in emissions) >= FEW_ROWS
        return plan.results.table(emissions, state.keys, self.threads if many else None)

    def _pieces(self, plan: BoundPlan, state: State, batch: Batch) -> list[Piece] | None:
        """Pieces of the batch, as many as there are threads; None where tuples must be kept or are late."""
        if len(batch) < FEW or state.tuples is not None or plan.served.with_empty:
            return None
        if batch.extent.low < plan.final(state.watermark):
            return None
        if self._blocks is None or self._blocks.times is not batch.time:  # bad tuples, or another unit
            self.extent(batch.time)
        assert self._blocks is not None
        edges = edges_around(plan, state, batch.extent.low, batch.extent.high, batch.time)
        return pieces_of(batch, edges, plan.served.gap, self._blocks, self.threads.number)

    def _sliced(self, plan: BoundPlan, state: State, batch: Batch, pieces: list[Piece]) -> list[SliceTable]:
        edges = edges_around(plan, state, batch.extent.low, batch.extent.high, batch.time)
        gap, partials = plan.served.gap, plan.partials
        return self.threads.map(lambda piece: slice_piece(batch, piece, edges, gap, partials), pieces)


def _take_over(state: State, part: State) -> None:
    """Take over the slices that were added to a draft."""
    state.slices, state.metrics = part.slices, part.metrics
    state.newest, state.has_late_change = part.newest, part.has_late_change


def _is_near_limit(plan: BoundPlan, size: int) -> bool:
    """Whether this many slices may exceed the limit of windows: a part sees only its own windows."""
    return size * plan.served.most_overlapping > plan.limit.most(size)


def _among_all(emission: Emission, before: int) -> Emission:
    """The windows of a part with this many keys before its own, ready to be ordered among those of others."""
    windows = emission.windows
    runs = Runs.of(windows.end, windows.start, windows.query) if emission.is_first else None
    return replace(emission, windows=windows.behind(before) if before else windows, runs=runs)
