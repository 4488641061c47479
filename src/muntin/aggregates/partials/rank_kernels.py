"""Compiled selection by rank among several sorted runs, without merging them."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Floats, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled

_FEW = 32
"""Up to this many candidates are not sorted: a sort allocates, which costs more than passes over them."""


@compiled
def _above(keys: Ints, a: int, b: int, key: int) -> int:
    """The first place in a:b whose key is larger."""
    while a < b:
        middle = (a + b) >> 1
        if keys[middle] <= key:
            a = middle + 1
        else:
            b = middle
    return a


@compiled
def _narrow(keys: Ints, upto: Ints, begin: Ints, a: Ints, b: Ints, cut: Ints, n: int, rank: int) -> None:
    """Shrink the candidates a:b of each of n runs to at most one each, among them the value of that rank.

    Each round takes the middle of the longest candidates and counts, in every run, the values up to
    it: what lies on the wrong side is none any more.
    """
    while True:
        widest = 0
        for s in range(1, n):
            if b[s] - a[s] > b[widest] - a[widest]:
                widest = s
        if b[widest] - a[widest] < 2:
            return
        pivot = keys[(a[widest] + b[widest] - 1) >> 1]
        below = 0
        for s in range(n):
            cut[s] = _above(keys, a[s], b[s], pivot)
            if cut[s] > begin[s]:
                below += upto[cut[s] - 1]
        for s in range(n):
            if below > rank:
                b[s] = cut[s]
            else:
                a[s] = cut[s]


@compiled
def _among(keys: Ints, upto: Ints, begin: Ints, a: Ints, b: Ints, n: int, rank: int) -> tuple[int, int]:
    """The key of that rank among at most one candidate of each run, and the number of values up to it."""
    seen = 0
    m = 0
    for s in range(n):
        if a[s] > begin[s]:
            seen += upto[a[s] - 1]
        m += a[s] < b[s]
    if m <= _FEW:
        return _among_few(keys, upto, begin, a, b, n, m, rank, seen)
    left = np.empty(m, np.int64)
    m = 0
    for s in range(n):
        if a[s] < b[s]:
            left[m] = s
            m += 1
    order = np.argsort(keys[a[left]])
    i = 0
    key = 0
    while i < m and seen <= rank:
        key = keys[a[left[order[i]]]]
        while i < m and keys[a[left[order[i]]]] == key:
            s = left[order[i]]
            seen += upto[a[s]] - (upto[a[s] - 1] if a[s] > begin[s] else 0)
            i += 1
    return key, seen


@compiled
def _among_few(
    keys: Ints, upto: Ints, begin: Ints, a: Ints, b: Ints, n: int, m: int, rank: int, seen: int
) -> tuple[int, int]:
    """As `_among`, with one pass over the runs for each candidate: no sort, and no array for it."""
    key = 0
    while m > 0 and seen <= rank:
        has_key = False
        for s in range(n):
            if a[s] < b[s] and (not has_key or keys[a[s]] < key):
                key = keys[a[s]]
                has_key = True
        for s in range(n):
            if a[s] < b[s] and keys[a[s]] == key:
                seen += upto[a[s]] - (upto[a[s] - 1] if a[s] > begin[s] else 0)
                b[s] = a[s]
                m -= 1
    return key, seen


@compiled
def neighbours(
    offsets: Ints, keys: Ints, upto: Ints, rows: Ints | None, lo: Ints, hi: Ints, qs: Floats
) -> tuple[Ints, Ints, Floats, Ints]:
    """The keys below and above each fraction of each range of rows, how far between it lies, and sizes."""
    below = np.zeros((lo.size, qs.size), np.int64)
    above = np.zeros((lo.size, qs.size), np.int64)
    between = np.zeros((lo.size, qs.size))
    sizes = np.zeros(lo.size, np.int64)
    most = 1
    for j in range(lo.size):
        most = max(most, hi[j] - lo[j])
    begin = np.empty(most, np.int64)
    end = np.empty(most, np.int64)
    a = np.empty(most, np.int64)
    b = np.empty(most, np.int64)
    cut = np.empty(most, np.int64)
    for j in range(lo.size):
        n = 0
        total = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            if offsets[r] < offsets[r + 1]:
                begin[n] = offsets[r]
                end[n] = offsets[r + 1]
                total += upto[end[n] - 1]
                n += 1
        sizes[j] = total
        if total == 0:
            continue
        for k in range(qs.size):
            position = qs[k] * (total - 1)
            low = int(np.floor(position))
            between[j, k] = position - low
            a[:n] = begin[:n]
            b[:n] = end[:n]
            _narrow(keys, upto, begin, a, b, cut, n, low)
            key, seen = _among(keys, upto, begin, a, b, n, low)
            below[j, k] = key
            above[j, k] = key
            if seen <= int(np.ceil(position)):
                any_above = False
                for s in range(n):
                    i = _above(keys, begin[s], end[s], key)
                    if i < end[s] and (not any_above or keys[i] < above[j, k]):
                        above[j, k] = keys[i]
                        any_above = True
    return below, above, between, sizes
