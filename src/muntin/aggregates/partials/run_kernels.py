"""Compiled sorted runs: the distinct keys of each row in order, and how many values lie up to each."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled
from muntin.timeline.extent_kernels import extent


@compiled
def by_group(keys: Ints, group: Ints, valid: Bools | None, n: int) -> tuple[Ints, Ints]:
    """Offsets of n groups, and their valid keys one group after the other."""
    offsets = np.zeros(n + 1, np.int64)
    for i in range(group.size):
        if group[i] >= 0 and (valid is None or valid[i]):
            offsets[group[i] + 1] += 1
    for g in range(n):
        offsets[g + 1] += offsets[g]
    placed = np.empty(offsets[n], np.int64)
    cursor = offsets[:n].copy()
    for i in range(group.size):
        g = group[i]
        if g >= 0 and (valid is None or valid[i]):
            placed[np.uint64(cursor[g])] = keys[i]
            cursor[g] += 1
    return offsets, placed


@compiled
def is_dense(offsets: Ints, keys: Ints, low: Ints, high: Ints) -> bool:
    """Whether the keys of each row lie so close together that they are counted in less time than sorted.

    `low` and `high` get the smallest and largest key of each row, as far as it looks.
    """
    spare = 2 * keys.size + 1024
    for j in range(offsets.size - 1):
        row = keys[offsets[j] : offsets[j + 1]]
        low[j], high[j] = 0, -1
        if row.size:
            least, most, _ = extent(row)
            low[j], high[j] = least, most
            room = np.uint64(most) - np.uint64(least)  # which may be more than an int64 holds
            if room >= np.uint64(spare):
                return False
            spare -= int(room) + 1
    return spare >= 0


@compiled
def count_dense(offsets: Ints, keys: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """As `compress`, for rows in any order whose keys lie close together."""
    starts = np.zeros(offsets.size, np.int64)
    most, room = 0, 0
    for j in range(low.size):
        width = high[j] - low[j] + 1
        most = max(most, width)
        room += min(width, offsets[j + 1] - offsets[j])
    distinct, upto = np.empty(room, np.int64), np.empty(room, np.int64)
    counts = np.zeros(most, np.int64)
    k = 0
    for j in range(low.size):
        for key in keys[offsets[j] : offsets[j + 1]]:
            counts[np.uint64(key - low[j])] += 1
        total = 0
        for c in range(high[j] - low[j] + 1):
            if counts[c]:
                total += counts[c]
                distinct[k], upto[k] = low[j] + c, total
                k += 1
                counts[c] = 0
        starts[j + 1] = k
    return starts, distinct[:k].copy(), upto[:k].copy()


@compiled
def sort_small(offsets: Ints, keys: Ints, limit: int) -> None:
    """Sort the rows of at most `limit` keys in place, by insertion; NumPy sorts the others faster."""
    for j in range(offsets.size - 1):
        if 1 < offsets[j + 1] - offsets[j] <= limit:
            for i in range(offsets[j] + 1, offsets[j + 1]):
                key = keys[i]
                k = i
                while k > offsets[j] and keys[k - 1] > key:
                    keys[k] = keys[k - 1]
                    k -= 1
                keys[k] = key


@compiled
def compress(offsets: Ints, keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Sorted rows with repetitions as offsets, distinct keys and the number of values up to each.

    What is written for a repetition is written over by the next one: whether a key comes again cannot
    be predicted.
    """
    starts = np.zeros(offsets.size, np.int64)
    distinct = np.empty(keys.size, np.int64)
    upto = np.empty(keys.size, np.int64)
    k = np.uint64(0)
    for j in range(offsets.size - 1):
        row = keys[offsets[j] : offsets[j + 1]]
        for i in range(row.size - 1):
            distinct[k] = row[i]
            upto[k] = i + 1
            k += np.uint64(row[i] != row[i + 1])
        if row.size:
            distinct[k] = row[row.size - 1]
            upto[k] = row.size
            k += np.uint64(1)
        starts[j + 1] = k
    return starts, distinct[:k].copy(), upto[:k].copy()


