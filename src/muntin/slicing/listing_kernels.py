"""Compiled: which rows of the slice table lie in which windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled
from muntin.slicing.sorting_kernels import INSERTION_SORTED, gallop, seek, sort_by

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]

ROOM = 1 << 25
"""Beyond this many possible windows, windows are counted before they are listed."""


WIDTH = 5
"""Numbers per window while it is listed: place in the grid, key, number of the window, lo and hi."""

MOST_ENDS = 1 << 24
"""The most distinct ends for which windows are counted by end."""


@compiled
def whole_steps(low: int, high: int, step: int) -> int:
    """The number of whole steps between two int64 times, most often none or one."""
    gap, one = np.uint64(high) - np.uint64(low), np.uint64(step)
    if gap < one:
        return 0
    return 1 if gap - one < one else int(np.int64(gap // one))


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
    begins: Places,
    low_place: int,
) -> int:
    """List the periodic windows that hold a driving row and end in (after, upto].

    `grid` has the columns of `PeriodicSeries`. Fills rows of `out` as far as they fit and returns the
    number of windows. `begins` counts the windows of each end, at the place of the end after `low_place`,
    unless it has no room for places. Windows are listed by walking the
    rows of each key once per window; rows in between are skipped by galloping. `drivers` false means that
    every row drives.
    """
    count = 0
    counted = begins.shape[0] > 1
    for q in range(grid.shape[1]):
        span, step, base, since = grid[1, q], grid[2, q], grid[3, q], grid[4, q]
        apart, place = grid[6, q], grid[7, q] - low_place + 1
        k_after = (max(after, grid[5, q]) - span - base) // step + 1
        k_upto = (upto - span - base) // step
        k_low = k_after if since < -(1 << 62) else max(k_after, -((base - since) // step))
        if k_upto < k_low:
            continue
        for key in range(offsets.shape[0] - 1):
            end = offsets[key + 1]
            done = k_low - 1
            i = lo = hi = gallop(first, offsets[key], end, k_low * step + base)
            if i == end:
                continue
            # The first and the last window that hold a row move on with it: to divide for each row
            # would take longer than all the rest.
            k_min, k_max = (first[i] - base - span) // step + 1, (first[i] - base) // step
            while i < end:
                if drivers and not driver[i]:
                    i += 1
                    continue
                f = first[i]
                if k_min * step + base + span <= f:
                    k_min += 1 + whole_steps(k_min * step + base + span, f, step)
                k_max += whole_steps(k_max * step + base, f, step)
                if k_min > k_upto:
                    break
                k = max(k_min, done + 1)
                while k <= min(k_max, k_upto):
                    start = k * step + base
                    # Where windows do not overlap, the next one begins where the last one ended, and
                    # has about as many rows.
                    rows = hi - lo if span <= step else 0
                    lo = gallop(first, hi if span <= step else lo, end, start)
                    hi = seek(first, max(hi, lo), lo + rows, end, start + span)
                    if count < out.shape[0]:
                        out[count, 0], out[count, 1], out[count, 2] = q, key, k
                        out[count, 3], out[count, 4] = lo, hi
                        if counted:
                            begins[k * apart + place] += 1
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
    """As `periodic_windows`, in the order of results; returns the number of windows.

    Where there may be more of them than `rows` has room for, returns how many it needs as a negative
    number. `edges` gets starts and ends, `others` window numbers, keys, lo and hi, one column behind
    the other. The caller makes these arrays, since NumPy asks for large pages of memory.
    """
    most, low, high = reach_of_windows(offsets, first, grid, after, upto)
    if rows.shape[0] < min(most, ROOM):
        return -int(min(most, ROOM))
    # Of few rows that drive, all of them may be far more than the windows: those are counted afterwards.
    counted = not drivers and float(high) - float(low) < min(8.0 * most + INSERTION_SORTED, MOST_ENDS)
    begins = np.zeros(high - low + 2 if counted else 1, np.int32)
    count = periodic_windows(offsets, first, driver, drivers, grid, after, upto, rows, begins, low)
    if count > rows.shape[0]:
        return -count
    starts, ends, columns = edges[:count], edges[count : 2 * count], others[: 4 * count].reshape(4, count)
    if not counted and float(high) - float(low) < min(4.0 * count + INSERTION_SORTED, MOST_ENDS):
        counted = True
        begins = np.zeros(high - low + 2, np.int32)
        for m in range(count):
            begins[rows[m, 2] * grid[6, rows[m, 0]] + grid[7, rows[m, 0]] - low + 1] += 1
    if counted:
        by_end(rows, count, grid, begins, low, starts, ends, columns)
        return count
    for m in range(count):
        ends[m] = rows[m, 2] * grid[2, rows[m, 0]] + grid[3, rows[m, 0]] + grid[1, rows[m, 0]]
    order = sort_by(ends.copy(), np.arange(count))
    for m in range(count):
        put_window(rows[order[m]], grid, m, starts, ends, columns)
    return count


@compiled
def reach_of_windows(offsets: Ints, first: Ints, grid: Ints, after: int, upto: int) -> tuple[int, int, int]:
    """An upper bound of the number of windows, and the places of their first and last end."""
    low, high = first[0], first[0]
    for key in range(offsets.shape[0] - 1):
        if offsets[key] < offsets[key + 1]:
            low, high = min(low, first[offsets[key]]), max(high, first[offsets[key + 1] - 1])
    most = 0.0
    low_place, high_place = 0, -1
    for q in range(grid.shape[1]):
        span, step, base = grid[1, q], grid[2, q], grid[3, q]
        begin = max((low - base - span) // step, (max(after, grid[5, q]) - span - base) // step) + 1
        end = min((high - base) // step, (upto - span - base) // step)
        if begin <= end:
            each_key = float(end - begin + 1) * (offsets.shape[0] - 1)
            each_row = float(span // step + 1) * first.shape[0]
            first_place, last_place = begin * grid[6, q] + grid[7, q], end * grid[6, q] + grid[7, q]
            low_place = min(low_place, first_place) if most else first_place
            high_place = max(high_place, last_place) if most else last_place
            most += min(each_key, each_row)
    return int(min(most, 2.0**62)), low_place, high_place


@compiled
def by_end(
    rows: Ints, count: int, grid: Ints, begins: Places, low: int, starts: Ints, ends: Ints, columns: Ints
) -> None:
    """Windows as columns by end, start, number and key.

    They are listed so that windows with one end are in that order already. Ends are multiples of a unit
    apart, so one pass moves windows to their places. A row is read from one cache line; columns would
    need five.
    """
    for p in range(begins.shape[0] - 1):
        begins[p + 1] += begins[p]
    for m in range(count):
        q = rows[m, 0]
        place = rows[m, 2] * grid[6, q] + grid[7, q] - low
        put_window(rows[m], grid, begins[place], starts, ends, columns)
        begins[place] += 1


@compiled
def put_window(row: Ints, grid: Ints, place: int, starts: Ints, ends: Ints, columns: Ints) -> None:
    """Write a window to its place, with the number of the window."""
    q = row[0]
    start = row[2] * grid[2, q] + grid[3, q]
    starts[place], ends[place] = start, start + grid[1, q]
    columns[0, place], columns[1, place] = grid[0, q], row[1]
    columns[2, place], columns[3, place] = row[3], row[4]


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
            contained = hi > lo
            if contained and drivers:
                contained = False
                for i in range(lo, hi):
                    if driver[i]:
                        contained = True
                        break
            if contained:
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
def begin_lives(key: Ints, first: Ints, last: Ints, forget: int, begins: Flags) -> None:
    """Mark the rows, sorted by key and first time, that begin a life; one with first > last is alone."""
    furthest = last[0] if last.shape[0] else 0
    for r in range(1, key.shape[0]):
        apart = key[r] != key[r - 1] or first[r] > last[r] or first[r] >= furthest + forget
        furthest = last[r] if apart else max(furthest, last[r])
        begins[r] = apart


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
    old_row = np.full(key.shape[0], -1, np.int64)
    o = 0
    for j in range(key.shape[0]):
        while o < old_key.shape[0] and (
            old_key[o] < key[j] or (old_key[o] == key[j] and old_rank[o] + old_n[o] <= rank[j])
        ):
            o += 1
        if o < old_key.shape[0] and old_key[o] == key[j] and old_rank[o] <= rank[j]:
            old_row[j] = o
    return old_row
