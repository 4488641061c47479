"""Compiled: frames. A first pass computes the actions of each tuple, a second one makes the windows.

The actions of a tuple, in this order: it closes the open frame before itself
(CLOSE), it opens one if none is open (OPEN), it closes the frame that it belongs
to (COMPLETE).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.cut_kernels import disjoint, put_pair, put_row
from muntin.windows.frame import CLOSE, COMPLETE, OPEN, Actions
from muntin.windows.kernel_arguments import Flags, Numbers

COUNT, SUM, MIN, MAX = range(4)
BEGIN, START, LAST, SEEN, LOW, POSITION, KNOWN, REFERENCE, LOST = range(9)


@compiled
def drift_actions(
    offsets: Ints, contexts: Ints, raw: Numbers, values: Numbers, valid: Flags, by: Any
) -> Actions:
    """A value further than `by` from the reference closes the frame and becomes the reference."""
    actions = np.full(values.shape[0], OPEN, np.uint8)
    for s in range(offsets.shape[0] - 1):
        for i in range(offsets[s], offsets[s + 1]):
            v = values[i]
            if not valid[i] or v != v:
                continue
            if contexts[s, KNOWN] == 0:
                contexts[s, KNOWN] = 1
                raw[s, REFERENCE] = v
            elif abs(v - raw[s, REFERENCE]) > by:
                actions[i] = CLOSE | OPEN
                raw[s, REFERENCE] = v
    return actions


@compiled
def limit_actions(
    offsets: Ints,
    contexts: Ints,
    raw: Numbers,
    values: Numbers,
    valid: Flags,
    exact: bool,
    what: int,
    limit: Any,
) -> tuple[Actions, int]:
    """The tuple with which the running aggregate reaches the limit completes its frame.

    A sum that is not `exact` carries its rounding error, as the aggregate itself
    does. NaN is above every number, as in Spark's ordering. Returns the row at which
    an exact sum fell below int64, or -1; above int64 every limit is reached.
    """
    before_any = values.dtype.type(0)
    actions = np.full(values.shape[0], OPEN, np.uint8)
    for s in range(offsets.shape[0] - 1):
        known, total, lost = contexts[s, KNOWN], raw[s, REFERENCE], raw[s, LOST]
        for i in range(offsets[s], offsets[s + 1]):
            v = values[i]
            beyond = False
            if valid[i]:
                before = total
                if what == COUNT:
                    total = before + 1
                elif known == 0:
                    total = v
                elif what == SUM:
                    if exact and v < 0 and before < -INF - 1 - v:
                        return actions, i
                    beyond = exact and v > 0 and before > INF - v
                    total = before + v
                    if not exact:
                        other = total - before
                        lost += (before - (total - other)) + (v - other)
                elif what == MIN:
                    if v < before or before != before:
                        total = v
                elif v > before or v != v:
                    total = v
                known = 1
            # The rounding error of infinities is NaN: the plain sum then decides.
            value = total + lost if lost == lost else total
            if (known == 1 or what == COUNT) and (beyond or value >= limit or value != value):
                actions[i] = OPEN | COMPLETE
                known = 0
                total = before_any
                lost = before_any
        contexts[s, KNOWN], raw[s, REFERENCE], raw[s, LOST] = known, total, lost
    return actions, -1


@compiled
def frames(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    raw: Numbers,
    actions: Actions,
    measure: Numbers,
    measured: bool,
    min_count: int,
    closing: bool,
) -> tuple[Ints, Numbers, Ints]:
    """The frames that the actions close, their edges on the measure, and begins left open or too short."""
    rows = np.empty((6, disjoint(offsets)), np.int64)
    marks = np.empty((2, rows.shape[1]), measure.dtype)
    opened = np.empty((2, rows.shape[1] + offsets.shape[0]), np.int64)
    m = p = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        b, f, t = contexts[s, BEGIN], contexts[s, START], contexts[s, LAST]
        r = rank[lo] if hi > lo else contexts[s, SEEN]
        fresh = r
        for i in range(lo, hi + 1):
            if i < hi:
                if measured and (contexts[s, SEEN] == 0 or measure[i] > raw[s, POSITION]):
                    raw[s, POSITION] = measure[i]
                t = time[i]
            closes = (actions[i] & CLOSE) != 0 if i < hi else closing
            if b >= 0 and closes:
                if r - b >= min_count:
                    put_row(rows, m, s, b, r, f, t if i < hi else t + 1, t if i < hi else INF)
                    put_pair(marks, m, raw[s, LOW], raw[s, POSITION])
                    m += 1
                elif b >= fresh:  # too short so far: a later tuple may still prolong it
                    put_pair(opened, p, s, b)
                    p += 1
                b = -1
            if i == hi:
                break
            if b < 0 and actions[i] & OPEN:
                b, f = r, t
                raw[s, LOW] = raw[s, POSITION]
            r += 1
            contexts[s, SEEN] = r
            if b >= 0 and actions[i] & COMPLETE:
                put_row(rows, m, s, b, r, f, t + 1, t + 1)
                put_pair(marks, m, raw[s, LOW], raw[s, POSITION])
                m += 1
                b = -1
        contexts[s, BEGIN], contexts[s, START], contexts[s, LAST] = b, f, t
        if b >= fresh:
            put_pair(opened, p, s, b)
            p += 1
    return rows[:, :m], marks[:, :m], opened[:, :p]