@compiled
def _merge(
    keys: Ints,
    upto: Ints,
    a: int,
    b: int,
    other_keys: Ints,
    other_upto: Ints,
    c: int,
    d: int,
    into_keys: Ints,
    into_upto: Ints,
    k: int,
) -> int:
    """Merge the run a:b and the run c:d of the other arrays into place k; where they end there."""
    i = a
    j = c
    # The merged part of each run. Their sum counts by multiplicity, not by one.
    p = 0
    q = 0
    while i < b and j < d:
        x = keys[i]
        y = other_keys[j]
        # Arithmetic instead of branches: which run comes next cannot be predicted.
        first = int(x <= y)
        second = int(y <= x)
        p += (upto[i] - p) * first
        q += (other_upto[j] - q) * second
        into_keys[k] = min(x, y)
        into_upto[k] = p + q
        i += first
        j += second
        k += 1
    while i < b:
        into_keys[k] = keys[i]
        into_upto[k] = upto[i] + q
        i += 1
        k += 1
    while j < d:
        into_keys[k] = other_keys[j]
        into_upto[k] = p + other_upto[j]
        j += 1
        k += 1
    return k


@compiled
def _merge_all(
    begin: Ints, end: Ints, n: int, keys: Ints, upto: Ints, other_keys: Ints, other_upto: Ints
) -> tuple[Ints, Ints, int]:
    """Merge n runs pair by pair until one is left; its buffers and its end."""
    while n > 1:
        m = 0
        for p in range(0, n - 1, 2):
            a, b, c, d = begin[p], end[p], begin[p + 1], end[p + 1]
            end[m] = _merge(keys, upto, a, b, keys, upto, c, d, other_keys, other_upto, a)
            begin[m] = a
            m += 1
        if n % 2:
            a, b = begin[n - 1], end[n - 1]
            other_keys[a:b] = keys[a:b]
            other_upto[a:b] = upto[a:b]
            begin[m] = a
            end[m] = b
            m += 1
        n = m
        keys, other_keys = other_keys, keys
        upto, other_upto = other_upto, upto
    return keys, upto, end[0]


@compiled
def _sizes(offsets: Ints, rows: Ints | None, lo: Ints, hi: Ints) -> tuple[int, int, int]:
    """The keys of all ranges, the most keys of a range outside its longest run, the most rows of a range."""
    buffered = 0
    total = 0
    most = 0
    for j in range(lo.size):
        size = 0
        longest = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            size += offsets[r + 1] - offsets[r]
            longest = max(longest, offsets[r + 1] - offsets[r])
        buffered = max(buffered, size - longest)
        most = max(most, hi[j] - lo[j])
        total += size
    return total, buffered, most


@compiled
def _merge_range(
    begin: Ints,
    end: Ints,
    n: int,
    longest: int,
    keys: Ints,
    upto: Ints,
    buffers: Ints,
    out_keys: Ints,
    out_upto: Ints,
    k: int,
) -> int:
    """Merge n runs into place k; where they end there.

    The longest one waits until the others are one: next to a slice that has been folded from many,
    fresh ones are short, and it is read once instead of in every round.
    """
    a, b = begin[longest], end[longest]
    if n == 1:
        out_keys[k : k + b - a] = keys[a:b]
        out_upto[k : k + b - a] = upto[a:b]
        return int(k + b - a)
    if n == 2:
        c, d = begin[1 - longest], end[1 - longest]
        return _merge(keys, upto, a, b, keys, upto, c, d, out_keys, out_upto, k)
    size = 0
    m = 0
    for s in range(n):
        if s != longest:
            c, d = begin[s], end[s]
            buffers[0, size : size + d - c] = keys[c:d]
            buffers[1, size : size + d - c] = upto[c:d]
            begin[m] = size
            size += d - c
            end[m] = size
            m += 1
    rest_keys, rest_upto, size = _merge_all(begin, end, m, buffers[0], buffers[1], buffers[2], buffers[3])
    return _merge(keys, upto, a, b, rest_keys, rest_upto, 0, size, out_keys, out_upto, k)


@compiled
def merge_rows(
    offsets: Ints, keys: Ints, upto: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[Ints, Ints, Ints]:
    """The runs of each range of rows merged into one."""
    total, buffered, most = _sizes(offsets, rows, lo, hi)
    buffers = np.empty((4, buffered if most > 2 else 0), np.int64)
    begin = np.empty(most + 1, np.int64)
    end = np.empty(most + 1, np.int64)
    starts = np.zeros(lo.size + 1, np.int64)
    out_keys = np.empty(total, np.int64)
    out_upto = np.empty(total, np.int64)
    k = 0
    for j in range(lo.size):
        n = 0
        longest = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            if offsets[r] < offsets[r + 1]:
                begin[n] = offsets[r]
                end[n] = offsets[r + 1]
                if end[n] - begin[n] > end[longest] - begin[longest]:
                    longest = n
                n += 1
        if n > 0:
            k = _merge_range(begin, end, n, longest, keys, upto, buffers, out_keys, out_upto, k)
        starts[j + 1] = k
    if k < total:
        return starts, out_keys[:k].copy(), out_upto[:k].copy()
    return starts, out_keys, out_upto
