"""Compiled: sessions that end with their tuples, on time or on another measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.columns import Numbers
from muntin.windows.cut_kernels import put_pair, put_row, room, roomier

SEEN, POSITION, BEGIN, START, LAST, LOW = range(6)


@compiled
def sessions(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    raw: Numbers,
    measure: Numbers,
    gap: Any,
    limited: bool,
    max_length: Any,
    upto: Any,
    closing: bool,
) -> tuple[Ints, Numbers, Ints]:
    """Sessions that ended, by a tuple or by `upto`, their edges on the measure, and begins left open."""
    rows = np.empty((6, room(offsets)), np.int64)
    marks = np.empty((2, rows.shape[1]), measure.dtype)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, f, t = contexts[s, BEGIN], contexts[s, START], contexts[s, LAST]
        position, low = raw[s, POSITION], raw[s, LOW]
        known = contexts[s, SEEN] > 0
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            if b >= 0:
                if i < hi:
                    ends = measure[i] - position > gap or (limited and measure[i] >= low + max_length)
                else:  # after the last tuple only `upto`, or the end of the stream, ends a session
                    ends = closing or position + gap < upto or (limited and low + max_length <= upto)
                if ends:
                    if m == rows.shape[1]:
                        rows = roomier(rows)
                        marks = roomier(marks)
                    put_row(rows, m, s, b, r, f, time[i] if i < hi else t + 1, time[i] if i < hi else INF)
                    high = min(position + gap, low + max_length) if limited else position + gap
                    put_pair(marks, m, low, high)
                    m += 1
                    b = np.int64(-1)
            if i < hi:
                t = time[i]
                if not known or measure[i] > position:
                    position = measure[i]
                known = True
                if b < 0:
                    b, f, low = r, t, position
                r += 1
        contexts[s, SEEN], contexts[s, BEGIN], contexts[s, START], contexts[s, LAST] = r, b, f, t
        raw[s, POSITION], raw[s, LOW] = position, low
        if b >= fresh:
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], marks[:, :m], opened[:, :p]
