"""The loops that all window techniques spend their time in."""

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


@compiled
def pauses(time: Any, gap: int) -> Any:
    """The positions of tuples in order that come more than the gap after the one before."""
    found = np.empty(len(time), np.int64)
    n = 0
    for i in range(1, len(time)):
        found[n] = i
        n += time[i] - time[i - 1] > gap
    return found[:n].copy()


@compiled
def split_late(time: Any, value: Any) -> Any:
    """The tuples that come after no newer one, and all others: times and values of each."""
    times, values = np.empty(len(time), np.int64), np.empty(len(time), np.int64)
    late_times, late_values = np.empty(len(time), np.int64), np.empty(len(time), np.int64)
    n = late = 0
    newest = time[0]
    for i in range(len(time)):
        # Written to both, and one of them moves on: no branch that depends on the data.
        times[n] = late_times[late] = time[i]
        values[n] = late_values[late] = value[i]
        is_late = time[i] < newest
        late += is_late
        n += not is_late
        newest = max(newest, time[i])
    return times[:n], values[:n], late_times[:late], late_values[:late]


@compiled
def merge_tuples(time: Any, value: Any, other_time: Any, other_value: Any, times: Any, values: Any) -> None:
    """Two runs of tuples in order become one; of tuples at one time the first run's come first."""
    i = j = 0
    for k in range(len(time) + len(other_time)):
        if j == len(other_time) or (i < len(time) and time[i] <= other_time[j]):
            times[k], values[k] = time[i], value[i]
            i += 1
        else:
            times[k], values[k] = other_time[j], other_value[j]
            j += 1
