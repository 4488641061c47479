# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""Many ranges over one fixed sequence of partials, by four strategies.

``V`` holds the partials, ``lo`` and ``hi`` the half-open row ranges, ``out`` takes one partial for
each range (the identity for an empty one). Every kernel returns the number of combines.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import ONE, combine, get, invert, put


def reduce_lazy(V: Any, n: int, lo: Any, hi: Any, out: Any, scratch: Any) -> int:
    """Each range on its own: one combine less than rows."""
    combines = 0
    for j in range(len(lo)):
        first, last = lo[j], hi[j]
        if first >= last:
            put(out, j, ONE)
            continue
        total = get(V, first)
        for i in range(first + 1, last):
            total = combine(total, get(V, i))
        put(out, j, total)
        combines += last - first - 1
    return combines


def reduce_prefix(V: Any, n: int, lo: Any, hi: Any, out: Any, scratch: Any) -> int:
    """Differences of running sums, for operators that can be undone exactly: n plus one per range."""
    total = ONE
    put(scratch, 0, ONE)
    for i in range(n):
        total = combine(total, get(V, i))
        put(scratch, i + 1, total)
    for j in range(len(lo)):
        if lo[j] >= hi[j]:
            put(out, j, ONE)
        else:
            put(out, j, invert(get(scratch, hi[j]), get(scratch, lo[j])))
    return n + len(lo)


def reduce_two_stacks(V: Any, n: int, lo: Any, hi: Any, out: Any, scratch: Any) -> int:
    """Ranges whose starts and ends never go back: at most 2 combines per row and 1 per range."""
    border, end = 0, 0  # scratch[i] = product i..border-1; back = product border..end-1
    back = ONE
    combines = 0
    for j in range(len(lo)):
        first, last = lo[j], hi[j]
        if first >= last:
            put(out, j, ONE)
            continue
        if first >= border:  # the front part has run out: make one from all rows up to this range's end
            total = get(V, last - 1)
            put(scratch, last - 1, total)
            for i in range(last - 2, first - 1, -1):
                total = combine(get(V, i), total)
                put(scratch, i, total)
            combines += last - first - 1
            border, end = last, last
            put(out, j, total)
            continue
        if end < last:
            i = end
            if border == end:
                back = get(V, end)
                i = end + 1
            for k in range(i, last):
                back = combine(back, get(V, k))
            combines += last - i
            end = last
        if border == end:
            put(out, j, get(scratch, first))
        else:
            put(out, j, combine(get(scratch, first), back))
            combines += 1
    return combines


def reduce_tree(V: Any, n: int, lo: Any, hi: Any, out: Any, scratch: Any) -> int:
    """Any ranges, from a static FlatFAT (leaves at n..2n-1): n - 1, and at most 2 log2 n per range.

    Only nodes that lie wholly inside a range are read, so the tree needs no power of two.
    """
    for i in range(n):
        put(scratch, n + i, get(V, i))
    for node in range(n - 1, 0, -1):
        put(scratch, node, combine(get(scratch, 2 * node), get(scratch, 2 * node + 1)))
    combines = n - 1
    for j in range(len(lo)):
        low, high = lo[j] + n, hi[j] + n
        left, right = ONE, ONE
        has_left, has_right = False, False
        while low < high:
            if low & 1:
                left = combine(left, get(scratch, low)) if has_left else get(scratch, low)
                combines += 1 if has_left else 0
                has_left = True
                low += 1
            if high & 1:
                high -= 1
                right = combine(get(scratch, high), right) if has_right else get(scratch, high)
                combines += 1 if has_right else 0
                has_right = True
            low >>= 1
            high >>= 1
        if has_left and has_right:
            combines += 1
            put(out, j, combine(left, right))
        else:
            put(out, j, left if has_left else right)
    return combines
