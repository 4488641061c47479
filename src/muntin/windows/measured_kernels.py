"""Compiled: windows on another advancing measure than time."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.columns import Numbers
from muntin.windows.row_kernels import put_pair, put_row, room, roomier
from muntin.windows.tuple_driven import EARLIER

SEEN, POSITION = range(2)
"""Of every context here."""
OLDEST, FOLLOWING, LATEST, RING = range(2, 6)
BEGIN, START, LAST, LOW = range(2, 6)
STEP = 5


@compiled
def positions(offsets: Ints, measure: Numbers, contexts: Ints, raw: Numbers) -> Numbers:
    """Where each tuple stands: the largest value so far, also of earlier calls."""
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
def grid_numbers(at: Numbers, length: int, slide: int, offset: int, scale: int) -> tuple[Ints, Ints]:
    """First and last number k of the windows [lo(k), hi(k)) that contain each position.

    lo(k) = (offset + k * slide) / scale and hi(k) = lo(k) + length / scale, each
    rounded once. A first guess may be off by one through rounding.
    """
    first = np.empty(at.shape[0], np.int64)
    last = np.empty(at.shape[0], np.int64)
    for i in range(at.shape[0]):
        k = np.int64(np.floor((at[i] * scale - offset) / slide))
        while (offset + k * slide) / scale > at[i]:
            k -= 1
        while (offset + (k + 1) * slide) / scale <= at[i]:
            k += 1
        last[i] = k
        k = np.int64(np.floor((at[i] * scale - offset - length) / slide)) + 1
        while (offset + k * slide + length) / scale <= at[i]:
            k += 1
        while (offset + (k - 1) * slide + length) / scale > at[i]:
            k -= 1
        first[i] = k
    return first, last


@compiled
def measured_windows(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    first: Ints,
    last: Ints,
    contexts: Ints,
    closing: bool,
) -> tuple[Ints, Ints]:
    """Windows that the stream has left, with their number in a seventh column, and new begins.

    Open are the numbers OLDEST <= k < FOLLOWING. A ring keeps the begin of window k
    at k % size.
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
                o = f = first[i]  # windows in between hold no tuple
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


@compiled
def measured_cumulations(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    step: Ints,
    steps: int,
    contexts: Ints,
    closing: bool,
) -> tuple[Ints, Ints]:
    """Windows that the stream has left, with the step before which they end in a seventh column.

    `step` is where each tuple stands, in numbers of steps, of which a period has
    `steps`. All windows of a period begin with its first tuple.
    """
    rows = np.empty((7, room(offsets)), np.int64)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, t, k = contexts[s, BEGIN], contexts[s, LAST], contexts[s, STEP]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            if i == hi and not closing:
                break
            behind = (k // steps + 1) * steps
            reached = behind if i == hi else min(step[i], behind)
            while b >= 0 and k < reached:
                k += 1
                due = time[i] if i < hi else INF
                if m == rows.shape[1]:
                    rows = roomier(rows)
                put_row(rows, m, s, b, r, contexts[s, START], t + 1, due)
                rows[6, m] = k
                m += 1
            if i == hi:
                break
            t = time[i]
            if b < 0 or step[i] >= behind:
                b = r
                contexts[s, START] = t
            k = step[i]
            r += 1
            contexts[s, SEEN] = r
        contexts[s, BEGIN], contexts[s, LAST], contexts[s, STEP] = b, t, k
        if b >= fresh:
            if p == opened.shape[1]:
                opened = roomier(opened)
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], opened[:, :p]


@compiled
def measured_sessions(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    measure: Numbers,
    contexts: Ints,
    raw: Numbers,
    gap: Any,
    limited: bool,
    max_length: Any,
    closing: bool,
) -> tuple[Ints, Numbers, Ints]:
    """Sessions that a tuple too far ahead ended, their marks, and begins left open."""
    rows = np.empty((6, room(offsets)), np.int64)
    marks = np.empty((2, rows.shape[1]), measure.dtype)
    opened = np.empty((2, offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, t = contexts[s, BEGIN], contexts[s, LAST]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            ends = closing
            if i < hi:
                ends = measure[i] - raw[s, POSITION] > gap
                if limited and measure[i] >= raw[s, LOW] + max_length:
                    ends = True
            if b >= 0 and ends:
                if m == rows.shape[1]:
                    rows = roomier(rows)
                    marks = roomier(marks)
                put_row(
                    rows, m, s, b, r, contexts[s, START],
                    time[i] if i < hi else t + 1, time[i] if i < hi else INF,
                )  # fmt: skip
                put_pair(marks, m, raw[s, LOW], raw[s, POSITION] + gap)
                if limited:
                    marks[1, m] = min(marks[1, m], raw[s, LOW] + max_length)
                m += 1
                b = -1
            if i == hi:
                break
            t = time[i]
            if contexts[s, SEEN] == 0 or measure[i] > raw[s, POSITION]:
                raw[s, POSITION] = measure[i]
            if b < 0:
                b = r
                contexts[s, START] = t
                raw[s, LOW] = raw[s, POSITION]
            r += 1
            contexts[s, SEEN] = r
        contexts[s, BEGIN], contexts[s, LAST] = b, t
        if b >= fresh:
            if p == opened.shape[1]:
                opened = roomier(opened)
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], marks[:, :m], opened[:, :p]
