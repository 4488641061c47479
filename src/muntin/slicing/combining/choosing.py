"""The store that the plan names."""

from __future__ import annotations

from muntin.planning.plan import Plan
from muntin.slicing.combining.base import Combiner, Either, WalkedWindows
from muntin.slicing.combining.fingers import Fingers
from muntin.slicing.combining.flatfat import FlatFAT
from muntin.slicing.combining.prefix import Prefix
from muntin.slicing.combining.queues import Queues
from muntin.slicing.combining.standing import Bulk
from muntin.stores import DabaLite, TwoStacksLite

BULK = {"two_stacks": (256, 16), "fiba": (2048, 256)}
"""Up to so many slices per window of a watermark a store that begins anew is quicker: numbers, Python."""


def combiner(plan: Plan) -> Combiner:
    """How slices are combined into windows. A forced store does everything itself."""
    if plan.store == "lazy":
        return WalkedWindows()
    if plan.store == "two_stacks":
        return Queues(TwoStacksLite, _bulk(plan))
    if plan.store == "daba":
        return Queues(DabaLite)  # which is never chosen, only forced
    if plan.store == "fiba":
        return Fingers(_bulk(plan))
    store = Prefix() if plan.store == "prefix" else FlatFAT()
    return store if plan.forced else Either(store)


def _bulk(plan: Plan) -> Bulk | None:
    """What completes many windows at one watermark, beside a store that the plan chose."""
    if plan.forced:
        return None
    slices = BULK[plan.store][1 if plan.workload.user_defined else 0]
    return Bulk(Either(Prefix() if plan.workload.exact else FlatFAT()), slices)
