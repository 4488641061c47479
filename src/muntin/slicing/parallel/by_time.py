"""Results of a whole table by time: each thread emits the windows that end in a range of time.

Windows that end at known edges are emitted in the order of their ends, so the results of the ranges are
concatenated. Windows at a seam, which may have slices of two ranges, are emitted by tasks of their own:

    range            [ ---------------------- )[ ---------------------- )
    windows end in   ( ----------------------- ]                ( ------ ...
    seam                              [ ------- | ------- )
    windows end in                              ( ------- ]

A seam extends by the longest window to both sides, so it has all slices of its windows.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa

from muntin.metrics import Metrics
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.emission.intermediate_watermarks import watermarks_between
from muntin.slicing.emission.window_manager import due_results
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.parallel.time_ranges import TimeRange
from muntin.slicing.slice_manager import add_slices
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.state import State
from muntin.timeline import INF, NEG_INF

__all__ = ["can_emit_by_range", "results_by_time"]

LONG = 4
"""The least length of a range, in lengths of the longest window: seams repeat work (decision 56)."""


def can_emit_by_range(plan: BoundPlan, spans: list[TimeRange]) -> bool:
    """Whether windows can be emitted by ranges of time, with few windows at seams."""
    if len(spans) < 2 or not plan.served.only_edges or plan.shows_changes:
        return False
    return all(span.high - span.low >= LONG * plan.served.longest for span in spans)


def results_by_time(
    plan: BoundPlan, state: State, spans: list[TimeRange], tables: list[SliceTable], threads: Threads
) -> pa.Table:
    """The results of all windows over the slices of these ranges; the state counts the combines."""
    longest, seams = plan.served.longest, [span.low for span in spans[1:]]
    tasks: list[tuple[bool, int, int, int]] = []
    before = NEG_INF
    for number, (span, until) in enumerate(zip(spans, [*seams, INF], strict=True)):
        between = []
        if len(tables[number]):
            keys, newest = state.key_count, span.high
            between = watermarks_between(plan.served, tables[number], keys, newest, before, until)
        tasks += [(False, number, *bounds) for bounds in pairwise([before, *between, until])]
        if until < INF:
            before = until + longest
            tasks.append((True, number, until, before))

    def emit(seam: bool, number: int, before: int, until: int) -> tuple[pa.Table, Metrics]:
        task_state = state.draft()
        task_state.metrics, task_state.slices = Metrics(), SliceTable.empty(plan.partials)
        if seam:
            behind, ahead = tables[number], tables[number + 1]
            add_slices(plan, task_state, behind.take(behind.first >= until - 2 * longest))
            add_slices(plan, task_state, ahead.take(ahead.first < until))
            task_state.metrics = Metrics()  # these tuples are counted once, below
        else:
            task_state.slices = tables[number]
        task_state.watermark = until
        emissions = due_results(plan, task_state, before)
        return plan.results.table(emissions, task_state.keys), task_state.metrics

    emitted = threads.map(emit, *zip(*tasks, strict=True))
    for _, metrics in emitted:
        state.metrics.windows += metrics.windows
        state.metrics.merge_combines += metrics.merge_combines
    tuples = sum(int(table.n.sum()) for table in tables)
    state.metrics.lifted(tuples, len(plan.partials.partials))
    return pa.concat_tables([table for table, _ in emitted])
