"""When results can come out next, and at the latest.

Until the next ones nobody can tell whether a tuple was sliced or waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muntin.slicing.listing import list_sessions
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator


def is_foreseeable(operator: SlicingOperator) -> bool:
    """Whether the watermark alone decides when results come out, for tuples that are not late.

    So it is for windows on time and for sessions. A tuple may also end a window that tuples cut, make
    empty windows known, or change what was shown early.
    """
    live = operator.live
    told = operator.binding is not None and operator.spec.early is None
    return told and not live.driven and not live.spanned


def next_due(operator: SlicingOperator) -> int:
    """No smaller watermark than this brings a result, unless tuples come that make sessions of their own.

    Costs O(slices) with sessions. It may be too small: where no tuple lies in a window that ends, or a
    window only begins.
    """
    slices = operator.slices
    now = slices.watermark
    if now in (NEG_INF, INF):
        return NEG_INF
    due = slices.live.edges.after(now)
    for level, gap in enumerate(slices.live.gaps.tolist()):
        ends = list_sessions(0, NEG_INF, gap, level, slices.table).due
        due = min(due, int(np.min(ends, where=ends > now, initial=INF)))
    return due


def latest_due(operator: SlicingOperator) -> int:
    """The watermark that completes every window over the tuples seen so far, as far as one can.

    Where tuples wait to be judged, it is higher than the watermark so far: only one that moves judges them.
    """
    if operator.binding is None:
        return operator.watermark
    slices = operator.slices
    newest = max(slices.newest, slices.newest_pending)
    if newest == NEG_INF:
        return operator.watermark
    reach = [operator.watermark + bool(slices.waiting), newest + 1]
    return max([*reach, *(query.window.complete_at(newest) for query in operator.live.queries)])
