"""What the papers compare with: older ways to aggregate a sliding window, behind the stores' protocol.

They are here to be measured and to check the stores against; use `muntin.stores` for work.
"""

from __future__ import annotations

from benchmarks.baselines.base_intervals import BaseIntervals
from benchmarks.baselines.classic_btree import ClassicBTree
from benchmarks.baselines.recalculate import Recalculate
from benchmarks.baselines.subtract_on_evict import SubtractOnEvict
from benchmarks.baselines.tuple_tree import TupleTree

__all__ = ["BaseIntervals", "ClassicBTree", "Recalculate", "SubtractOnEvict", "TupleTree"]
