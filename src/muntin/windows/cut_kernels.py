"""Compiled: rows of `Cuts` as kernels write them, and the edges that follow from them.

A kernel writes windows as columns of an int64 matrix with the rows segment, begin,
end, start, stop, complete_at, and their edges on another measure as columns of a second one. Where the
number of windows has a bound, the matrix has room for it: its unused pages cost nothing, whereas
a matrix that may grow inside the loop over tuples costs 20 ns per tuple (measured), since Numba
counts references to it in every iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled_kernels import compiled
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.kernel_arguments import Numbers


@compiled
def disjoint(offsets: Ints) -> int:
    """A bound for windows that do not overlap: one per tuple, and one open per key from earlier calls."""
    return int(offsets[-1] + offsets.shape[0])


@compiled
def room(offsets: Ints) -> int:
    """A first guess at the number of windows, for a matrix that grows."""
    return int(64 + offsets.shape[0] + offsets[-1] // 16)


@compiled
def roomier(rows: Numbers) -> Numbers:
    """The same columns in a matrix of twice the size."""
    more = np.empty((rows.shape[0], 2 * rows.shape[1]), rows.dtype)
    for c in range(rows.shape[0]):
        more[c, : rows.shape[1]] = rows[c]
    return more


@compiled
def put_row(
    rows: Ints, m: int, segment: int, begin: int, end: int, start: int, stop: int, complete_at: int
) -> None:
    """Write window number m, for which there is room."""
    rows[0, m] = segment
    rows[1, m] = begin
    rows[2, m] = end
    rows[3, m] = start
    rows[4, m] = stop
    rows[5, m] = complete_at


@compiled
def put_pair(pairs: Numbers, m: int, first: Any, second: Any) -> None:
    """Write pair number m, for which there is room: a begin left open, or two edges on a measure."""
    pairs[0, m] = first
    pairs[1, m] = second


@compiled
def merged_edges(segment: Ints, begin: Ints, end: Ints, opened: Ints) -> Ints:
    """Sorted, distinct (segment, rank) of the begins and ends of windows and of `opened`.

    Within a segment, begins, ends and opened begins must each come in order.
    """
    n, p = segment.shape[0], opened.shape[1]
    out = np.empty((2, 2 * n + p), np.int64)
    m = b = e = o = 0
    while b < n or e < n or o < p:
        # Begins never lie behind the ends of the same window, so segment[b] >= segment[e].
        s = segment[e] if e < n else opened[0, o]
        if o < p and opened[0, o] < s:
            s = opened[0, o]
        last = np.int64(-1)
        while True:
            r = np.int64(INF)
            if b < n and segment[b] == s:
                r = begin[b]
            if e < n and segment[e] == s and end[e] < r:
                r = end[e]
            if o < p and opened[0, o] == s and opened[1, o] < r:
                r = opened[1, o]
            if r == INF:
                break
            if r != last:
                out[0, m] = s
                out[1, m] = r
                m += 1
                last = r
            while b < n and segment[b] == s and begin[b] == r:
                b += 1
            while e < n and segment[e] == s and end[e] == r:
                e += 1
            while o < p and opened[0, o] == s and opened[1, o] == r:
                o += 1
    return out[:, :m]
