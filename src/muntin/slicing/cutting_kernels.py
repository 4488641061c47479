"""Compiled: tuples into cells and groups, in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled
from muntin.slicing.sorting_kernels import INSERTION_SORTED, gallop, insertion_sort, seek

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MIX = np.uint64(0x9E3779B97F4A7C15)
MOST = np.int64(2**63 - 1)


@compiled
def all_equal(ids: Ints) -> bool:
    """Whether all keys are the same."""
    first = ids[0]
    for k in ids:
        if k != first:
            return False
    return True


@compiled
def lookup_table(edges: Ints, low: int, shift: int, size: int) -> Ints:
    """For each bucket of 2**shift time units from `low`: how many edges lie at or before its start."""
    table = np.empty(size, np.int64)
    e = 0
    for b in range(size):
        at = low + (b << shift)
        while e < edges.shape[0] and edges[e] <= at:
            e += 1
        table[b] = e
    return table


@compiled
def assign(
    time: Ints,
    ids: Ints | None,
    edges: Ints,
    table: Ints,
    low: int,
    high: int | None,
    shift: int,
    group: Ints,
    first: Ints,
    last: Ints,
    n: Ints,
) -> None:
    """The group of each tuple, (key, cell) as one number, and each group's extent and size.

    With `high`, tuples before `low` and after it have none, which is -1. To ask takes a fifth of the time.

    The cell is the number of edges at or before the tuple: one look-up, then rarely a step, as with
    the cached next edge of [scotty §7.3.3]. Nothing else here branches: on tuples out of order, no
    guess about them would hold. Unsigned positions save the question whether they count from the end,
    which took nearly half of the time.
    """
    cells, one = np.uint64(edges.shape[0]), np.uint64(1)
    for j in range(n.shape[0]):
        first[j], last[j], n[j] = MOST, -MOST, 0
    for i in range(time.shape[0]):
        t = time[i]
        if high is not None:  # compiled out where it is None
            if t < low or t > high:
                group[i] = -1
                continue
        g = np.uint64(table[np.uint64((t - low) >> shift)])
        while g < cells and edges[g] <= t:
            g += one
        if ids is not None:
            g += np.uint64(ids[i]) * (cells + one)
        group[i] = g
        first[g] = min(first[g], t)
        last[g] = max(last[g], t)
        n[g] += 1


@compiled
def filled_cells(n: Ints, width: int, filled: Ints) -> None:
    """Count the cells with tuples of each key, which has `width` cells."""
    for key in range(filled.shape[0]):
        filled[key] = 0
        for cell in range(key * width, (key + 1) * width):
            filled[key] += n[cell] > 0


@compiled
def gather_cells(
    first: Ints, last: Ints, n: Ints, begin: int, width: int, before: int, at: Ints, rows: Ints, place: Ints
) -> None:
    """The cells with tuples of the keys from `begin` on as slices; those of key k from the row `at[k]` on.

    Keys are numbered from 0. `place` gets the position of the states of each cell, after `before` others.
    """
    for key in range(at.shape[0]):
        row = at[key]
        for cell in range(key * width, (key + 1) * width):
            source = begin * width + cell
            if n[source] > 0:
                rows[0, row], rows[1, row], rows[2, row] = key, first[source], last[source]
                rows[3, row], rows[4, row], rows[5, row] = n[source], 0, -1
                place[row] = before + cell
                row += 1


@compiled
def content_marks(seq: Ints, begins: Ints, mark: Ints) -> None:
    """A sum of hashes of the tuples of each run: equal for equal contents, whatever else happened."""
    for g in range(mark.shape[0]):
        total = np.uint64(0)
        for i in range(begins[g], begins[g + 1]):
            x = (np.uint64(seq[i]) + np.uint64(1)) * MIX
            x ^= x >> np.uint64(29)
            total += x * MIX
        mark[g] = np.int64(total)


@compiled
def rows_of_runs(ids: Ints | None, time: Ints, begins: Ints, rows: Ints) -> None:
    """Key, first and last time and number of tuples of the runs from one begin to the next, as slices.

    They have no marks and no ranks.
    """
    for j in range(rows.shape[1]):
        begin, end = begins[j], begins[j + 1]
        rows[0, j] = 0 if ids is None else ids[begin]
        rows[1, j], rows[2, j], rows[3, j] = time[begin], time[end - 1], end - begin
        rows[4, j], rows[5, j] = 0, -1


@compiled
def cut_sorted_time(time: Ints, edges: Ints, begins: Ints) -> int:
    """Begins of slices of one key's tuples in order: only the next edge counts, as in [scotty Alg. 1].

    The search begins where the edge is if tuples have an even rate: then it reads little memory.
    """
    count = 0
    i = 0
    n = time.shape[0]
    per_unit = n / max(float(time[n - 1]) - float(time[0]), 1.0)
    e = np.searchsorted(edges, time[0], side="right")
    while i < n:
        begins[count] = i
        count += 1
        if e >= edges.shape[0]:
            break
        ahead = min((float(edges[e]) - float(time[i])) * per_unit, float(n))
        i = seek(time, i, i + int(ahead), n, edges[e])
        if i < n:
            e = gallop(edges, e, edges.shape[0], time[i] + 1)
    return count


@compiled
def cut_sorted(key: Ints, time: Ints, edges: Ints, gap: int, forced: Flags, begins: Ints) -> int:
    """Begins of the slices of tuples in (key, time) order: at each key, edge, session gap or forced cut."""
    n = edges.shape[0]
    count = 0
    previous_key = np.int64(-1)
    previous_time = np.int64(0)
    e = 0
    for i in range(time.shape[0]):
        t = time[i]
        new = forced[i]
        if i == 0 or key[i] != previous_key:
            new = True
            e = np.searchsorted(edges, t, side="right")
        else:
            while e < n and edges[e] <= t:
                e += 1
                new = True
            if gap >= 0 and t > previous_time + gap:
                new = True
        if new:
            begins[count] = i
            count += 1
        previous_key = key[i]
        previous_time = t
    return count


@compiled
def once_each(ordered: Ints) -> int:
    """Put the distinct values of a sorted column in front of the others; how many there are."""
    count = min(1, ordered.shape[0])
    for i in range(1, ordered.shape[0]):
        if ordered[i] != ordered[count - 1]:
            ordered[count] = ordered[i]
            count += 1
    return int(count)


@compiled
def progression_edges(
    offset: Ints, period: Ints, unit: int, low: int, high: int, marks: Flags, edges: Ints
) -> int:
    """All members of the arithmetic progressions in [low, high] and one beyond on each side; how many.

    Each once and in order, where they are few, or `marks` has room for all times that are a multiple of
    `unit` behind the first, which is their distance. Otherwise one progression after the other, and then
    the number is negative. [scotty Alg. 2]
    """
    count = 0
    lowest = np.int64(low)
    for p in range(offset.shape[0]):
        lowest = min(lowest, low - (low - offset[p]) % period[p])
    for p in range(offset.shape[0]):
        at = low - (low - offset[p]) % period[p]
        if marks.shape[0] > 0:
            place, step = np.uint64((at - lowest) // unit), np.uint64(period[p] // unit)
            while at <= high:
                marks[place] = True
                place += step
                at += period[p]
            marks[place] = True
            continue
        while at <= high:
            edges[count] = at
            count += 1
            at += period[p]
        edges[count] = at
        count += 1
    if marks.shape[0] > 0:
        for number in range(marks.shape[0]):  # without a branch that depends on the data
            edges[count] = lowest + number * unit
            count += int(marks[number])
        return count
    if count > INSERTION_SORTED:
        return -count
    insertion_sort(edges[:count])
    return int(once_each(edges[:count]))


@compiled
def next_member(offset: Ints, period: Ints, after: int, upto: int) -> int:
    """The first member of the arithmetic progressions after a time, or `upto` if that comes before."""
    nearest = upto
    for p in range(offset.shape[0]):
        nearest = min(nearest, after - (after - offset[p]) % period[p] + period[p])
    return nearest
