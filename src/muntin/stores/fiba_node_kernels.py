# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: the nodes of the tree (Tangwongsan et al., VLDB 2019, section 3).

State ``D = (S, N, V)``. A node is known by where it begins, x: it has its header, times and children
in ``N[x:x + STRIDE]``, its values in ``V[x:x + STRIDE]``. COUNT entries, COUNT + 1 children; at most
MOST entries, one more while an operation runs.

FLAGS has LEFT for the nodes on the path to the left finger and RIGHT for those to the right one; the
root has both, every other node at most one. A node without either is an *up* node; it has at least
MU - 1 entries. Inner nodes on the spines have at least SPARE, which is about half as many, and the two
fingers may be empty: a window grows and shrinks at its ends, which so need less rebalancing. An entry at
distance d from an end is still O(log d) levels away from it. (The paper exempts the root only.)

The left finger keeps what was evicted from it: its first S[SKIP] entries are gone. Node 0 is no node;
its cells hold the sums of the left finger, see `fiba_aggregate_kernels`.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import ONE, get, put

# Set for each arity by `constants` in fiba.py; here for a minimum arity of 4.
MU = 4
MOST = 2 * MU - 1
FILL = MOST
SPARE = 1
WIDTH = 2 * MU
STRIDE = 4 + WIDTH + WIDTH + 1
KIDS = 4 + WIDTH
KID_OWN = WIDTH
OWN = 2 * WIDTH + 1
DOWN = 2 * WIDTH + 2

COUNT, PARENT, FLAGS, BELOW, TIMES = 0, 1, 2, 3, 4
LEFT, RIGHT, ROOT, LEAF = 1, 2, 3, 4

TOP, LEFT_FINGER, RIGHT_FINGER, SIZE, NEWEST, SKIP, SUMMED = 1, 2, 3, 4, 5, 6, 7
FREE, FREE_COUNT, FRESH, CAPACITY, HEIGHT = 8, 9, 10, 11, 12
PATH = 16  # scratch for the nodes of a path
STATES = PATH + 2 * 64
EARLIEST = -(2**63)

HOT = frozenset({"room", "rank"})


def allocate(D: Any, flags: int) -> int:
    """A node from the free list, or a fresh one; the caller has made sure that there is one."""
    S, N, V = D
    x = S[FREE]
    if x < 0:
        x = S[FRESH] * STRIDE
        S[FRESH] += 1
    else:
        S[FREE] = N[x + PARENT]
        S[FREE_COUNT] -= 1
        if N[x + FLAGS] & LEAF == 0:  # deleted lazily with all that hangs below it
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
    """An empty root, which is a leaf and both fingers."""
    S, _, V = D
    x = allocate(D, ROOT | LEAF)
    S[TOP] = S[LEFT_FINGER] = S[RIGHT_FINGER] = x
    S[SIZE] = S[SKIP] = S[SUMMED] = 0
    S[HEIGHT] = 1
    S[NEWEST] = EARLIEST
    put(V, 0, ONE)


def room(D: Any) -> int:
    """How many nodes can be allocated for sure."""
    S = D[0]
    n: int = S[CAPACITY] - S[FRESH] + S[FREE_COUNT]
    return n


def rank(D: Any, x: int, t: int) -> int:
    """How many entries of node x lie before t."""
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
