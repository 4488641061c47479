"""Compiled sorting, merging and comparison of items in event-time order, the order of (time, seq)."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.partials.list_kernels import gather, row_at
from muntin.compiled_kernels import compiled


@compiled
def _before(time: Ints, seq: Ints, p: int, q: int) -> bool:
    return bool(time[p] < time[q] or (time[p] == time[q] and seq[p] < seq[q]))


@compiled
def _merge(row: Ints, into: Ints, a: int, b: int, c: int, time: Ints, seq: Ints) -> None:
    """Merge the sorted ranges a:b and b:c of `row` into a:c of `into`."""
    i = a
    j = b
    for k in range(a, c):
        if j == c or (i < b and not _before(time, seq, row[j], row[i])):
            into[k] = row[i]
            i += 1
        else:
            into[k] = row[j]
            j += 1


@compiled
def _set_late_apart(row: Ints, time: Ints, seq: Ints, buffer: Ints) -> int:
    """Move the items that follow a later one to the end of the row; returns the number of the others."""
    in_order = 0
    late = 0
    for i in range(row.size):
        item = row[i]
        if in_order > 0 and _before(time, seq, item, row[in_order - 1]):
            buffer[late] = item
            late += 1
        else:
            row[in_order] = item
            in_order += 1
    row[in_order:] = buffer[:late]
    return in_order


@compiled
def _merge_runs(row: Ints, time: Ints, seq: Ints, starts: Ints, buffer: Ints) -> None:
    """Sort a row in place by merging its runs, pair by pair."""
    runs = 0
    for i in range(row.size):
        if i == 0 or _before(time, seq, row[i], row[i - 1]):
            starts[runs] = i
            runs += 1
    starts[runs] = row.size
    while runs > 1:
        merged = 0
        for r in range(0, runs, 2):
            middle = starts[r + 1]
            last = starts[min(r + 2, runs)]
            _merge(row, buffer, starts[r], middle, last, time, seq)
            starts[merged] = starts[r]
            merged += 1
        row[:] = buffer[: row.size]
        starts[merged] = row.size
        runs = merged


@compiled
def _sort_row(row: Ints, time: Ints, seq: Ints, starts: Ints, buffer: Ints) -> None:
    """Sort the items of a row by (time, seq), in place.

    Most tuples of a stream arrive in order. So only the late ones are sorted, then merged with the others.
    """
    in_order = _set_late_apart(row, time, seq, buffer)
    if in_order < row.size:
        _merge_runs(row[in_order:], time, seq, starts, buffer)
        _merge(row, buffer, 0, in_order, row.size, time, seq)
        row[:] = buffer[: row.size]


@compiled
def _longest(offsets: Ints) -> int:
    longest = 0
    for j in range(offsets.size - 1):
        longest = max(longest, offsets[j + 1] - offsets[j])
    return longest


@compiled
def sort_by_order(offsets: Ints, index: Ints, time: Ints, seq: Ints) -> None:
    """Sort the items of each row by (time, seq), in place."""
    longest = _longest(offsets)
    starts = np.empty(longest + 1, np.int64)
    buffer = np.empty(longest, np.int64)
    for j in range(offsets.size - 1):
        _sort_row(index[offsets[j] : offsets[j + 1]], time, seq, starts, buffer)


@compiled
def overlapping(offsets: Ints, time: Ints, seq: Ints, rows: Ints | None, lo: Ints, hi: Ints) -> Bools:
    """Whether the rows of each range overlap in time; it compares the first and last items of sorted rows."""
    out = np.zeros(lo.size, np.bool_)
    for j in range(lo.size):
        last = -1
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            if offsets[r] < offsets[r + 1]:
                if last >= 0 and _before(time, seq, offsets[r], last):
                    out[j] = True
                    break
                last = offsets[r + 1] - 1
    return out


@compiled
def join_in_order(
    offsets: Ints, time: Ints, seq: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[Ints, Ints]:
    """As `gather`, for rows sorted by (time, seq): the joined rows are sorted as well.

    Rows rarely overlap in time, and only those that do are sorted.
    """
    joined, index = gather(offsets, rows, lo, hi)
    unsorted = overlapping(offsets, time, seq, rows, lo, hi)
    longest = _longest(joined) if unsorted.any() else 0
    starts = np.empty(longest + 1, np.int64)
    buffer = np.empty(longest, np.int64)
    for j in range(lo.size):
        if unsorted[j]:
            _sort_row(index[joined[j] : joined[j + 1]], time, seq, starts, buffer)
    return joined, index


@compiled
def spans(
    offsets: Ints, time: Ints, seq: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[bool, Ints, Ints, Ints]:
    """Whether the rows of each range do not overlap in time; if so, the offsets of the joined rows.

    Also begin and end of the spans of items to copy; adjacent rows make one span.
    """
    joined = np.zeros(lo.size + 1, np.int64)
    most = 0
    for j in range(lo.size):
        most += max(0, hi[j] - lo[j])
    begin = np.empty(most, np.int64)
    end = np.empty(most, np.int64)
    k = 0
    for j in range(lo.size):
        last = -1
        size = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            a, b = offsets[r], offsets[r + 1]
            if a == b:
                continue
            if last >= 0 and _before(time, seq, a, last):
                return False, joined, begin, end
            last = b - 1
            size += b - a
            if k > 0 and end[k - 1] == a:
                end[k - 1] = b
            else:
                begin[k] = a
                end[k] = b
                k += 1
        joined[j + 1] = joined[j] + size
    return True, joined, begin[:k], end[:k]


@compiled
def subtract(
    offsets: Ints, time: Ints, seq: Ints, part_offsets: Ints, part_time: Ints, part_seq: Ints
) -> tuple[Ints, Ints]:
    """Offsets and places of the items of each row whose (time, seq) is not in the same row of the part."""
    left = np.zeros(offsets.size, np.int64)
    index = np.empty(time.size, np.int64)
    k = 0
    for j in range(offsets.size - 1):
        p = part_offsets[j]
        for i in range(offsets[j], offsets[j + 1]):
            if p < part_offsets[j + 1] and time[i] == part_time[p] and seq[i] == part_seq[p]:
                p += 1
            else:
                index[k] = i
                k += 1
        left[j + 1] = k
    return left, index[:k].copy()
