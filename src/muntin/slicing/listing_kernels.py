"""Compiled: which rows of the slice table lie in which windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled
from muntin.slicing.sorting_kernels import FEW, gallop, seek, sort_by

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ROOM = 1 << 25
"""More windows than that are counted before they are listed."""


@compiled
def put_window(out: Ints, m: int, query: int, key: int, start: int, end: int, lo: int, hi: int) -> None:
    """Write window number m, for which there is room."""
    out[m, 0] = query
    out[m, 1] = key
    out[m, 2] = start
    out[m, 3] = end
    out[m, 4] = lo
    out[m, 5] = hi


@compiled
def periodic_windows(
    offsets: Ints,
    first: Ints,
    driver: Flags,
    drivers: bool,
    grid: Ints,
    after: int,
    upto: int,
    out: Ints,
) -> int:
    """List the windows of periodic queries that hold a driving row and end in (after, upto].

    `grid` has for each query its number, length, slide and offset, since when its windows begin, and
    after which end they come out. Fills (place in the grid, key, start, end, lo, hi) rows of `out` as far
    as they fit and returns how many there are. Windows are found by walking the rows of each key once
    per query; rows in between are skipped by galloping. `drivers` false means that every row drives.
    """
    count = 0
    for q in range(grid.shape[1]):
        span, step, base, since = grid[1, q], grid[2, q], grid[3, q], grid[4, q]
        k_after = (max(after, grid[5, q]) - span - base) // step + 1
        k_upto = (upto - span - base) // step
        k_since = -((base - since) // step) if since > -(1 << 62) else -(1 << 62)
        k_low = max(k_after, k_since)
        if k_upto < k_low:
            continue
        for key in range(offsets.shape[0] - 1):
            end = offsets[key + 1]
            done = k_low - 1
            i = lo = hi = gallop(first, offsets[key], end, k_low * step + base)
            while i < end:
                if drivers and not driver[i]:
                    i += 1
                    continue
                f = first[i]
                k_min = (f - base - span) // step + 1
                k_max = min((f - base) // step, k_upto)
                k = max(k_min, done + 1)
                if k_min > k_upto:
                    break
                while k <= k_max:
                    start = k * step + base
                    # Where windows do not overlap, the next one begins where the last one ended, and
                    # has about as many rows.
                    rows = hi - lo if span <= step else 0
                    lo = gallop(first, hi if span <= step else lo, end, start)
                    hi = seek(first, max(hi, lo), lo + rows, end, start + span)
                    if count < out.shape[0]:
                        put_window(out, count, q, key, start, start + span, lo, hi)
                    count += 1
                    done = k
                    k += 1
                if done == k_upto:  # the rows that are left lie in windows that are listed, or in later ones
                    break
                i += 1
                if not drivers and i < end and first[i] < (done + 1) * step + base:
                    # Windows that do not overlap are left behind as a whole.
                    i = gallop(first, max(i, hi if span <= step else lo), end, (done + 1) * step + base)
    return count


@compiled
def list_periodic(
    offsets: Ints,
    first: Ints,
    driver: Flags,
    drivers: bool,
    grid: Ints,
    after: int,
    upto: int,
    rows: Ints,
    edges: Ints,
    others: Ints,
) -> int:
    """As `periodic_windows`, in the order of results; returns how many windows there are.

    Where there may be more of them than `rows` has room for, returns how many it needs as a negative
    number. `edges` gets starts and ends, `others` queries by number, keys, lo and hi, one column behind
    the other. The caller makes these arrays, since NumPy asks for large pages of memory.
    """
    most = most_windows(offsets, first, grid, after, upto)
    if rows.shape[0] < min(most, ROOM):
        return -int(min(most, ROOM))
    count = periodic_windows(offsets, first, driver, drivers, grid, after, upto, rows)
    if count > rows.shape[0]:
        return -count
    in_order_of_results(
        rows, count, grid, edges[: 2 * count].reshape(2, count), others[: 4 * count].reshape(4, count)
    )
    return count


@compiled
def most_windows(offsets: Ints, first: Ints, grid: Ints, after: int, upto: int) -> int:
    """How many windows there can be at most: memory that nobody touches costs nothing."""
    low, high = first[0], first[0]
    for key in range(offsets.shape[0] - 1):
        if offsets[key] < offsets[key + 1]:
            low, high = min(low, first[offsets[key]]), max(high, first[offsets[key + 1] - 1])
    most = 0.0
    for q in range(grid.shape[1]):
        span, step, base = grid[1, q], grid[2, q], grid[3, q]
        begin = max((low - base - span) // step, (max(after, grid[5, q]) - span - base) // step) + 1
        end = min((high - base) // step, (upto - span - base) // step)
        if begin <= end:
            each_key = float(end - begin + 1) * (offsets.shape[0] - 1)
            each_row = float(span // step + 1) * first.shape[0]
            most += min(each_key, each_row)
    return int(min(most, 2.0**62))


@compiled
def in_order_of_results(rows: Ints, count: int, grid: Ints, edges: Ints, others: Ints) -> None:
    """Windows as columns by end, start, query and key.

    They are listed so that those with one end stand in that order already. Ends lie a multiple of a unit
    apart: so there are few different ones, and windows go to their places in one pass. A row is read at
    once, which lies in one line of the cache; columns would lie in six.
    """
    if count == 0:
        return
    unit = 0
    for q in range(grid.shape[1]):
        shift = grid[3, q] + grid[1, q] - grid[3, 0] - grid[1, 0]
        unit = greatest_divisor(greatest_divisor(unit, grid[2, q]), abs(shift))
    low = high = rows[0, 3]
    for m in range(1, count):
        low, high = min(low, rows[m, 3]), max(high, rows[m, 3])
    last = place_of(high, low, unit)
    if last < 0 or last > 4 * count + FEW:
        order = sort_by(rows[:count, 3].copy(), np.arange(count))
        for m in range(count):
            put_columns(edges, others, m, rows[order[m]], grid)
        return
    begins = np.zeros(last + 2, np.int64)
    for m in range(count):
        begins[place_of(rows[m, 3], low, unit) + 1] += 1
    for p in range(begins.shape[0] - 1):
        begins[p + 1] += begins[p]
    for m in range(count):
        place = place_of(rows[m, 3], low, unit)
        put_columns(edges, others, begins[place], rows[m], grid)
        begins[place] += 1


@compiled
def place_of(end: int, low: int, unit: int) -> int:
    """The number of an end among all from the lowest on; they may lie further apart than an int64 holds."""
    return int(np.int64((np.uint64(end) - np.uint64(low)) // np.uint64(unit)))


@compiled
def put_columns(edges: Ints, others: Ints, place: int, row: Ints, grid: Ints) -> None:
    """Write a window to its place, with the number of its query."""
    edges[0, place], edges[1, place] = row[2], row[3]
    others[0, place], others[1, place] = grid[0, row[0]], row[1]
    others[2, place], others[3, place] = row[4], row[5]


@compiled
def greatest_divisor(a: int, b: int) -> int:
    """The greatest common divisor of two numbers that are not negative."""
    while b:
        a, b = b, a % b
    return a


@compiled
def starts_before(length: Ints, slide: Ints, offset: Ints, oldest: int, final: int) -> Ints:
    """The starts in [oldest, final] of periodic windows that end after `final`."""
    low = np.empty(length.shape[0], np.int64)
    most = 0
    for q in range(length.shape[0]):
        ending = (final - length[q] - offset[q]) // slide[q] + 1
        low[q] = max(ending, -((offset[q] - oldest) // slide[q]))
        most += max(0, (final - offset[q]) // slide[q] - low[q] + 1)
    starts = np.empty(most, np.int64)
    count = 0
    for q in range(length.shape[0]):
        at = low[q] * slide[q] + offset[q]
        while at <= final:
            starts[count] = at
            count += 1
            at += slide[q]
    return starts


@compiled
def explicit_windows(
    offsets: Ints, first: Ints, driver: Flags, drivers: bool, start: Ints, end: Ints, out: Ints
) -> int:
    """List which of the given windows hold (driving) rows of which keys: (key, window, lo, hi)."""
    count = 0
    room = out.shape[1]
    for key in range(offsets.shape[0] - 1):
        low = offsets[key]
        high = offsets[key + 1]
        if low == high:
            continue
        rows = first[low:high]
        for w in range(start.shape[0]):
            lo = low + np.searchsorted(rows, start[w])
            hi = low + np.searchsorted(rows, end[w])
            held = hi > lo
            if held and drivers:
                held = False
                for i in range(lo, hi):
                    if driver[i]:
                        held = True
                        break
            if held:
                if count < room:
                    out[0, count] = key
                    out[1, count] = w
                    out[2, count] = lo
                    out[3, count] = hi
                count += 1
    return count


@compiled
def sessions(rows: Ints, key: Ints, first: Ints, last: Ints, gap: int, since: int, out: Ints) -> int:
    """Sessions over the rows of a class: (key, first, last, lo, hi) with positions in `rows`."""
    count = 0
    for o in range(rows.shape[0]):
        r = rows[o]
        if first[r] < since:
            continue
        if count and out[0, count - 1] == key[r] and first[r] <= out[2, count - 1] + gap:
            out[2, count - 1] = max(out[2, count - 1], last[r])
            out[4, count - 1] = o + 1
        else:
            out[0, count] = key[r]
            out[1, count] = first[r]
            out[2, count] = last[r]
            out[3, count] = o
            out[4, count] = o + 1
            count += 1
    return count


@compiled
def rank_ranges(offsets: Ints, rank: Ints, key: Ints, begin: Ints, end: Ints, lo: Ints, hi: Ints) -> None:
    """Positions of the rows that hold the ranks [begin, end) of a key."""
    for j in range(key.shape[0]):
        low = offsets[key[j]]
        high = offsets[key[j] + 1]
        ranks = rank[low:high]
        lo[j] = low + np.searchsorted(ranks, begin[j])
        hi[j] = low + np.searchsorted(ranks, end[j])


@compiled
def spanned_windows(
    start: Ints, end: Ints, least: Ints, done: Ints, last: Ints, shown: Ints, expired: int, out: Ints
) -> int:
    """List which of the windows lie between the first and the last tuple of which keys: (key, window).

    Those that end after `done`, start by `last`, and have not come out yet: they end after `expired`,
    or start after `shown`. `least` is the smallest start from a window on.
    """
    count = 0
    room = out.shape[1]
    for key in range(done.shape[0]):
        w = np.searchsorted(end, done[key], side="right")
        while w < end.shape[0] and least[w] <= last[key]:
            if start[w] <= last[key] and (end[w] > expired or start[w] > shown[key]):
                if count < room:
                    out[0, count] = key
                    out[1, count] = w
                count += 1
            w += 1
    return count


@compiled
def sum_ranges(
    rows: Ints, lo: Ints, hi: Ints, n: Ints, fresh: Ints, mark: Ints, o_n: Ints, o_fresh: Ints, o_mark: Ints
) -> None:
    """Tuples, fresh tuples and content mark of each window `rows[lo:hi]`."""
    for j in range(lo.shape[0]):
        c = np.int64(0)
        u = np.int64(0)
        m = np.int64(0)
        for o in range(lo[j], hi[j]):
            r = rows[o] if rows.shape[0] else o
            c += n[r]
            u += fresh[r]
            m += mark[r]
        o_n[j] = c
        o_fresh[j] = u
        o_mark[j] = m


@compiled
def mark_pairs(offsets: Ints, rank: Ints, key: Ints, at: Ints, marks: Flags) -> None:
    """Mark the rows of a key that begin at these ranks."""
    for j in range(key.shape[0]):
        for r in range(offsets[key[j]], offsets[key[j] + 1]):
            if rank[r] == at[j]:
                marks[r] = True


@compiled
def rows_holding(old_key: Ints, old_rank: Ints, old_n: Ints, key: Ints, rank: Ints) -> Ints:
    """For (key, rank) in order: the old row, in the same order, that holds it; -1 if none does."""
    held = np.full(key.shape[0], -1, np.int64)
    o = 0
    for j in range(key.shape[0]):
        while o < old_key.shape[0] and (
            old_key[o] < key[j] or (old_key[o] == key[j] and old_rank[o] + old_n[o] <= rank[j])
        ):
            o += 1
        if o < old_key.shape[0] and old_key[o] == key[j] and old_rank[o] <= rank[j]:
            held[j] = o
    return held
