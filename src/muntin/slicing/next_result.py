"""The next watermark that can bring a result, and the one that brings the last.

Below the next one it makes no difference whether tuples are sliced or wait in a buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muntin.slicing.emission.listing import list_sessions
from muntin.slicing.tuple_tables import window_of
from muntin.timeline import INF, LIMIT, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["latest_result", "next_result", "quiet_until"]


def quiet_until(plan: BoundPlan, state: State) -> int:
    """The first watermark at which a window begins or ends; NEG_INF where that is not known.

    Known in O(1), so that every step knows it: for periodic windows without lateness and early results.
    """
    simple = plan.served.only_edges and not plan.lateness and not plan.shows_early
    if not simple or abs(state.watermark) >= LIMIT:
        return NEG_INF
    return plan.served.edges.after(state.watermark)


def next_result(plan: BoundPlan, state: State) -> int:
    """No smaller watermark brings a result, unless tuples arrive that make sessions of their own.

    NEG_INF where the watermark alone does not decide: a tuple may end a tuple-driven window, make empty
    windows known, or change an early result. Costs O(slices) with sessions. The answer may be too small:
    where no tuple lies in a window that ends, or a window only begins.
    """
    served, now = plan.served, state.watermark
    if plan.shows_early or served.tuple_driven or served.with_empty or now in (NEG_INF, INF):
        return NEG_INF
    if state.late_tuples:
        return now + 1  # the next watermark judges them, and may complete their sessions
    next_window_end = served.edges.after(now)
    for level, gap in enumerate(served.gaps.tolist()):
        ends = list_sessions(0, NEG_INF, gap, level, state.slices).complete_at
        next_window_end = min(next_window_end, int(np.min(ends, where=ends > now, initial=INF)))
    return next_window_end


def latest_result(plan: BoundPlan, state: State) -> int:
    """The watermark that completes every window over the tuples that have arrived, where one can.

    Where tuples wait to be judged, it is higher than the current watermark: only one that moves judges them.
    """
    newest = max(state.newest, state.newest_late)
    if newest == NEG_INF:
        return state.watermark
    reach = [state.watermark + bool(state.late_tuples), newest + 1]
    reach += [served.window.complete_at(newest) for served in plan.served.all]
    if state.tuples is not None:
        for served in plan.served.tuple_driven:
            contexts = state.tuples.sliced.context.get(served.name)
            if contexts is not None:
                reach.append(window_of(served).open_until(contexts))
    return max(reach)
