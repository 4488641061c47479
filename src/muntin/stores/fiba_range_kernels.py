"""FiBA: range queries (section 4 of the paper) and walking through the entries in order."""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import close_left
from muntin.stores.fiba_layout import *
from muntin.stores.fiba_node_kernels import climb_before, climb_right, rank
from muntin.stores.vocabulary import *


def common_ancestor(D: Any, a: int, b: int) -> int:
    """The lowest node with an entry in [a, b), or -1: from the nearer finger, O(log d)."""
    S, N, _ = D
    x = S[TOP]
    n = N[x + COUNT]
    if n == 0 or a >= b:
        return -1
    if b <= N[x + TIMES]:
        x, _ = climb_before(D, b)
    elif a > N[x + TIMES + n - 1]:
        x, _ = climb_right(D, a)
    while True:
        i = rank(D, x, a)
        if i < N[x + COUNT] and N[x + TIMES + i] < b:
            return x
        if N[x + FLAGS] & LEAF:
            return -1
        x = N[x + KIDS + i]


def query_range(D: Any, a: int, b: int) -> tuple[bool, Any]:
    """(whether there is an entry, product of the entries in [a, b)): O(log d + log n) combines.

    Between two entries of the range there are up nodes only, which hold their subtree's product; spine
    nodes are at the two ends only, and the path to the end opens them.
    """
    S, N, V = D
    if S[SKIP] > 0:
        close_left(D)
    x = common_ancestor(D, a, b)
    if x < 0:
        return False, ONE
    i, j = rank(D, x, a), rank(D, x, b)
    total = entries_between(D, x, i, j)
    if N[x + FLAGS] & LEAF:
        return True, total
    left = N[x + KIDS + i]
    right = N[x + KIDS + j]
    while True:
        n = N[left + COUNT]
        i = rank(D, left, a)
        leaf = N[left + FLAGS] & LEAF != 0
        if i < n:
            piece = entries_between(D, left, i, n)
            if not leaf:
                piece = combine(piece, get(V, N[left + KIDS + n] + OWN))
                S[COMBINES] += 1
            total = combine(piece, total)
            S[COMBINES] += 1
        if leaf:
            break
        left = N[left + KIDS + i]
    while True:
        j = rank(D, right, b)
        leaf = N[right + FLAGS] & LEAF != 0
        if j > 0:
            if not leaf:
                total = combine(total, get(V, N[right + KIDS] + OWN))
                S[COMBINES] += 1
            total = combine(total, entries_between(D, right, 0, j))
            S[COMBINES] += 1
        if leaf:
            break
        right = N[right + KIDS + j]
    return True, total


def entries_between(D: Any, x: int, i: int, j: int) -> Any:
    """Entries i..j-1 of node x (at least one) and the children between them."""
    S, N, V = D
    total = get(V, x + i)
    leaf = N[x + FLAGS] & LEAF != 0
    for k in range(i + 1, j):
        if not leaf:
            total = combine(total, get(V, N[x + KIDS + k] + OWN))
            S[COMBINES] += 1
        total = combine(total, get(V, x + k))
        S[COMBINES] += 1
    return total


def export(D: Any, T: Any, P: Any) -> None:
    """Write the entries in order of time to T and P."""
    S, N, V = D
    if S[SKIP] > 0:
        close_left(D)
    S[PATH], S[PATH + 1] = S[TOP], 0
    depth = count = 0
    while depth >= 0:
        x, i = S[PATH + 2 * depth], S[PATH + 2 * depth + 1]  # node, number of its children done
        n, leaf = N[x + COUNT], N[x + FLAGS] & LEAF != 0
        low, high = (0, n) if leaf else (max(i - 1, 0), min(i, n))
        for k in range(low, high):
            T[count] = N[x + TIMES + k]
            put(P, count, get(V, x + k))
            count += 1
        if leaf or i > n:
            depth -= 1
        else:
            S[PATH + 2 * depth + 1] = i + 1
            depth += 1
            S[PATH + 2 * depth], S[PATH + 2 * depth + 1] = N[x + KIDS + i], 0
