"""The combiner for the store that the plan names."""

from __future__ import annotations

from collections.abc import Callable

from muntin.planning.plan import Plan
from muntin.slicing.combining.aggregate_tree import AggregateTree
from muntin.slicing.combining.base import Combiner, RebuiltOrWalked, WalkedWindows
from muntin.slicing.combining.finger_trees import FingerTrees
from muntin.slicing.combining.persistent import RebuiltStore
from muntin.slicing.combining.prefix_sums import PrefixSums
from muntin.slicing.combining.slice_queues import SliceQueues
from muntin.slicing.combining.standing_trees import StandingTrees
from muntin.stores import DabaLite, TwoStacksLite

REBUILT_SLICES = {"two_stacks": (256, 16), "fiba": (2048, 256)}
"""Slices per window up to which a rebuilt store is faster: for compiled partials, for users' Python."""


def combiners(plan: Plan) -> Callable[[], Combiner]:
    """Makes combiners of a plan. A forced store combines all windows, however few or many there are."""
    if plan.store == "lazy" and plan.forced:
        return WalkedWindows
    if plan.store == "two_stacks":
        return lambda: SliceQueues(TwoStacksLite, _rebuilt(plan))
    if plan.store == "daba":
        return lambda: SliceQueues(DabaLite)  # only ever forced
    if plan.store == "fiba":
        return lambda: FingerTrees(_rebuilt(plan))
    if plan.store == "lazy":
        # The plan cannot know how many slices sessions and users' windows have: each watermark counts them.
        return lambda: StandingTrees(WalkedWindows(), exact=True)
    if plan.store == "flatfat":
        rebuilt = AggregateTree() if plan.forced else RebuiltOrWalked(AggregateTree())
        return lambda: StandingTrees(rebuilt, plan.forced)
    return PrefixSums if plan.forced else lambda: RebuiltOrWalked(PrefixSums())


def _rebuilt(plan: Plan) -> RebuiltStore | None:
    """The rebuilt store for watermarks that complete many windows; None for a forced store."""
    if plan.forced:
        return None
    slices = REBUILT_SLICES[plan.store][1 if plan.workload.user_defined else 0]
    return RebuiltStore(RebuiltOrWalked(PrefixSums() if plan.workload.exact else AggregateTree()), slices)
