"""Compiled: sessions of bounded length."""

from __future__ import annotations

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.windows.base import Ints
from muntin.windows.row_kernels import put_pair, put_row, room, roomier

BEGIN, FIRST, LAST, SEEN = range(4)


@compiled
def capped_sessions(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    gap: int,
    max_length: int,
    upto: int,
    closing: bool,
) -> tuple[Ints, Ints]:
    """Sessions that ended, by a tuple or by `upto`, and the begins of those left open."""
    rows = np.empty((6, room(offsets)), np.int64)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, f, t = contexts[s, BEGIN], contexts[s, FIRST], contexts[s, LAST]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        low = r
        for i in range(lo, hi + 1):
            if b >= 0:
                due = min(t + gap + 1, f + max_length)
                # After the last tuple only the promise of `upto`, or the end, closes a session.
                if (i < hi and time[i] >= due) or (i == hi and (closing or due <= upto)):
                    if m == rows.shape[1]:
                        rows = roomier(rows)
                    put_row(rows, m, s, b, r, f, min(t + gap, f + max_length), due)
                    m += 1
                    b = -1
            if i < hi:
                t = time[i]
                if b < 0:
                    b, f = r, t
                r += 1
        contexts[s, BEGIN], contexts[s, FIRST], contexts[s, LAST], contexts[s, SEEN] = b, f, t, r
        if b >= low:
            if p == opened.shape[1]:
                opened = roomier(opened)
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], opened[:, :p]
