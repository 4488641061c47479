"""Compiled: sessions that end with their tuples, on time or on another measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.cut_kernels import disjoint, put_pair, put_row
from muntin.windows.kernel_arguments import Numbers

SEEN, POSITION, BEGIN, START, LAST, LOW = range(6)
REACH = POSITION
"""In contexts of sessions with a gap per tuple: the end of the latest range of the open session."""


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
    timed: bool,
    upto: int,
    closing: bool,
) -> tuple[Ints, Numbers, Ints]:
    """Sessions that ended, by a tuple or by `upto`, their edges on the measure, and begins left open.

    `timed`: the measure is the time, so that sessions have no edges apart from it, and `upto` ends them.
    """
    rows = np.empty((6, disjoint(offsets)), np.int64)
    marks = np.empty((2, 0 if timed else rows.shape[1]), measure.dtype)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, f, t = contexts[s, BEGIN], contexts[s, START], contexts[s, LAST]
        position, low = raw[s, POSITION], raw[s, LOW]
        if contexts[s, SEEN] == 0 and hi > lo:
            position = measure[lo]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            if b >= 0:
                limit = low + max_length
                if i < hi:
                    ends = measure[i] - position > gap or (limited and measure[i] >= limit)
                else:  # after the last tuple only `upto`, or the end of the stream, ends a session
                    ends = closing or (timed and (position + gap < upto or limit <= upto))
                if ends:
                    high = min(position + gap, limit) if limited else position + gap
                    if timed:
                        put_row(rows, m, s, b, r, f, int(high), int(min(high + 1, limit)))
                    else:
                        put_row(rows, m, s, b, r, f, time[i] if i < hi else t + 1, time[i] if i < hi else INF)
                        put_pair(marks, m, low, high)
                    m += 1
                    b = np.int64(-1)
            if i < hi:
                t = time[i]
                position = max(position, measure[i])
                if b < 0:
                    b, f, low = r, t, position
                r += 1
        contexts[s, SEEN], contexts[s, BEGIN], contexts[s, START], contexts[s, LAST] = r, b, f, t
        raw[s, POSITION], raw[s, LOW] = position, low
        if b >= fresh:
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], marks[:, :m], opened[:, :p]


@compiled
def reaching_sessions(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    gap: Ints,
    limited: bool,
    max_length: int,
    upto: int,
    closing: bool,
) -> tuple[Ints, Ints]:
    """Sessions on time that ended, by a tuple or by `upto`, and begins left open; each tuple has its own gap.

    A tuple joins the open session if its time is not after the session's end, and extends it to `time + gap`.
    """
    rows = np.empty((6, disjoint(offsets)), np.int64)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, f, reach = contexts[s, BEGIN], contexts[s, START], contexts[s, REACH]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            if b >= 0:
                end = min(reach, f + max_length) if limited else reach
                complete_at = min(reach + 1, f + max_length) if limited else reach + 1
                # After the last tuple only `upto`, or the end of the stream, ends a session.
                if (time[i] >= complete_at) if i < hi else (closing or complete_at <= upto):
                    put_row(rows, m, s, b, r, f, end, complete_at)
                    m += 1
                    b = np.int64(-1)
            if i < hi:
                if b < 0:
                    b, f, reach = r, time[i], time[i]
                reach = max(reach, time[i] + gap[i])
                r += 1
        contexts[s, SEEN], contexts[s, BEGIN], contexts[s, START] = r, b, f
        contexts[s, REACH] = reach
        if b >= fresh:
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], opened[:, :p]
