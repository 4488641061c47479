"""The Window Manager: at each watermark, the windows that ended, by the policy of each window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.emission.changes import changes_only, forget_compared
from muntin.slicing.emission.emissions import Emission, with_values
from muntin.slicing.emission.empty_windows import forget_extents, list_with_empty
from muntin.slicing.emission.first import first_results
from muntin.slicing.emission.listing import Listing, list_context_free, list_sessions, list_tuple_driven
from muntin.slicing.emission.revisions import reconcile, update
from muntin.slicing.served import ServedWindow
from muntin.slicing.tuple_slicer import open_windows
from muntin.slicing.window_limit import check_overlapping
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["due_results", "early_results", "forget_expired", "open_results"]

Mask = npt.NDArray[np.bool_]


def due_results(
    plan: BoundPlan, state: State, before: int, closing: bool = False, look_follows: bool = False
) -> list[Emission]:
    """Results due at the watermark that the state has reached; `before` is the one that it replaces.

    `look_follows`: early results of the same step are listed next.
    """
    forget_compared(plan, state, before)
    if plan.emits_once and not plan.lateness and not plan.served.sessions and not plan.served.tuple_driven:
        listings = _context_free(plan, state, before, state.watermark)
        first = with_values(plan, state, [e for listing in listings for e in first_results(listing)])
        return changes_only(plan, state, first, look_follows)
    emissions = _due_context_free(plan, state, before)
    for served in plan.served.sessions:
        emissions += _due_context_aware(plan, state, served, _sessions(plan, state, served), before)
    for served in plan.served.tuple_driven:
        listing = _tuple_driven(plan, state, served, with_open=closing or plan.shows_early)
        emissions += _due_context_aware(plan, state, served, listing, before)
    _expire_sessions(plan, state)
    return changes_only(plan, state, with_values(plan, state, emissions), look_follows)


def early_results(plan: BoundPlan, state: State) -> list[Emission]:
    """Results of windows that have changed since they were last emitted, complete or not."""
    emissions: list[Emission] = []
    changed = state.slices.fresh > 0
    now, final = state.watermark, plan.final(state.watermark)
    for after, upto in ((final, now), (now, INF)):
        for listing in _context_free(plan, state, after, upto, changed):
            for number, instances in listing.by_window():
                served = plan.served.all[number]
                # Complete instances of a window that is emitted empty follow below, with the empty ones.
                if upto == INF or not served.emits_empty:
                    emissions += reconcile(plan, state, served, instances, early=True)
    emissions += _with_empty(plan, state, now)
    for served in plan.served.sessions:
        emissions += reconcile(plan, state, served, _sessions(plan, state, served), final, early=True)
    for served in plan.served.tuple_driven:
        listing = _tuple_driven(plan, state, served, with_open=True)
        emissions += reconcile(plan, state, served, listing, final, early=True)
    return changes_only(plan, state, with_values(plan, state, emissions))


def open_results(plan: BoundPlan, state: State) -> list[Emission]:
    """All windows that contain a tuple and are not complete, with their values so far.

    In the order of the windows of the query, then by key, start and end.
    """
    now, open_ones = state.watermark, []
    for listing in _context_free(plan, state, now, INF):
        open_ones += [instances for _, instances in listing.by_window()]
    open_ones += [_sessions(plan, state, served) for served in plan.served.sessions]
    for served in plan.served.tuple_driven:
        open_ones.append(_tuple_driven(plan, state, served, with_open=True, partial=True))
    emissions = []
    for listing in open_ones:
        listing = listing.take(listing.complete_at > now)
        if len(listing):
            emissions.append(Emission(listing.take(np.lexsort((listing.end, listing.start, listing.key)))))
    emissions.sort(key=lambda emission: int(emission.windows.number[0]))
    return with_values(plan, state, emissions)


def forget_expired(plan: BoundPlan, state: State) -> None:
    """Drop emitted windows that have expired, extents of keys that are forgotten, and values not compared."""
    if state.emitted:
        final = plan.final(state.watermark)
        state.emitted = {name: known.since(final) for name, known in state.emitted.items()}
    forget_extents(plan, state)
    forget_compared(plan, state, state.watermark)


def _due_context_free(plan: BoundPlan, state: State, before: int) -> list[Emission]:
    emissions: list[Emission] = []
    remembered, with_empty = plan.policies
    for listing in _context_free(plan, state, before, state.watermark):
        if plan.emits_once:
            emissions += first_results(listing)
            continue
        emissions += first_results(listing.take(~(remembered | with_empty)[listing.number]))
        for number, instances in listing.take((remembered & ~with_empty)[listing.number]).by_window():
            emissions += reconcile(plan, state, plan.served.all[number], instances)
    emissions += _with_empty(plan, state, before)
    if plan.lateness and state.has_late_change and before > NEG_INF:
        emissions += _changed_context_free(plan, state, before)
    return emissions


def _changed_context_free(plan: BoundPlan, state: State, before: int) -> list[Emission]:
    """Windows emitted earlier that contain tuples which arrived since."""
    changed = (state.slices.fresh > 0) & (state.slices.first < before)
    emissions: list[Emission] = []
    if not changed.any():
        return emissions
    for listing in _context_free(plan, state, before - plan.lateness, before, changed):
        for number, instances in listing.by_window():
            served = plan.served.all[number]
            if served in plan.remembered:
                emissions += [] if served.emits_empty else reconcile(plan, state, served, instances)
            elif not served.emits_empty:
                emissions.append(update(state, served, instances))
    return emissions


def _with_empty(plan: BoundPlan, state: State, before: int) -> list[Emission]:
    emissions: list[Emission] = []
    for served in plan.served.with_empty:
        listing = list_with_empty(plan, state, served, before)
        remembered = served in plan.remembered
        emissions += reconcile(plan, state, served, listing) if remembered else first_results(listing)
    return emissions


def _due_context_aware(
    plan: BoundPlan, state: State, served: ServedWindow, listing: Listing, before: int
) -> list[Emission]:
    """Windows that depend on tuples: they may have moved since they were emitted."""
    complete = listing.complete_at <= state.watermark
    if served not in plan.remembered:
        return first_results(listing.take(complete))
    if state.has_late_change or plan.shows_early:
        return reconcile(plan, state, served, listing, before - plan.lateness)
    return reconcile(plan, state, served, listing.take(complete & (listing.complete_at > before)))


def _expire_sessions(plan: BoundPlan, state: State) -> None:
    """Slices of expired sessions take no part in sessions of that gap any more."""
    final = plan.final(state.watermark)
    for level, gap in enumerate(plan.served.gaps):
        listing = list_sessions(0, NEG_INF, int(gap), level, state.slices)
        over = listing.complete_at <= final
        if over.any():
            rows = listing.rows[np.repeat(over, listing.hi - listing.lo)]
            levels = state.slices.level.copy()
            levels[rows] = np.maximum(levels[rows], level + 1)
            state.slices = state.slices.changed(level=levels)


def _context_free(
    plan: BoundPlan, state: State, after: int, upto: int, driver: Mask | None = None
) -> list[Listing]:
    check_overlapping(plan, state, after, upto, driver)
    keys, newest = state.key_count, state.newest
    return list_context_free(plan.served, state.slices, keys, newest, after, upto, plan.limit, driver)


def _sessions(plan: BoundPlan, state: State, served: ServedWindow) -> Listing:
    level = plan.served.session_class(served)
    gap = int(plan.served.gaps[level])
    return list_sessions(plan.served.number(served), served.since, gap, level, state.slices)


def _tuple_driven(
    plan: BoundPlan, state: State, served: ServedWindow, with_open: bool, partial: bool = False
) -> Listing:
    assert state.tuples is not None
    closed_windows = state.tuples.closed_windows.get(served.name, ClosedWindows())
    if with_open:
        closed_windows = closed_windows.join(open_windows(plan, state, served, partial))
    expired = state.tuples.expired.get(served.name, ExpiredWindows())
    return list_tuple_driven(
        plan.served.number(served), closed_windows, expired, state.slices, state.key_count
    )
