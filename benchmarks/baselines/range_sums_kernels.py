"""The sums of many ranges of times in one call."""

from __future__ import annotations

from typing import Any

from muntin.stores.flatfat_node_kernels import query_positions
from muntin.stores.queue_kernels import lower_bound
from muntin.stores.vocabulary import *


def query_many(D: Any, starts: Any, ends: Any, out: Any) -> None:
    """At most 2 log2 n combines for each range."""
    for j in range(len(starts)):
        put(out, j, query_positions(D, lower_bound(D, starts[j]), lower_bound(D, ends[j])))
