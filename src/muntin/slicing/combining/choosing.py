"""The store that the plan names."""

from __future__ import annotations

from muntin.planning.plan import Plan
from muntin.slicing.combining.base import Combiner, Lazy
from muntin.slicing.combining.fingers import Fingers
from muntin.slicing.combining.flatfat import FlatFAT
from muntin.slicing.combining.prefix import Prefix
from muntin.slicing.combining.queues import Queues
from muntin.stores import DabaLite, TwoStacksLite


def combiner(plan: Plan) -> Combiner:
    """How slices are combined into windows. A forced store does everything itself."""
    if plan.store == "prefix":
        return Prefix()
    if plan.store == "two_stacks":
        return Queues(TwoStacksLite)
    if plan.store == "daba":
        return Queues(DabaLite)
    if plan.store == "flatfat":
        return FlatFAT()
    if plan.store == "fiba":
        return Fingers(None if plan.forced else Prefix() if plan.workload.exact else FlatFAT())
    return Lazy()
