"""Relations between the tables of tuples in a snapshot: ranks, contexts and closed windows must agree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.listing_kernels import rank_ranges
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.slice_table_kernels import key_offsets
from muntin.slicing.snapshots.checks import refuse_unless
from muntin.slicing.state import State
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import window_of
from muntin.timeline import INF, NEG_INF
from muntin.windows.context_checks import KeyPositions

__all__ = ["check_tuples"]


def check_tuples(plan: BoundPlan, state: State) -> None:
    """Raise a SnapshotError where the tables of tuples contradict each other."""
    tuples = state.tuples
    assert tuples is not None
    _check_moments(plan, state, tuples)
    _check_ranks(tuples)
    _check_slices(tuples, state.slices)
    _check_lives(plan, tuples)
    for served in plan.served.tuple_driven:
        _check_contexts(plan, tuples, served)


def _check_moments(plan: BoundPlan, state: State, tuples: TupleState) -> None:
    """Windows that time alone closes were emitted up to the watermark: a step emits those from there on."""
    until, watermark = tuples.sliced_until, state.watermark
    refuse_unless(until in (NEG_INF, INF, watermark), f"tuples must be sliced until {watermark}: got {until}")
    final = plan.final(watermark)
    waiting = all(batch.times[0] >= final for batch in tuples.arrived if len(batch))
    refuse_unless(waiting, f"tuples that were not sliced yet must not lie before {final}")


def _check_ranks(tuples: TupleState) -> None:
    base, keys = tuples.positions.base, len(tuples.positions)
    behind = base + np.diff(tuples.offsets)
    sizes = {len(tuples.committed), len(tuples.sliced)}
    refuse_unless(sizes == {keys}, f"progress must cover {keys} keys: got {sorted(sizes)}")
    ranks = (np.zeros(keys), base, tuples.committed.rank, tuples.sliced.rank, behind)
    in_order = all((low <= high).all() for low, high in pairwise(ranks))
    refuse_unless(in_order, "ranks must not decrease from base, committed and sliced to arrived")


def _check_slices(tuples: TupleState, table: SliceTable) -> None:
    """Slices of ranked tuples end where their key is sliced, and closed windows where some slice does."""
    keys = len(tuples.positions)
    ranked = np.flatnonzero(table.rank >= 0)
    key, rank, n = table.key[ranked], table.rank[ranked], table.n[ranked]
    refuse_unless(
        (key < keys).all() and (rank + n <= tuples.sliced.rank[key]).all(), "slices must hold sliced tuples"
    )
    follows = (key[1:] > key[:-1]) | (rank[1:] >= rank[:-1] + n[:-1])
    refuse_unless(follows.all(), "the slices of a key must hold its tuples in turn")
    for closed_windows in tuples.closed_windows.values():
        refuse_unless(
            (closed_windows.key < keys).all() and (closed_windows.begin < closed_windows.end).all(),
            "closed windows must hold tuples",
        )
        lo, hi = np.empty((2, len(closed_windows)), dtype=np.int64)
        rank_ranges(
            key_offsets(key, keys), rank, closed_windows.key, closed_windows.begin, closed_windows.end, lo, hi
        )
        there = (lo < hi) & (closed_windows.end <= tuples.sliced.rank[closed_windows.key])
        refuse_unless(
            there.all() and (rank[lo] == closed_windows.begin).all(), "a closed window must have slices"
        )
    for expired in tuples.expired.values():
        refuse_unless(
            (expired.key < keys).all() and (expired.begin <= expired.end).all(),
            "expired windows must end after their begin",
        )


def _check_lives(plan: BoundPlan, tuples: TupleState) -> None:
    """Where keys are forgotten, every key has a life, and the life began with a tuple that was seen."""
    for progress in (tuples.committed, tuples.sliced):
        both = progress.life is not None and progress.last is not None
        wanted = plan.forget is not None and len(progress) > 0
        refuse_unless(both or not wanted, "keys must have lives where silent ones are forgotten")
        refuse_unless(
            progress.life is None or (both and (progress.life <= progress.rank).all()),
            "a life must begin with a tuple that was seen",
        )


def _check_contexts(plan: BoundPlan, tuples: TupleState, served: ServedWindow) -> None:
    """The contexts of a window have seen the tuples that arrived, from the first one that it counts."""
    window, keys = window_of(served), len(tuples.positions)
    base, arrived = tuples.positions.base, np.diff(tuples.offsets)
    skipped = np.zeros(keys, dtype=np.int64)
    if served.since > NEG_INF:
        skipped = tuples.positions.skipped.get(served.name, np.full(keys, -1, dtype=np.int64))
    refuse_unless((skipped <= base + arrived).all(), "a window must not skip more tuples than arrived")
    time = np.full(keys, INF, dtype=np.int64)
    if tuples.batch is not None:
        present = np.flatnonzero(arrived)
        time[present] = tuples.batch.time[tuples.offsets[present]]
    floating = plan.binding.edge_dtype(window) is np.float64
    for progress in (tuples.committed, tuples.sliced):
        contexts = progress.context.get(served.name)
        refuse_unless(contexts is not None or not keys, f'"{served.name}" must have contexts')
        if contexts is None:
            continue
        seen = np.where(skipped < 0, 0, np.maximum(progress.rank - skipped, 0))
        positions = KeyPositions(seen, np.minimum(np.maximum(base - skipped, 0), seen), time, floating)
        refuse_unless(
            window.contexts_fit(contexts, positions), f'the contexts of "{served.name}" do not fit its tuples'
        )
