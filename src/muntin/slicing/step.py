"""One step: tuples are added to the state, the watermark moves on, and the windows that ended come out.

A step works on a draft. If it fails, the state that it was given is unchanged, and nothing has to be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from muntin.errors import PlacedError
from muntin.query import EachBatch, Every
from muntin.slicing.arrivals import Arrivals, Misfit, Times, arrival_numbers, out_of_order
from muntin.slicing.batch import Batch
from muntin.slicing.emission.changes import forget_compared
from muntin.slicing.emission.deferred_rows import DeferredRows
from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.empty_windows import extend_extents
from muntin.slicing.emission.intermediate_watermarks import intermediate_watermarks
from muntin.slicing.emission.window_manager import due_results, early_results, forget_expired
from muntin.slicing.emission.window_values import report_errors
from muntin.slicing.error_places import add_place
from muntin.slicing.eviction import evict
from muntin.slicing.failing_tuples import accepted
from muntin.slicing.key_compaction import compact
from muntin.slicing.lateness import judge
from muntin.slicing.next_result import quiet_until
from muntin.slicing.numeric_step import MOST_TUPLES, numeric_results
from muntin.slicing.parallel.steps import ParallelSteps
from muntin.slicing.slice_manager import add_tuples, settle
from muntin.slicing.tuple_slicer import slice_tuples
from muntin.slicing.window_limit import check_overlapping, check_unprompted
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["add", "advance", "complete", "early_look", "early_table", "step", "take_in", "tidy"]


def step(
    plan: BoundPlan,
    state: State,
    arrivals: Arrivals,
    data: pa.RecordBatch | None = None,
    watermark: int | None = None,
    *,
    times: Times | None = None,
    misfits: Sequence[Misfit] = (),
    lag: int | None = None,
    looks: bool = True,
    parallel: ParallelSteps | None = None,
    defer: bool = False,
) -> tuple[State, pa.Table | DeferredRows]:
    """Add a batch, then move the watermark on: the next state, and the results.

    `times`: the times of the batch, where all its tuples are known to be good. `misfits`: values that
    the batch could not hold. `lag`: the watermark follows the newest tuple by this. `looks`: whether early
    results after a batch are emitted. In order each tuple is a watermark. INF is the end of the stream.
    `parallel` runs parts of large steps on threads. `defer`: the table of results may be made later.
    """
    new = state.draft()
    results: list[pa.Table] = []
    try:
        batch: Batch | None = None
        raw: pa.RecordBatch | None = None
        has_input = data is not None
        if data is not None:
            batch, data = take_in(plan, new, arrivals, data, times, misfits, parallel)
            raw = data if plan.spec.late == "route" else None
        looks = looks and has_input and isinstance(plan.spec.early, EachBatch)
        if batch is not None and plan.in_order:
            watermark = int(batch.time[-1])
        if lag is not None:
            watermark = _newest(plan, new, batch) - lag
        if watermark is not None and plan.numeric is not None:
            table = _in_one_call(plan, new, batch, max(watermark, state.watermark), parallel, defer)
            if table is not None:
                return new, table
        if batch is not None and (parallel is None or watermark is None or looks):
            add(plan, new, batch, raw, parallel)
            batch = None
        if looks:
            results.append(_table(plan, new, early_look(plan, new)))
        if watermark is not None and batch is None and not looks and new.is_quiet(watermark):
            new.watermark = max(watermark, state.watermark)
        elif watermark is not None:
            results += advance(plan, new, max(watermark, state.watermark), batch, raw, parallel)
    except BaseException as error:
        state.reset_store()  # it may have followed slices that do not exist
        if isinstance(error, PlacedError):
            add_place(error, plan, new)
        raise
    if len(results) == 1:
        return new, results[0]
    return new, pa.concat_tables(results) if results else plan.results.empty


def _in_one_call(
    plan: BoundPlan,
    state: State,
    batch: Batch | None,
    watermark: int,
    parallel: ParallelSteps | None,
    defer: bool,
) -> pa.Table | DeferredRows | None:
    """The step in compiled code; None where it cannot do it, several threads could, or nothing is to do."""
    if parallel is not None and (batch is None or len(batch.time) > MOST_TUPLES):
        return None
    if batch is None and state.is_quiet(watermark):
        return None
    table = numeric_results(plan, state, batch, watermark, defer)
    if table is None:
        return None
    if len(state.slices.fresh) > state.evict_above:
        evict(plan, state)
    if state.key_count > state.compact_above:
        compact(plan, state)
    return table


def _newest(plan: BoundPlan, state: State, batch: Batch | None) -> int:
    """The newest time that is not late, once the batch is added."""
    if batch is None or batch.extent.high < plan.final(state.watermark):
        return state.newest
    return max(state.newest, batch.extent.high)


def early_table(plan: BoundPlan, state: State) -> tuple[State, pa.Table]:
    """The next state after a look at open windows, and their early results."""
    new = state.draft()
    try:
        return new, _table(plan, new, early_look(plan, new))
    except BaseException as error:
        state.reset_store()
        if isinstance(error, PlacedError):
            add_place(error, plan, new)
        raise


def take_in(
    plan: BoundPlan,
    state: State,
    arrivals: Arrivals,
    data: pa.RecordBatch,
    times: Times | None = None,
    misfits: Sequence[Misfit] = (),
    parallel: ParallelSteps | None = None,
) -> tuple[Batch | None, pa.RecordBatch]:
    """The usable tuples of a batch with numbered keys, and the same tuples as they arrived.

    A column ARRIVAL orders tuples of one time; without it they are ordered as they arrive.
    """
    binding, spec = plan.binding, plan.spec
    if times is None:
        data, times = arrivals.good(data, binding, misfits, state)
    lifted = None
    if binding.cannot_fail:
        values = binding.evaluate(data)
    elif data.num_rows:
        data, times, values, lifted = accepted(plan, state, arrivals, data, times)
    rows = data.num_rows
    if not rows:
        return None, data
    ids = None
    if spec.keys:
        columns = [data.column(k) for k in spec.keys]
        ids = state.keys.encode(columns) if parallel is None else parallel.encode(state.keys, columns)
    state.key_count = len(state.keys)
    arrival = arrival_numbers(data, state)
    batch = Batch(ids, times[0], arrival, values, None, times[1], state.key_count, lifted)
    if plan.in_order and (not batch.extent.ordered or batch.extent.low < state.newest):
        raise out_of_order(batch.time, state.newest, plan.binding.time)
    state.arrivals += rows
    state.metrics.tuples += rows
    return batch, data


def add(
    plan: BoundPlan,
    state: State,
    batch: Batch,
    raw: pa.RecordBatch | None = None,
    parallel: ParallelSteps | None = None,
) -> None:
    """Slice or keep these tuples; `raw` are the same as they arrived, for the late output."""
    if parallel is None or not parallel.add(plan, state, batch):
        add_tuples(plan, state, batch, raw)
    if plan.served.with_empty:
        final = plan.final(state.watermark)
        on_time = batch if batch.extent.low >= final else batch.take(np.flatnonzero(batch.time >= final))
        extend_extents(plan, state, on_time.key, on_time.time, on_time.time, final)


def advance(
    plan: BoundPlan,
    state: State,
    watermark: int,
    batch: Batch | None = None,
    raw: pa.RecordBatch | None = None,
    parallel: ParallelSteps | None = None,
) -> list[pa.Table]:
    """Move the watermark on; the results of the windows that this completes.

    On several threads the batch is not added yet: each thread may add and complete a share.
    """
    tables = None if parallel is None else _on_threads(plan, state, watermark, batch, raw, parallel)
    if tables is None:
        tables = _on_one_thread(plan, state, watermark)
    compact(plan, state)
    state.quiet_until = quiet_until(plan, state)
    return tables


def _on_threads(
    plan: BoundPlan,
    state: State,
    watermark: int,
    batch: Batch | None,
    raw: pa.RecordBatch | None,
    parallel: ParallelSteps,
) -> list[pa.Table] | None:
    """Add the batch and complete windows on threads; None where windows remain to be completed."""
    if batch is not None and watermark == INF:
        table, added = parallel.run(plan, state, batch)
        if table is not None:
            return [table]
        batch = None if added else batch
    if batch is not None and parallel.add(plan, state, batch):
        batch = None
    before, completed = state.watermark, parallel.complete(plan, state, batch, watermark, add, complete)
    if completed is not None:
        tables, emissions = completed
        if watermark < INF:
            emissions += tidy(plan, state, before)
        return [*tables, _table(plan, state, emissions, parallel)]
    if batch is not None:
        add(plan, state, batch, raw)
    return None


def _on_one_thread(plan: BoundPlan, state: State, watermark: int) -> list[pa.Table]:
    earlier = intermediate_watermarks(plan, state, watermark)
    if earlier:
        check_overlapping(plan, state, state.watermark, watermark)
    tables = [_table(plan, state, complete(plan, state, each, keep_expired=True)) for each in earlier]
    return [*tables, _table(plan, state, complete(plan, state, watermark))]


def complete(plan: BoundPlan, state: State, watermark: int, keep_expired: bool = False) -> list[Emission]:
    """Move the watermark on; the windows that this completes, with their values.

    `keep_expired`: skip eviction, because the caller advances again immediately, or discards the state.
    """
    before, closing = state.watermark, watermark == INF
    judges = watermark > before and bool(state.late_tuples)
    if judges:
        state.newest = max(state.newest, state.newest_late)
    if plan.served.unprompted:
        check_unprompted(plan, state, before, watermark)
    if state.tuples is not None and closing:
        slice_tuples(plan, state, before)
    state.watermark = watermark
    if state.tuples is not None:
        slice_tuples(plan, state, watermark)
        if plan.shows_early:
            slice_tuples(plan, state, INF)
    if judges:
        judge(plan, state, plan.final(before))
    emissions = due_results(plan, state, before, closing, _crosses_period(plan, before, watermark))
    if state.tuples is not None:
        state.tuples.has_unseen = False
    return emissions if keep_expired else emissions + tidy(plan, state, before)


def tidy(plan: BoundPlan, state: State, before: int) -> list[Emission]:
    """After windows were emitted: the early results of a period that has passed, and eviction."""
    emissions: list[Emission] = []
    looks = _crosses_period(plan, before, state.watermark)
    if looks:
        emissions = early_results(plan, state)
    # Until the next early look, fresh means: changed since the last one.
    settle(state, shown=looks or not plan.shows_early)
    evict(plan, state)
    forget_expired(plan, state)
    return emissions


def early_look(plan: BoundPlan, state: State) -> list[Emission]:
    """The windows that have changed since they were last emitted, complete or not."""
    check_unprompted(plan, state, state.watermark, state.watermark)
    if state.tuples is not None:
        slice_tuples(plan, state, state.watermark)
        slice_tuples(plan, state, INF)
    forget_compared(plan, state, state.watermark)
    emissions = early_results(plan, state)
    settle(state, shown=True)
    return emissions


def _crosses_period(plan: BoundPlan, before: int, watermark: int) -> bool:
    early = plan.spec.early
    if not isinstance(early, Every) or watermark in (before, INF):
        return False
    return before == NEG_INF or before // early.period < watermark // early.period


def _table(
    plan: BoundPlan, state: State, emissions: list[Emission], parallel: ParallelSteps | None = None
) -> pa.Table:
    """These windows as rows of results; skipped errors are counted and logged."""
    if state.failed:
        report_errors(plan, state)
    if not emissions:
        return plan.results.empty
    if parallel is not None:
        return parallel.table(plan, state, emissions)
    return plan.results.table(emissions, state.keys)
