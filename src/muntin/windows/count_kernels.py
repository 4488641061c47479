"""Compiled: count windows. The work follows the windows, not the tuples."""

from __future__ import annotations

import numpy as np
from numba import njit

from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.row_kernels import room, roomier

BASE, SEEN, LAST, STARTS = range(4)


@njit(cache=True, nogil=True)
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
    rank. Column STARTS + k % size of the context holds its start while it is open.
    """
    size = contexts.shape[1] - STARTS
    rows = np.empty((6, room(offsets) + offsets[-1] // every), np.int64)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        if hi > lo:
            if contexts[s, BASE] < 0:
                contexts[s, BASE] = rank[lo]
            base = contexts[s, BASE]
            low, high = rank[lo] - base, rank[hi - 1] + 1 - base
            k = max(0, (low - n) // every + 1)  # the first that is not full yet
            while k * every + n <= high:
                begin = k * every
                end = begin + n
                if m == rows.shape[1]:
                    rows = roomier(rows)
                rows[0, m] = s
                rows[1, m] = base + begin
                rows[2, m] = base + end
                rows[3, m] = time[lo + begin - low] if begin >= low else contexts[s, STARTS + k % size]
                rows[4, m] = rows[5, m] = time[lo + end - 1 - low] + 1
                m += 1
                k += 1
            k = max(k, -((-low) // every))  # those before began in an earlier call
            while k * every < high:
                contexts[s, STARTS + k % size] = time[lo + k * every - low]
                if p == opened.shape[1]:
                    opened = roomier(opened)
                opened[0, p] = s
                opened[1, p] = base + k * every
                p += 1
                k += 1
            contexts[s, SEEN] = high
            contexts[s, LAST] = time[hi - 1]
        if partial:
            seen = contexts[s, SEEN]
            k = max(0, (seen - n) // every + 1)
            while k * every < seen:
                if m == rows.shape[1]:
                    rows = roomier(rows)
                rows[0, m] = s
                rows[1, m] = contexts[s, BASE] + k * every
                rows[2, m] = contexts[s, BASE] + seen
                rows[3, m] = contexts[s, STARTS + k % size]
                rows[4, m] = contexts[s, LAST] + 1
                rows[5, m] = INF
                m += 1
                k += 1
    return rows[:, :m], opened[:, :p]
