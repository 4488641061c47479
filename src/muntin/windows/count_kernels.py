"""Compiled: count windows. The work follows the windows, not the tuples."""

from __future__ import annotations

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.cut_kernels import put_pair, put_row, room, roomier
from muntin.windows.tuple_driven import EARLIER

BASE, SEEN, LAST = range(3)


@compiled
def count_windows(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    n: int,
    every: int,
    partial: bool,
) -> tuple[Ints, Ints]:
    """Windows that fill in this call, and the begins of those left open.

    Window k has the ranks [k * every, k * every + n), counted from the key's first
    rank. With `partial`, those that are not full are returned as well.
    """
    rows = np.empty((6, room(offsets) + offsets[-1] // every), np.int64)
    opened = np.empty((2, offsets.shape[0] + offsets[-1] // every), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        if hi > lo and contexts[s, BASE] < 0:
            contexts[s, BASE] = rank[lo]
        base, low = contexts[s, BASE], contexts[s, SEEN]
        if hi > lo:
            contexts[s, SEEN], contexts[s, LAST] = rank[hi - 1] + 1 - base, time[hi - 1]
        high = contexts[s, SEEN]
        k = max(0, (low - n) // every + 1)  # the first that is not full yet
        while k * every + n <= high or (partial and k * every < high):
            begin, end = k * every, min(k * every + n, high)
            start = time[lo + begin - low] if begin >= low else EARLIER
            stop = (time[lo + end - 1 - low] if end > low else contexts[s, LAST]) + 1
            complete_at = stop if end == begin + n else INF
            if m == rows.shape[1]:
                rows = roomier(rows)
            put_row(rows, m, s, base + begin, base + end, start, stop, complete_at)
            m += 1
            k += 1
        k = max(k, -((-low) // every))  # those before began in an earlier call
        while k * every < high:
            put_pair(opened, p, s, base + k * every)
            p += 1
            k += 1
    return rows[:, :m], opened[:, :p]
