"""Compiled: evenly spaced windows on another advancing measure than time."""

from __future__ import annotations

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.columns import Numbers
from muntin.windows.cut_kernels import put_pair, put_row, room, roomier
from muntin.windows.tuple_driven import EARLIER

SEEN, POSITION, OLDEST, FOLLOWING, LATEST, RING = range(6)


@compiled
def positions(offsets: Ints, measure: Numbers, contexts: Ints, raw: Numbers) -> Numbers:
    """The position of each tuple: the largest value so far, also of earlier calls."""
    out = np.empty_like(measure)
    for s in range(offsets.shape[0] - 1):
        known = contexts[s, SEEN] > 0
        for i in range(offsets[s], offsets[s + 1]):
            if not known or measure[i] > raw[s, POSITION]:
                known = True
                raw[s, POSITION] = measure[i]
            out[i] = raw[s, POSITION]
    return out


@compiled
def units_reached(at: Numbers, scale: int) -> Ints:
    """Per position the largest integer u with u / scale, rounded once, at or below it."""
    units = np.empty(at.shape[0], np.int64)
    for i in range(at.shape[0]):
        u = np.int64(np.floor(at[i] * scale))  # off by a few through rounding
        while u / scale > at[i]:
            u -= 1
        while (u + 1) / scale <= at[i]:
            u += 1
        units[i] = u
    return units


@compiled
def measured_windows(
    offsets: Ints, time: Ints, rank: Ints, contexts: Ints, first: Ints, last: Ints, closing: bool
) -> tuple[Ints, Ints]:
    """Windows that the stream has left, with their number in a seventh column, and new begins.

    `first` and `last` number the windows that contain each tuple. Open are the numbers
    OLDEST <= k < FOLLOWING. A ring has the begin of window k at k % size; windows that begin
    with the same tuple may share a place.
    """
    size = contexts.shape[1] - RING
    rows = np.empty((7, room(offsets)), np.int64)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        o, f, t = contexts[s, OLDEST], contexts[s, FOLLOWING], contexts[s, LATEST]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            if i == hi and not closing:
                break
            bound = first[i] if i < hi else f
            while o < f and o < bound:
                begin = contexts[s, RING + o % size]
                start = time[lo + begin - fresh] if begin >= fresh else EARLIER
                if m == rows.shape[1]:
                    rows = roomier(rows)
                put_row(rows, m, s, begin, r, start, t + 1, time[i] if i < hi else INF)
                rows[6, m] = o
                m += 1
                o += 1
            if i == hi:
                break
            t = time[i]
            if o == f and (first[i] > f or contexts[s, SEEN] == 0):
                o = f = first[i]  # windows in between contain no tuple
            if f <= last[i]:
                if p == opened.shape[1]:
                    opened = roomier(opened)
                put_pair(opened, p, s, r)
                p += 1
            while f <= last[i]:
                contexts[s, RING + f % size] = r
                f += 1
            r += 1
            contexts[s, SEEN] = r
        contexts[s, OLDEST], contexts[s, FOLLOWING], contexts[s, LATEST] = o, f, t
    return rows[:, :m], opened[:, :p]
