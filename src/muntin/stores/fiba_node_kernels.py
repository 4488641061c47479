"""FiBA: nodes, their allocation, and finger search (Tangwongsan et al., VLDB 2019, section 3)."""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_layout import *
from muntin.stores.vocabulary import *

HOT = frozenset({"room", "rank", "climb_right", "search", "start_node"})


def allocate(D: Any, flags: int) -> int:
    """A node from the free list, or a fresh one; the caller has checked `room`."""
    S, N, V = D
    x = S[FREE]
    if x < 0:
        x = S[FRESH] * STRIDE
        S[FRESH] += 1
    else:
        S[FREE] = N[x + PARENT]
        S[FREE_COUNT] -= 1
        if N[x + FLAGS] & LEAF == 0:  # a subtree, deleted lazily
            for i in range(N[x + COUNT] + 1):
                release(D, N[x + KIDS + i])
    N[x + COUNT] = 0
    N[x + PARENT] = -1
    N[x + FLAGS] = flags
    N[x + BELOW] = 0
    put(V, x + OWN, ONE)
    return x


def release(D: Any, x: int) -> None:
    """Put a whole subtree on the free list: O(1), its nodes follow when they are reused."""
    S, N, _ = D
    N[x + PARENT] = S[FREE]
    S[FREE] = x
    S[FREE_COUNT] += 1


def release_node(D: Any, x: int) -> None:
    """Put a single node, whose children live on elsewhere, on the free list."""
    D[1][x + FLAGS] = LEAF
    release(D, x)


def clear(D: Any) -> None:
    """Drop all nodes; an empty root is a leaf and both fingers."""
    S, _, V = D
    if S[TOP] > 0:
        release(D, S[TOP])
    x = allocate(D, ROOT | LEAF)
    S[TOP] = S[LEFT_FINGER] = S[RIGHT_FINGER] = x
    S[SIZE] = S[SKIP] = S[SUMMED] = 0
    S[HEIGHT] = 1
    S[NEWEST] = EARLIEST
    put(V, 0, ONE)


def room(D: Any) -> int:
    """Number of nodes that can be allocated for sure."""
    S = D[0]
    n: int = S[CAPACITY] - S[FRESH] + S[FREE_COUNT]
    return n


def rank(D: Any, x: int, t: int) -> int:
    """Number of entries of node x before t."""
    N = D[1]
    at = x + TIMES
    n = N[x + COUNT]
    if n > 0 and N[at + n - 1] < t:
        return n
    i = 0
    while i < n and N[at + i] < t:
        i += 1
    return i


def put_entry(D: Any, x: int, i: int, t: int, p: Any) -> None:
    """Make room at index i of node x (without a child) and put the entry there."""
    N, V = D[1], D[2]
    n = N[x + COUNT]
    move_entries(D, x, i, x, i + 1, n - i)
    N[x + TIMES + i] = t
    put(V, x + i, p)
    N[x + COUNT] = n + 1


def put_child(D: Any, x: int, i: int, t: int, p: Any, kid: int) -> None:
    """Put an entry and the child behind it at index i of inner node x."""
    N = D[1]
    move_kids(D, x, i + 1, x, i + 2, N[x + COUNT] - i)
    N[x + KIDS + i + 1] = kid
    N[kid + PARENT] = x
    put_entry(D, x, i, t, p)


def take_entry(D: Any, x: int, i: int) -> None:
    """Close the gap that entry i of node x leaves (children stay)."""
    N, V = D[1], D[2]
    n = N[x + COUNT] - 1
    move_entries(D, x, i + 1, x, i, n - i)
    put(V, x + n, ONE)
    N[x + COUNT] = n


def move_entries(D: Any, x: int, i: int, y: int, j: int, n: int) -> None:
    """The n entries of node x from index i on go to index j of node y, which may be x."""
    N, V = D[1], D[2]
    step, k = (1, 0) if j < i else (-1, n - 1)  # so that none is overwritten before it has moved
    for _ in range(n):
        N[y + TIMES + j + k] = N[x + TIMES + i + k]
        put(V, y + j + k, get(V, x + i + k))
        k += step


def move_kids(D: Any, x: int, i: int, y: int, j: int, n: int) -> None:
    """The n children of node x from index i on, and the copies of their OWN, go to index j of node y."""
    N, V = D[1], D[2]
    step, k = (1, 0) if j < i else (-1, n - 1)
    for _ in range(n):
        kid = N[x + KIDS + i + k]
        N[y + KIDS + j + k] = kid
        N[kid + PARENT] = y
        put(V, y + KID_OWN + j + k, get(V, x + KID_OWN + i + k))
        k += step


# --- search ----------------------------------------------------------------------------------


def climb_before(D: Any, t: int) -> tuple[int, int]:
    """(node, level): the lowest node of the left spine, or the root, with all entries before t below it."""
    S, N, _ = D
    x, level = S[LEFT_FINGER], 0
    while x != S[TOP]:
        parent = N[x + PARENT]
        if t <= N[parent + TIMES]:
            break
        x = parent
        level += 1
    return x, level


def climb_left(D: Any, t: int) -> tuple[int, int]:
    """(node, level): the lowest node of the left spine, or the root, with all entries up to t below it."""
    S, N, _ = D
    x, level = S[LEFT_FINGER], 0
    while x != S[TOP]:
        parent = N[x + PARENT]
        if t < N[parent + TIMES]:
            break
        x = parent
        level += 1
    return x, level


def climb_right(D: Any, t: int) -> tuple[int, int]:
    """(node, level): the lowest node of the right spine, or the root, with all entries from t on below it."""
    S, N, _ = D
    x, level = S[RIGHT_FINGER], 0
    while x != S[TOP]:
        parent = N[x + PARENT]
        if N[parent + TIMES + N[parent + COUNT] - 1] < t:
            break
        x = parent
        level += 1
    return x, level


def start_node(D: Any, t: int) -> tuple[int, int]:
    """(node, level): where the search for t begins, the root or a spine node near the finger."""
    S, N, _ = D
    at = S[TOP]
    n = N[at + COUNT]
    if n > 0 and t > N[at + TIMES + n - 1]:
        return climb_right(D, t)
    if n > 0 and t < N[at + TIMES]:
        return climb_left(D, t)
    return S[TOP], S[HEIGHT] - 1


def search(D: Any, t: int) -> tuple[int, int, int]:
    """(node, index, depth) of the entry of time t, or of its place in a leaf.

    PATH has the nodes from the start to that node, each with the index of the child that was taken.
    """
    S, N, _ = D
    x, _ = start_node(D, t)
    depth = 0
    while True:
        i = rank(D, x, t)
        S[PATH + 2 * depth], S[PATH + 2 * depth + 1] = x, i
        if N[x + FLAGS] & LEAF or (i < N[x + COUNT] and N[x + TIMES + i] == t):
            return x, i, depth
        x = N[x + KIDS + i]
        depth += 1


def child_index(D: Any, x: int, depth: int) -> int:
    """Which child of its parent x is; the parent is at ``depth`` of PATH, or above the search's start."""
    S, N, _ = D
    if depth >= 0:
        return S[PATH + 2 * depth + 1]
    return 0 if N[x + FLAGS] & LEFT else N[N[x + PARENT] + COUNT]  # on a spine
