"""FiBA: evict the oldest, one or many (Tangwongsan et al., VLDB 2019, section 3, and VLDB 2023, section 4).

One evict moves SKIP on in the left finger. When that is used up, or for a bulk evict, the tree is cut:
going down along the cut, each node loses its entries before the cut, and the rest of these nodes is the
new left spine. A node with too few entries takes some from its neighbour or is merged with it before the
next level, so neighbours are always siblings (the paper repairs on the way up, where they may be cousins).
Whole subtrees go to the free list at once, so the cost does not depend on their size.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import descend, put_down, refresh_node, sum_left
from muntin.stores.fiba_layout import *
from muntin.stores.fiba_node_kernels import clear, climb_before, rank, release
from muntin.stores.fiba_remove_kernels import become_root, borrow_right, close_front, merge
from muntin.stores.vocabulary import *

HOT = frozenset({"evict"})


def evict(D: Any) -> int:
    """The oldest entry: no combine, and amortised O(1) when the left finger is used up."""
    S = D[0]
    if S[SKIP] < S[SUMMED] and S[SIZE] > 1:
        S[SKIP] += 1
        S[SIZE] -= 1
        return OK
    return evict_unsummed(D)


def evict_unsummed(D: Any) -> int:
    """The oldest entry, which is not in the sums of the left finger, or the last one of all."""
    S, N, _ = D
    if S[SIZE] <= 1:
        if S[SIZE] == 0:
            return EMPTY
        clear(D)
        return OK
    if S[HEIGHT] == 1:
        S[SKIP] += 1
        S[SIZE] -= 1
        sum_left(D)
        return OK
    parent = N[S[LEFT_FINGER] + PARENT]
    # The left finger is empty and the parent's first entry goes. The leaf behind that has entries: an empty
    # finger there would make that entry the last one of all.
    cut(D, parent, 1, N[N[parent + KIDS + 1] + TIMES])
    return OK


def evict_before(D: Any, t: int) -> int:
    """Every entry before t: amortised O(log m) for m entries, at most O(log n). Their number."""
    S = D[0]
    size = S[SIZE]
    if size == 0:
        return 0
    if S[NEWEST] < t:
        clear(D)
        return size
    x, level = climb_before(D, t)
    cut(D, x, level, t)
    return size - S[SIZE]


def cut(D: Any, x: int, level: int, t: int) -> None:
    """Drop the entries before t, all below node x of the left spine and some newer ones there."""
    S, N, _ = D
    while level > 0:
        i = rank(D, x, t)
        if i > 0 or N[x + FLAGS] & LEFT == 0:
            S[SIZE] -= drop_front(D, x, i)
            if N[x + FLAGS] & RIGHT and x != S[TOP]:
                become_root(D, x, level)
            N[x + FLAGS] |= LEFT
            strengthen(D, x, level)
        x = N[x + KIDS]
        level -= 1
    i = rank(D, x, t)
    if x == S[LEFT_FINGER]:
        S[SIZE] -= max(i - S[SKIP], 0)
        S[SKIP] = max(i, S[SKIP])
        if S[SKIP] > S[SUMMED]:
            sum_left(D)
        return
    S[LEFT_FINGER] = x
    S[SIZE] -= i
    S[SKIP] = i
    if N[x + FLAGS] & RIGHT and x != S[TOP]:
        become_root(D, x, 0)
    N[x + FLAGS] |= LEFT
    sum_left(D)


def strengthen(D: Any, x: int, level: int) -> None:
    """Give node x of the left spine more than SPARE entries, and recompute the aggregates of its path."""
    S, N, _ = D
    top = x
    while top != S[TOP] and N[top + COUNT] <= SPARE:
        parent = N[top + PARENT]
        y = N[parent + KIDS + 1]
        if N[top + COUNT] + 1 + N[y + COUNT] > MOST:
            borrow_right(D, parent, 0)
            if N[y + FLAGS] & RIGHT:
                descend(D, y, RIGHT)
        else:
            merge(D, parent, 0)
            if parent == S[TOP] and N[parent + COUNT] == 0:
                become_root(D, top, level)
                break
        top = parent
        level += 1
    while True:
        refresh_node(D, top)
        put_down(D, top, LEFT)
        if top == x:
            return
        top = N[top + KIDS]


def count_subtree(D: Any, x: int) -> int:
    """Entries below x; a node of the left spine counts all but its first child, so the rest is added."""
    S, N, _ = D
    count = N[x + BELOW]
    if N[x + FLAGS] & LEFT:
        while N[x + FLAGS] & LEAF == 0:
            x = N[x + KIDS]
            count += N[x + BELOW]
        count -= S[SKIP]
    return count


def drop_front(D: Any, x: int, n: int) -> int:
    """Drop the first n entries and children of inner node x; the number of entries in all of them."""
    N = D[1]
    count = n
    for j in range(n):
        kid = N[x + KIDS + j]
        count += count_subtree(D, kid)
        release(D, kid)
    close_front(D, x, n)
    return count
