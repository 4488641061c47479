"""The loop that all window techniques spend their time in."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled_kernels import compiled


@compiled
def sum_ranges(values: Any, begin: Any, end: Any) -> Any:
    """The sum of each range [begin, end) of the values: one combine for each of its members."""
    totals = np.zeros(len(begin), np.int64)
    for i in range(len(begin)):
        total = 0
        for j in range(begin[i], end[i]):
            total += values[j]
        totals[i] = total
    return totals
