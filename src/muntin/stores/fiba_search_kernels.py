# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: finger search (Tangwongsan et al., VLDB 2019, section 3): from the nearer end, O(log d)."""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_node_kernels import (
    COUNT,
    FLAGS,
    HEIGHT,
    KIDS,
    LEAF,
    LEFT_FINGER,
    PARENT,
    PATH,
    RIGHT_FINGER,
    TIMES,
    TOP,
    rank,
)

HOT = frozenset({"climb_right", "search", "start_node"})


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
