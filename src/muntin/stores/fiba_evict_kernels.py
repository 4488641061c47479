# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: bulk evict (Tangwongsan et al., VLDB 2023, section 4).

Going down, the nodes along the cut are noted, each with its neighbour to the right on the same level
(maybe a cousin) and the lowest ancestor of both, which holds the entry between them. Going up, each
node loses what lies before the cut, and one that underflows borrows from its neighbour or is absorbed
by it. Subtrees that fall off are put on the free list whole, so nothing is paid for their size.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_kernels import (
    BELOW,
    CELLS,
    COUNT,
    FLAGS,
    HEIGHT,
    KIDS,
    LEAF,
    LEFT,
    LEFT_FINGER,
    MU,
    PARENT,
    PATH,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    SIZE,
    STRIDE,
    TIMES,
    TOP,
    clear,
    descend,
    rank,
    rebalance_underflow,
    recount,
    refresh,
    release,
    release_node,
    spine,
)
from muntin.stores.placeholders import ONE, get, put

INNER = frozenset(
    {
        "note_cut",
        "count_subtree",
        "drop_entries",
        "borrow",
        "absorb",
        "become_root",
    }
)


def evict_before(D: Any, t: int) -> int:
    """Every entry before t, however many: amortised O(log m), at most O(log n). How many they were."""
    S, N, _ = D
    left, right = S[LEFT_FINGER], S[RIGHT_FINGER]
    size = S[SIZE]
    if size == 0 or N[left * STRIDE + TIMES] >= t:
        return 0
    if N[right * STRIDE + TIMES + N[right * STRIDE + COUNT] - 1] < t:
        release(D, S[TOP])
        clear(D)
        return size
    start = note_cut(D, t)
    hit = LEFT
    absorbed = -1  # the ancestor below which the nodes along the cut are gone
    for level in range(start + 1):
        note = PATH + 4 * level
        x, neighbour, ancestor, i = S[note], S[note + 1], S[note + 2], S[note + 3]
        if absorbed >= 0 and x != absorbed:
            N[x * STRIDE + COUNT] -= 1  # all but its last child, which went before it
            release(D, x)
            survivor = neighbour
        else:
            if absorbed < 0:
                drop_entries(D, x, i, i)
            absorbed = -1
            if neighbour < 0:
                for above in range(level + 1, start + 1):
                    parent = S[PATH + 4 * above]
                    N[parent * STRIDE + COUNT] -= 1
                    release(D, parent)
                become_root(D, x, level)
                return size - S[SIZE]
            survivor = x
            if N[x * STRIDE + COUNT] < MU - 1:
                need = MU - 1 - N[x * STRIDE + COUNT]
                if need <= N[neighbour * STRIDE + COUNT] - (MU - 1):
                    borrow(D, x, neighbour, ancestor, rank(D, ancestor, t), need)
                else:
                    absorb(D, x, neighbour, ancestor, rank(D, ancestor, t))
                    survivor, absorbed = neighbour, ancestor
        hit |= N[neighbour * STRIDE + FLAGS] & RIGHT
        N[survivor * STRIDE + FLAGS] |= LEFT
        if level == 0:
            S[LEFT_FINGER] = survivor
        if survivor != neighbour:
            refresh(D, neighbour)
            recount(D, neighbour)
        refresh(D, survivor)
        recount(D, survivor)
    # The search began below the root: the parent of the last node saw a child change, maybe vanish.
    top = S[PATH + 4 * start + 2]
    if top == S[TOP]:
        become_root(D, top, start + 1)
    else:
        rebalance_underflow(D, top, 0, hit | spine(D, top))
    return size - S[SIZE]


def note_cut(D: Any, t: int) -> int:
    """Note (node, neighbour, ancestor, entries before t) for each level of the cut; the highest level.

    Takes the entries before the cut off SIZE.
    """
    S, N, _ = D
    x = S[LEFT_FINGER]
    level = 0
    while N[x * STRIDE + FLAGS] & ROOT != ROOT and N[x * STRIDE + TIMES + N[x * STRIDE] - 1] < t:
        x = N[x * STRIDE + PARENT]
        level += 1
    start = level
    neighbour, ancestor = -1, -1
    if N[x * STRIDE + FLAGS] & ROOT != ROOT:
        ancestor = N[x * STRIDE + PARENT]
        neighbour = N[ancestor * STRIDE + KIDS + 1]
    while True:
        i = rank(D, x, t)
        note = PATH + 4 * level
        S[note], S[note + 1], S[note + 2], S[note + 3] = x, neighbour, ancestor, i
        S[SIZE] -= i
        if N[x * STRIDE + FLAGS] & LEAF:
            return start
        for j in range(i):
            S[SIZE] -= count_subtree(D, N[x * STRIDE + KIDS + j])
        if i < N[x * STRIDE + COUNT]:
            ancestor, neighbour = x, N[x * STRIDE + KIDS + i + 1]
        elif neighbour >= 0:
            neighbour = N[neighbour * STRIDE + KIDS]
        x = N[x * STRIDE + KIDS + i]
        level -= 1


