"""A whole table by time: a thread slices the tuples of a piece, and emits the windows that end in it.

Windows that end at known edges are emitted in the order of their ends, so the results of the pieces follow
each other. The windows at a seam, which may lie over slices of two pieces, are emitted apart, over
those slices:

    piece            [ ---------------------- )[ ---------------------- )
    windows end in   ( ----------------------- ]                ( ------ ...
    seam                              [ ------- | ------- )
    windows end in                              ( ------- ]

A seam reaches back and ahead as far as the longest window, so that each window finds all of its slices.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa

from muntin.metrics import Metrics
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.emission.portions import stops
from muntin.slicing.emission.window_manager import due_results
from muntin.slicing.parallel.pieces import Piece
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.slice_manager import add_slices
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.state import State
from muntin.timeline import INF, NEG_INF

__all__ = ["results_by_time", "suits_pieces"]

LONG = 4
"""The least length of a piece, in lengths of the longest window: otherwise seams are too much of it."""


def suits_pieces(plan: BoundPlan, pieces: list[Piece]) -> bool:
    """Whether pieces of time can emit their windows, with few windows at seams."""
    if len(pieces) < 2 or not plan.served.only_edges:
        return False
    return all(piece.high - piece.low >= LONG * plan.served.longest for piece in pieces)


def results_by_time(
    plan: BoundPlan, state: State, pieces: list[Piece], tables: list[SliceTable], threads: Threads
) -> pa.Table:
    """The results of all windows over the slices of these pieces; the state counts the work."""
    longest, seams = plan.served.longest, [piece.low for piece in pieces[1:]]
    tasks: list[tuple[bool, int, int, int]] = []
    before = NEG_INF
    for number, (piece, until) in enumerate(zip(pieces, [*seams, INF], strict=True)):
        on_the_way = []
        if len(tables[number]):
            on_the_way = stops(plan.served, tables[number], state.key_count, piece.high, before, until)
        tasks += [(False, number, *bounds) for bounds in pairwise([before, *on_the_way, until])]
        if until < INF:
            before = until + longest
            tasks.append((True, number, until, before))

    def emit(seam: bool, number: int, before: int, until: int) -> tuple[pa.Table, Metrics]:
        part = state.draft()
        part.metrics, part.slices = Metrics(), SliceTable.empty(plan.partials)
        if seam:
            behind, ahead = tables[number], tables[number + 1]
            add_slices(plan, part, behind.take(behind.first >= until - 2 * longest))
            add_slices(plan, part, ahead.take(ahead.first < until))
            part.metrics = Metrics()  # these tuples are counted once, below
        else:
            part.slices = tables[number]
        part.watermark = until
        emissions = due_results(plan, part, before)
        return plan.results.table(emissions, part.keys), part.metrics

    emitted = threads.map(emit, *zip(*tasks, strict=True))
    for _, metrics in emitted:
        state.metrics.windows += metrics.windows
        state.metrics.merge_combines += metrics.merge_combines
    tuples = sum(int(table.n.sum()) for table in tables)
    state.metrics.update_combines += tuples * len(plan.partials.partials)
    return pa.concat_tables([table for table, _ in emitted])
