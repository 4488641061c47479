"""Compiled: windows that look back over tuples of earlier calls.

The tuples passed start at or before the rank that the windows asked to keep; the
context says which of them were seen already.
"""

from __future__ import annotations

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.windows.base import Ints
from muntin.windows.cut_kernels import put_row, room, roomier

BASE, PLACE, SEEN = range(3)
"""First rank of the key (-1: none yet), next edge or last begin, ranks seen."""


@compiled
def last_windows(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    n: int,
    every: int,
    offset: int,
    upto: Ints,
) -> Ints:
    """At every edge up to `upto`, which each key has of its own: the last n tuples before it.

    PLACE is the next edge of a key, SEEN the rank behind its tuples before that edge.
    """
    rows = np.empty((6, room(offsets)), np.int64)
    m = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        if hi == lo:
            continue
        low = rank[lo]
        if contexts[s, BASE] < 0:
            contexts[s, BASE] = contexts[s, SEEN] = low
            contexts[s, PLACE] = time[lo] - (time[lo] - offset) % every + every
        i = lo + contexts[s, SEEN] - low
        e = contexts[s, PLACE]
        while True:
            while i < hi and time[i] < e:
                i += 1
            if e > upto[s]:
                break
            end = low + i - lo
            begin = max(end - n, contexts[s, BASE])
            if m == rows.shape[1]:
                rows = roomier(rows)
            put_row(rows, m, s, begin, end, time[lo + begin - low], e, e)
            m += 1
            e += every
        contexts[s, PLACE] = e
        contexts[s, SEEN] = low + i - lo
    return rows[:, :m]


@compiled
def slides_by_tuple(
    offsets: Ints,
    time: Ints,
    rank: Ints,
    contexts: Ints,
    length: int,
    every: int,
) -> Ints:
    """At every n-th tuple: the tuples less than `length` older than it, and itself."""
    rows = np.empty((6, offsets[-1] // every + offsets.shape[0]), np.int64)
    m = 0
    for s in range(offsets.shape[0] - 1):
        lo, hi = offsets[s], offsets[s + 1]
        if hi == lo:
            continue
        low = rank[lo]
        if contexts[s, BASE] < 0:
            contexts[s, BASE] = contexts[s, PLACE] = contexts[s, SEEN] = low
        b = lo + max(contexts[s, PLACE] - low, 0)  # tuples too old for every later window may be gone
        for i in range(lo + contexts[s, SEEN] - low, hi):
            t = time[i]
            while time[b] <= t - length:
                b += 1
            behind = low + i - lo + 1
            if (behind - contexts[s, BASE]) % every == 0:
                put_row(rows, m, s, low + b - lo, behind, t + 1 - length, t + 1, t + 1)
                m += 1
        contexts[s, PLACE] = low + b - lo
        contexts[s, SEEN] = max(contexts[s, SEEN], low + hi - lo)
    return rows[:, :m]