def count_subtree(D: Any, x: int) -> int:
    """Entries below x; a node of the left spine counts all but its first child, so the rest is added."""
    N = D[1]
    count = N[x * STRIDE + BELOW]
    while N[x * STRIDE + FLAGS] & LEFT and N[x * STRIDE + FLAGS] & LEAF == 0:
        x = N[x * STRIDE + KIDS]
        count += N[x * STRIDE + BELOW]
    return count


def drop_entries(D: Any, x: int, n: int, subtrees: int) -> None:
    """Drop the first n entries and children of node x; the first ``subtrees`` children are freed."""
    N, V = D[1], D[2]
    at, cell = x * STRIDE, x * CELLS
    if n == 0:
        return
    left = N[at + COUNT] - n
    for j in range(left):
        N[at + TIMES + j] = N[at + TIMES + n + j]
        put(V, cell + j, get(V, cell + n + j))
    for j in range(left, left + n):
        put(V, cell + j, ONE)
    if N[at + FLAGS] & LEAF == 0:
        for j in range(subtrees):
            release(D, N[at + KIDS + j])
        for j in range(left + 1):
            N[at + KIDS + j] = N[at + KIDS + n + j]
    N[at + COUNT] = left


def borrow(D: Any, x: int, neighbour: int, ancestor: int, i: int, need: int) -> None:
    """Entry i of the ancestor and ``need`` - 1 of the neighbour go to x, the next one up."""
    N, V = D[1], D[2]
    at, other, top = x * STRIDE, neighbour * STRIDE, ancestor * STRIDE
    n = N[at + COUNT]
    N[at + TIMES + n] = N[top + TIMES + i]
    put(V, x * CELLS + n, get(V, ancestor * CELLS + i))
    for j in range(need - 1):
        N[at + TIMES + n + 1 + j] = N[other + TIMES + j]
        put(V, x * CELLS + n + 1 + j, get(V, neighbour * CELLS + j))
    N[top + TIMES + i] = N[other + TIMES + need - 1]
    put(V, ancestor * CELLS + i, get(V, neighbour * CELLS + need - 1))
    if N[at + FLAGS] & LEAF == 0:
        for j in range(need):
            kid = N[other + KIDS + j]
            N[at + KIDS + n + 1 + j] = kid
            N[kid * STRIDE + PARENT] = x
    N[at + COUNT] = n + need
    drop_entries(D, neighbour, need, 0)


def absorb(D: Any, x: int, neighbour: int, ancestor: int, i: int) -> None:
    """The neighbour takes all of x and entry i of the ancestor, which loses all up to that entry."""
    N, V = D[1], D[2]
    at, other = x * STRIDE, neighbour * STRIDE
    n, m = N[at + COUNT], N[other + COUNT]
    for j in range(m - 1, -1, -1):
        N[other + TIMES + n + 1 + j] = N[other + TIMES + j]
        put(V, neighbour * CELLS + n + 1 + j, get(V, neighbour * CELLS + j))
    for j in range(n):
        N[other + TIMES + j] = N[at + TIMES + j]
        put(V, neighbour * CELLS + j, get(V, x * CELLS + j))
    N[other + TIMES + n] = N[ancestor * STRIDE + TIMES + i]
    put(V, neighbour * CELLS + n, get(V, ancestor * CELLS + i))
    if N[at + FLAGS] & LEAF == 0:
        for j in range(m, -1, -1):
            N[other + KIDS + n + 1 + j] = N[other + KIDS + j]
        for j in range(n + 1):
            kid = N[at + KIDS + j]
            N[other + KIDS + j] = kid
            N[kid * STRIDE + PARENT] = neighbour
    N[other + COUNT] = n + 1 + m
    release_node(D, x)
    drop_entries(D, ancestor, i + 1, i)


def become_root(D: Any, x: int, level: int) -> None:
    """Node x, or its only child, is the root now; both spines are recomputed."""
    S, N, _ = D
    if N[x * STRIDE + COUNT] == 0 and N[x * STRIDE + FLAGS] & LEAF == 0:
        only = N[x * STRIDE + KIDS]
        release_node(D, x)
        x, level = only, level - 1
    N[x * STRIDE + FLAGS] |= ROOT
    N[x * STRIDE + PARENT] = -1
    S[TOP] = x
    S[HEIGHT] = level + 1
    if level == 0:
        S[LEFT_FINGER] = S[RIGHT_FINGER] = x
    refresh(D, x)
    recount(D, x)
    descend(D, x, LEFT)
    descend(D, x, RIGHT)
