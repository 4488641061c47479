"""Compiled: evenly spaced windows on another advancing measure than time."""

from __future__ import annotations

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.cut_kernels import disjoint, put_pair, put_row
from muntin.windows.grids import Layout
from muntin.windows.kernel_arguments import Numbers
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
def around(unit: int, layout: Layout) -> tuple[int, int, int]:
    """First and last number of the windows that contain a position, and the next one with other windows."""
    offset, period, together, first_end, step = layout
    first = (unit - first_end) // step + 1
    last = ((unit - offset) // period + 1) * together - 1
    return first, last, min(first_end + first * step, offset + (last + 1) // together * period)


@compiled
def count_measured(offsets: Ints, contexts: Ints, units: Ints, layout: Layout, closing: bool) -> float:
    """The number of windows that `measured_windows` returns; a float, since it may exceed 64 bits."""
    number = 0.0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        o, f = contexts[s, OLDEST], contexts[s, FOLLOWING]
        number += f - o
        change = units[lo] if hi > lo else 0
        for i in range(lo, hi):
            if units[i] < change:
                continue
            first, last, change = around(units[i], layout)
            if first > f or (i == lo and contexts[s, SEEN] == 0):
                f = first
            if f <= last:
                number += last - f + 1
                f = last + 1
            o = first
        if not closing:
            number -= max(f - o, 0)
    return number


@compiled
def measured_windows(
    offsets: Ints, time: Ints, rank: Ints, contexts: Ints, units: Ints, layout: Layout, closing: bool
) -> tuple[Ints, Ints]:
    """Windows that the stream has left, with their number in a seventh column, and new begins.

    `units` are the positions of the tuples. Open are the numbers OLDEST <= k < FOLLOWING. A ring
    has the begin of window k at k % size; windows that begin with the same tuple may share a place.
    """
    size = contexts.shape[1] - RING
    number = count_measured(offsets, contexts, units, layout, closing)
    rows = np.empty((7, int(number)), np.int64)
    opened = np.empty((2, disjoint(offsets)), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        o, f, t = contexts[s, OLDEST], contexts[s, FOLLOWING], contexts[s, LATEST]
        known = contexts[s, SEEN] > 0
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        change = units[lo] if hi > lo else 0
        for i in range(lo, hi + closing):
            if i < hi and units[i] < change:  # in the same windows as the tuple before
                t = time[i]
                r += 1
                continue
            first, last = f, f - 1
            if i < hi:
                first, last, change = around(units[i], layout)
            while o < f and o < first:
                begin = contexts[s, RING + o % size]
                start = time[lo + begin - fresh] if begin >= fresh else EARLIER
                stop = time[i] if i < hi else t + 1
                put_row(rows, m, s, begin, r, start, stop, stop if i < hi else INF)
                rows[6, m] = o
                m += 1
                o += 1
            if i == hi:
                break
            t = time[i]
            if o == f and (first > f or not known):
                o = f = first  # windows in between contain no tuple
            known = True
            if f <= last:
                put_pair(opened, p, s, r)
                p += 1
            while f <= last:
                contexts[s, RING + f % size] = r
                f += 1
            r += 1
        contexts[s, SEEN], contexts[s, OLDEST], contexts[s, FOLLOWING], contexts[s, LATEST] = r, o, f, t
    return rows[:, :m], opened[:, :p]
