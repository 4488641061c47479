"""Compiled: the slices of tuples out of order, of several keys, or with sessions, in a small step.

Each tuple is put into a cell of the time line as it comes, as `muntin.slicing.slicer` does it for large
batches; cells with tuples are slices, or parts of slices that merging fuses.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.partials.limb_kernels import carry
from muntin.aggregates.partials.step_codes import COUNT, INTEGER_SUM, SMALLEST
from muntin.compiled_kernels import compiled
from muntin.scalars import LARGEST_INTEGER, LIMB, MASK, SMALLEST_INTEGER
from muntin.slicing.cutting_kernels import assign, lookup_table, next_member, once_each

Ints = npt.NDArray[np.int64]

MOST_EDGES = 1_024
"""The most edges between the tuples of a step."""
MOST_CELLS = 4_096
"""The most cells of all keys: beyond, to clear them takes as long as all the rest."""
FIXED = 6
"""The columns of a slice before its partials."""


@compiled
def edges_around(offsets: Ints, periods: Ints, low: int, high: int, most: int) -> Ints:
    """The edges in (low, high], one before and one behind them; empty if they may be more than `most`."""
    expected = 2.0
    for p in range(periods.shape[0]):
        expected += (float(high) - float(low)) / float(periods[p]) + 1.0
    if expected > most:
        return np.empty(0, np.int64)
    edges = np.empty(int(expected) + 1, np.int64)
    count = 1
    edges[0] = SMALLEST_INTEGER
    for p in range(periods.shape[0]):
        edge = low - (low - offsets[p]) % periods[p]
        edges[0] = max(edges[0], edge)
        edge += periods[p]
        while edge <= high:
            edges[count] = edge
            count += 1
            edge += periods[p]
    edges[count] = next_member(offsets, periods, high, LARGEST_INTEGER)
    edges = edges[: count + 1]
    edges.sort()
    return edges[: once_each(edges)]


@compiled
def with_grid(edges: Ints, gap: int, low: int, high: int) -> Ints:
    """The edges in (low, high] and a grid as fine as the gap, so that no session ends inside a cell.

    Empty without room, which is also what it is without edges and a gap.
    """
    inside = edges[1:-1]
    if gap < 0:
        return inside
    step = max(gap, 1)
    if (high - low) // step > MOST_EDGES:
        return inside[:0]
    number = (high - low) // step
    cells = np.empty(inside.shape[0] + number, np.int64)
    cells[: inside.shape[0]] = inside
    for i in range(number):
        cells[inside.shape[0] + i] = low + (i + 1) * step
    cells.sort()
    return cells[: once_each(cells)]


@compiled
def scattered_slices(
    codes: Ints,
    width: int,
    time: Ints,
    ids: Ints,
    values: Ints,
    read: Ints,
    key: int,
    keys: int,
    low: int,
    high: int,
    edges: Ints,
    gap: int,
) -> Ints:
    """The slices of these tuples, sorted by key and first time; none without room.

    Fixed columns, and those of partials that do not depend on the order of tuples. Without `ids`, all
    tuples have one `key`.
    """
    none = np.empty((FIXED + width, 0), np.int64)
    if not edges.shape[0] or (gap >= 0 and (high - low) // max(gap, 1) > MOST_EDGES):
        return none
    cells = with_grid(edges, gap, low, high)
    each = cells.shape[0] + 1
    size = each * (keys if ids.shape[0] else 1)
    if size > MOST_CELLS:
        return none
    shift = 0
    while (high - low) >> shift > 4 * each:
        shift += 1
    table = lookup_table(cells, low, shift, ((high - low) >> shift) + 1)
    group = np.empty(time.shape[0], np.int64)
    first, last, n = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    if ids.shape[0]:
        assign(time, ids, cells, table, low, None, shift, group, first, last, n)
    else:
        assign(time, None, cells, table, low, None, shift, group, first, last, n)
    filled = np.flatnonzero(n)
    new = np.empty((FIXED + width, filled.shape[0]), np.int64)
    for j in range(filled.shape[0]):
        g = filled[j]
        new[0, j] = g // each if ids.shape[0] else key
        new[1, j], new[2, j], new[3, j], new[4, j], new[5, j] = first[g], last[g], n[g], 0, -1
    at = FIXED
    for p in range(codes.shape[0]):
        code = codes[p]
        if code == COUNT:
            new[at] = new[3]
            at += 1
        elif code == INTEGER_SUM:
            limbs = scattered_limbs(values[read[p]], group, size)
            for j in range(filled.shape[0]):
                new[at, j], new[at + 1, j] = limbs[filled[j], 0], limbs[filled[j], 1]
            at += 2
        else:
            extreme = scattered_extremes(values[read[p]], group, size, code == SMALLEST)
            for j in range(filled.shape[0]):
                new[at, j] = extreme[filled[j]]
            at += 1
    return new


@compiled
def scattered_limbs(values: Ints, group: Ints, size: int) -> Ints:
    """The sum of each group, in two limbs."""
    limbs = np.zeros((size, 2), np.int64)
    for i in range(values.shape[0]):
        g = np.uint64(group[i])
        limbs[g, 0] += values[i] & MASK
        limbs[g, 1] += values[i] >> LIMB
    carry(limbs)
    return limbs


@compiled
def scattered_extremes(values: Ints, group: Ints, size: int, smallest: bool) -> Ints:
    """The smallest or the largest value of each group."""
    extreme = np.full(size, LARGEST_INTEGER if smallest else SMALLEST_INTEGER)
    for i in range(values.shape[0]):
        g = np.uint64(group[i])
        extreme[g] = min(extreme[g], values[i]) if smallest else max(extreme[g], values[i])
    return extreme
