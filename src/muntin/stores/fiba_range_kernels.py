# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: range queries (section 4 of the paper) and walking through the entries in order."""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_kernels import (
    CELLS,
    COUNT,
    FLAGS,
    KIDS,
    LEAF,
    LEFT_FINGER,
    OWN,
    PARENT,
    RIGHT_FINGER,
    ROOT,
    STRIDE,
    TIMES,
    TOP,
    child_index,
    rank,
)
from muntin.stores.placeholders import ONE, combine, get, put
from muntin.stores.queue_kernels import COMBINES

INNER = frozenset(
    {
        "common_ancestor",
        "entries_between",
    }
)


def common_ancestor(D: Any, a: int, b: int) -> int:
    """The lowest node with an entry in [a, b), or -1: from the nearer finger, O(log d)."""
    S, N, _ = D
    x = S[TOP]
    n = N[x * STRIDE + COUNT]
    if n == 0:
        return -1
    if b <= N[x * STRIDE + TIMES]:
        x = S[LEFT_FINGER]
        while N[x * STRIDE + FLAGS] & ROOT != ROOT and N[x * STRIDE + TIMES + N[x * STRIDE] - 1] < b:
            x = N[x * STRIDE + PARENT]
    elif a > N[x * STRIDE + TIMES + n - 1]:
        x = S[RIGHT_FINGER]
        while N[x * STRIDE + FLAGS] & ROOT != ROOT and a < N[x * STRIDE + TIMES]:
            x = N[x * STRIDE + PARENT]
    while True:
        i = rank(D, x, a)
        if i < N[x * STRIDE + COUNT] and N[x * STRIDE + TIMES + i] < b:
            return x
        if N[x * STRIDE + FLAGS] & LEAF:
            return -1
        x = N[x * STRIDE + KIDS + i]


def query_range(D: Any, a: int, b: int) -> tuple[bool, Any]:
    """(anything there, product of the entries in [a, b)): O(log d + log n) combines.

    Between two entries of the range lie up nodes only, which hold their subtree's product; spine
    nodes can lie at the two ends only, and there the path to the end opens them.
    """
    S, N, V = D
    x = common_ancestor(D, a, b)
    if x < 0:
        return False, ONE
    i, j = rank(D, x, a), rank(D, x, b)
    total = entries_between(D, x, i, j)
    if N[x * STRIDE + FLAGS] & LEAF:
        return True, total
    left = N[x * STRIDE + KIDS + i]
    right = N[x * STRIDE + KIDS + j]
    while True:
        n = N[left * STRIDE + COUNT]
        i = rank(D, left, a)
        leaf = N[left * STRIDE + FLAGS] & LEAF != 0
        if i < n:
            piece = entries_between(D, left, i, n)
            if not leaf:
                piece = combine(piece, get(V, N[left * STRIDE + KIDS + n] * CELLS + OWN))
                S[COMBINES] += 1
            total = combine(piece, total)
            S[COMBINES] += 1
        if leaf:
            break
        left = N[left * STRIDE + KIDS + i]
    while True:
        j = rank(D, right, b)
        leaf = N[right * STRIDE + FLAGS] & LEAF != 0
        if j > 0:
            if not leaf:
                total = combine(total, get(V, N[right * STRIDE + KIDS] * CELLS + OWN))
                S[COMBINES] += 1
            total = combine(total, entries_between(D, right, 0, j))
            S[COMBINES] += 1
        if leaf:
            break
        right = N[right * STRIDE + KIDS + j]
    return True, total


def entries_between(D: Any, x: int, i: int, j: int) -> Any:
    """Entries i..j-1 of node x (at least one) and the children between them."""
    S, N, V = D
    total = get(V, x * CELLS + i)
    leaf = N[x * STRIDE + FLAGS] & LEAF != 0
    for k in range(i + 1, j):
        if not leaf:
            total = combine(total, get(V, N[x * STRIDE + KIDS + k] * CELLS + OWN))
            S[COMBINES] += 1
        total = combine(total, get(V, x * CELLS + k))
        S[COMBINES] += 1
    return total


def export(D: Any, T: Any, P: Any) -> int:
    """Write the entries in order of time to T and P; how many."""
    S, N, V = D
    x = S[LEFT_FINGER]
    count = 0
    i = 0
    while True:
        at = x * STRIDE
        if N[at + FLAGS] & LEAF:
            for k in range(N[at + COUNT]):
                T[count] = N[at + TIMES + k]
                put(P, count, get(V, x * CELLS + k))
                count += 1
            i = N[at + COUNT]
        while i == N[x * STRIDE + COUNT]:
            if x == S[TOP]:
                return count
            parent = N[x * STRIDE + PARENT]
            i = child_index(D, parent, x)
            x = parent
        T[count] = N[x * STRIDE + TIMES + i]
        put(P, count, get(V, x * CELLS + i))
        count += 1
        x = N[x * STRIDE + KIDS + i + 1]
        while N[x * STRIDE + FLAGS] & LEAF == 0:
            x = N[x * STRIDE + KIDS]
