"""Emission of empty windows: all instances between the first and the last tuple of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.emission.key_extents import KeyExtents
from muntin.slicing.emission.listing import Listing, list_given
from muntin.slicing.served import ServedWindow
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["extend_extents", "forget_extents", "list_with_empty", "most_with_empty"]

Column = npt.NDArray[np.int64]


def extend_extents(
    plan: BoundPlan, state: State, key: Column, first: Column, last: Column, final: int
) -> None:
    """Extend the extents of keys by these tuples or slices; `final` is the final time of their arrival."""
    for served in plan.served.with_empty:
        extents = _extents(plan, state, served).extended(served, key, first, last, final, plan.forget)
        state.extents = state.extents | {served.name: extents}


def list_with_empty(plan: BoundPlan, state: State, served: ServedWindow, before: int) -> Listing:
    """The instances of a window that end by the watermark and were not emitted, empty ones too."""
    expired = max(before - plan.lateness, NEG_INF)
    upto = state.watermark
    if served.window.endless and upto == INF:
        upto = max(before, served.window.complete_at(state.newest))
    extents, key, start, end = _extents(plan, state, served).windows(served, expired, upto)
    state.extents = state.extents | {served.name: extents}
    listing = list_given(plan.served.number(served), key, start, end, state.slices, state.key_count)
    # A window that expired while it was empty stays so: what lies in it arrived too late for it.
    listing.hi = np.where(listing.end <= expired, listing.lo, listing.hi)
    return listing


def most_with_empty(plan: BoundPlan, state: State, served: ServedWindow, before: int, upto: int) -> int:
    """An upper bound of the windows, empty or not, that are emitted when the watermark reaches `upto`."""
    return _extents(plan, state, served).number(served, max(before - plan.lateness, NEG_INF), upto)


def forget_extents(plan: BoundPlan, state: State) -> None:
    """Drop the extents of lives that are over."""
    if plan.forget is None:
        return
    for served in plan.served.with_empty:
        if served.ends_with_key:
            extents = _extents(plan, state, served)
            left = extents.without_expired(served, plan.final(state.watermark), plan.forget)
            state.extents = state.extents | {served.name: left}


def _extents(plan: BoundPlan, state: State, served: ServedWindow) -> KeyExtents:
    extents = state.extents.get(served.name)
    if extents is None:
        of_lives = plan.forget is not None and served.ends_with_key
        extents = KeyExtents.of_lives() if of_lives else KeyExtents()
    return extents.grown(state.key_count)
