# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA, the finger B-tree aggregator: single operations (Tangwongsan et al., VLDB 2019, section 3).

State ``D = (S, N, V)``. Node x has a header and its times and children in ``N[x * STRIDE:]``, its
values in ``V[x * CELLS:]``. COUNT entries, COUNT + 1 children; at least MU - 1 entries, at most
2 MU - 1, one more while an operation runs.

FLAGS has LEFT for the nodes on the path to the left finger and RIGHT for those to the right one; the
root has both, every other node at most one. A node without either is an *up* node. Cell OWN holds the
product of the entries and the children's OWN, without the first child of a LEFT node and the last
child of a RIGHT one: the whole subtree of an up node, the inner aggregate of the root. Cell DOWN, on
the spines only, adds what lies between the node and the root:

    left spine   DOWN(x) = OWN(x) * DOWN(parent)       right spine   DOWN(x) = DOWN(parent) * OWN(x)

with DOWN(root) left out; these are the paper's left and right aggregates. Keeping OWN beside them
makes the walk down to a finger cost one combine a level. An inner node keeps copies of its children's
OWN side by side, from KID_OWN on, so that a change below reads one stretch of memory.
BELOW counts entries as OWN combines them.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import ONE, combine, get, lift, put
from muntin.stores.queue_kernels import COMBINES, EMPTY, FULL, MISSING, OK

# Set for each arity by `constants`; here for a minimum arity of 4.
MU = 4
WIDTH = 2 * MU  # entries of a node that overflows
STRIDE = 4 + WIDTH + WIDTH + 1
CELLS = 2 * WIDTH + 3
KIDS = 4 + WIDTH
KID_OWN = WIDTH
OWN = 2 * WIDTH + 1
DOWN = 2 * WIDTH + 2

COUNT, PARENT, FLAGS, BELOW, TIMES = 0, 1, 2, 3, 4
LEFT, RIGHT, ROOT, LEAF = 1, 2, 3, 4

TOP, LEFT_FINGER, RIGHT_FINGER, SIZE, FREE, FREE_COUNT, FRESH, CAPACITY, HEIGHT = 1, 2, 3, 4, 5, 6, 7, 8, 9
RESUME = 10  # state of a bulk insert between two calls: see fiba_bulk_kernels
PATH = 16  # scratch for the nodes of a path
STATES = PATH + 4 * 64
HOT = frozenset(
    {"refresh_inner", "room", "rank", "spine", "append", "put_entry", "query", "evict", "child_index"}
)
INNER = frozenset(
    {
        "allocate",
        "release",
        "release_node",
        "room",
        "rank",
        "child_index",
        "refresh",
        "refresh_inner",
        "recount",
        "descend",
        "spine",
        "repair",
        "search",
        "append",
        "put_entry",
        "raise_root",
        "split",
        "rebalance_overflow",
        "extend",
        "take_entry",
        "rebalance_underflow",
        "merge",
        "move_from_right",
        "move_from_left",
    }
)


# --- nodes -----------------------------------------------------------------------------------


def allocate(D: Any, flags: int) -> int:
    """A node from the free list, or a fresh one; the caller has made sure that there is one."""
    S, N, _ = D
    x = S[FREE]
    if x < 0:
        x = S[FRESH]
        S[FRESH] = x + 1
    else:
        at = x * STRIDE
        S[FREE] = N[at + PARENT]
        S[FREE_COUNT] -= 1
        if N[at + FLAGS] & LEAF == 0:  # deleted lazily with all that hangs below it
            for i in range(N[at + COUNT] + 1):
                release(D, N[at + KIDS + i])
    N[x * STRIDE + COUNT] = 0
    N[x * STRIDE + PARENT] = -1
    N[x * STRIDE + FLAGS] = flags
    N[x * STRIDE + BELOW] = 0
    return x


def release(D: Any, x: int) -> None:
    """Put a whole subtree on the free list: O(1), its nodes follow when they are reused."""
    S, N, _ = D
    N[x * STRIDE + PARENT] = S[FREE]
    S[FREE] = x
    S[FREE_COUNT] += 1


def release_node(D: Any, x: int) -> None:
    """Put a single node, whose children live on elsewhere, on the free list."""
    D[1][x * STRIDE + FLAGS] = LEAF
    release(D, x)


def clear(D: Any) -> None:
    """An empty root, which is a leaf and both fingers."""
    S, _, V = D
    x = allocate(D, ROOT | LEAF)
    S[TOP] = S[LEFT_FINGER] = S[RIGHT_FINGER] = x
    S[SIZE] = 0
    S[HEIGHT] = 1
    put(V, x * CELLS + OWN, ONE)


def room(D: Any) -> int:
    """How many nodes can be allocated for sure."""
    S = D[0]
    n: int = S[CAPACITY] - S[FRESH] + S[FREE_COUNT]
    return n


def rank(D: Any, x: int, t: int) -> int:
    """How many entries of node x lie before t."""
    N = D[1]
    at = x * STRIDE + TIMES
    n = N[x * STRIDE + COUNT]
    if n > 0 and N[at + n - 1] < t:
        return n
    i = 0
    while i < n and N[at + i] < t:
        i += 1
    return i


def child_index(D: Any, parent: int, x: int) -> int:
    """Which child of its parent x is."""
    N = D[1]
    at = parent * STRIDE + KIDS
    i = 0
    while N[at + i] != x:
        i += 1
    return i


# --- aggregates ------------------------------------------------------------------------------


def refresh(D: Any, x: int) -> None:
    """Recompute OWN of node x from its entries and its children's OWN."""
    S, N, V = D
    at, cell = x * STRIDE, x * CELLS
    n, flags = N[at + COUNT], N[at + FLAGS]
    if n == 0:
        put(V, cell + OWN, ONE)
        return
    if flags & LEAF:
        total = get(V, cell)
        for i in range(1, n):
            total = combine(total, get(V, cell + i))
        put(V, cell + OWN, total)
        S[COMBINES] += n - 1
        return
    for i in range(n + 1):
        put(V, cell + KID_OWN + i, get(V, N[at + KIDS + i] * CELLS + OWN))
    refresh_inner(D, x)


def refresh_inner(D: Any, x: int) -> None:
    """Recompute OWN of an inner node from its entries and the copies of its children's OWN."""
    S, N, V = D
    cell = x * CELLS
    n, flags = N[x * STRIDE + COUNT], N[x * STRIDE + FLAGS]
    kids = cell + KID_OWN
    total = get(V, cell)
    combines = 2 * (n - 1)
    if flags & LEFT == 0:
        total = combine(get(V, kids), total)
        combines += 1
    for i in range(1, n):
        total = combine(total, combine(get(V, kids + i), get(V, cell + i)))
    if flags & RIGHT == 0:
        total = combine(total, get(V, kids + n))
        combines += 1
    put(V, cell + OWN, total)
    S[COMBINES] += combines


def recount(D: Any, x: int) -> None:
    """Recompute BELOW of node x."""
    N = D[1]
    at = x * STRIDE
    n, flags = N[at + COUNT], N[at + FLAGS]
    count = n
    if flags & LEAF == 0:
        first = 1 if flags & LEFT else 0
        last = n if flags & RIGHT else n + 1
        for i in range(first, last):
            count += N[N[at + KIDS + i] * STRIDE + BELOW]
    N[at + BELOW] = count


def descend(D: Any, x: int, side: int) -> None:
    """Recompute DOWN along one spine, from node x (the root or on that spine) to the finger."""
    S, N, V = D
    if N[x * STRIDE + FLAGS] & ROOT == ROOT:
        if N[x * STRIDE + FLAGS] & LEAF:
            return
        x = N[x * STRIDE + KIDS + (0 if side == LEFT else N[x * STRIDE + COUNT])]
    parent = N[x * STRIDE + PARENT]
    down = get(V, x * CELLS + OWN)
    if N[parent * STRIDE + FLAGS] & ROOT != ROOT:
        above = get(V, parent * CELLS + DOWN)
        down = combine(down, above) if side == LEFT else combine(above, down)
        S[COMBINES] += 1
    put(V, x * CELLS + DOWN, down)
    while N[x * STRIDE + FLAGS] & LEAF == 0:
        x = N[x * STRIDE + KIDS + (0 if side == LEFT else N[x * STRIDE + COUNT])]
        own = get(V, x * CELLS + OWN)
        down = combine(own, down) if side == LEFT else combine(down, own)
        put(V, x * CELLS + DOWN, down)
        S[COMBINES] += 1


def spine(D: Any, x: int) -> int:
    """LEFT, RIGHT or 0: the spine that a node is on; 0 for the root."""
    flags: int = D[1][x * STRIDE + FLAGS] & ROOT
    return flags if flags != ROOT else 0


def repair(D: Any, x: int, hit: int, delta: int) -> None:
    """Recompute what depends on node x: up to the first spine node, then down to the fingers.

    ``hit``: the spines on which a node below x was touched; ``delta``: change of the entries below.
    """
    N, V = D[1], D[2]
    refresh(D, x)
    recount(D, x)
    while N[x * STRIDE + FLAGS] & ROOT == 0:
        parent = N[x * STRIDE + PARENT]
        copy = parent * CELLS + KID_OWN + child_index(D, parent, x)
        put(V, copy, get(V, x * CELLS + OWN))
        x = parent
        refresh_inner(D, x)
        N[x * STRIDE + BELOW] += delta
    flags = N[x * STRIDE + FLAGS] & ROOT
    if flags == ROOT:
        flags = hit
    if flags & LEFT:
        descend(D, x, LEFT)
    if flags & RIGHT:
        descend(D, x, RIGHT)


# --- insert ----------------------------------------------------------------------------------


def search(D: Any, t: int) -> tuple[int, int]:
    """(node, index) of the entry of time t, or where in a leaf it would go: O(log d)."""
    S, N, _ = D
    x = S[TOP]
    at = x * STRIDE
    n = N[at + COUNT]
    if n > 0:
        if t < N[at + TIMES]:
            x = S[LEFT_FINGER]
            while N[x * STRIDE + FLAGS] & ROOT != ROOT and N[x * STRIDE + TIMES + N[x * STRIDE] - 1] < t:
                x = N[x * STRIDE + PARENT]
        elif t > N[at + TIMES + n - 1]:
            x = S[RIGHT_FINGER]
            while N[x * STRIDE + FLAGS] & ROOT != ROOT and t < N[x * STRIDE + TIMES]:
                x = N[x * STRIDE + PARENT]
    while True:
        at = x * STRIDE
        i = rank(D, x, t)
        if N[at + FLAGS] & LEAF or (i < N[at + COUNT] and N[at + TIMES + i] == t):
            return x, i
        x = N[at + KIDS + i]


def insert(D: Any, t: int, v: Any) -> int:
    """In order 2 combines and amortised O(1) for splits; at distance d O(log d)."""
    S, N, V = D
    if room(D) < S[HEIGHT] + 2:
        return FULL
    x = S[RIGHT_FINGER]
    n = N[x * STRIDE + COUNT]
    if n > 0 and n < 2 * MU - 1 and N[x * STRIDE + TIMES + n - 1] < t:
        append(D, x, n, t, lift(v))
        return OK
    x, i = search(D, t)
    n = N[x * STRIDE + COUNT]
    if i < n and N[x * STRIDE + TIMES + i] == t:
        put(V, x * CELLS + i, combine(get(V, x * CELLS + i), lift(v)))
        S[COMBINES] += 1
        repair(D, x, spine(D, x), 0)
        return OK
    put_entry(D, x, i, t, lift(v))
    S[SIZE] += 1
    if n + 1 < 2 * MU:
        repair(D, x, spine(D, x), 1)
    else:
        rebalance_overflow(D, x)
    return OK


def append(D: Any, x: int, n: int, t: int, p: Any) -> None:
    """The newest entry into the right finger that has room: only this leaf's aggregates change."""
    S, N, V = D
    at, cell = x * STRIDE, x * CELLS
    N[at + TIMES + n] = t
    N[at + COUNT] = N[at + BELOW] = n + 1
    put(V, cell + n, p)
    put(V, cell + OWN, combine(get(V, cell + OWN), p))
    S[COMBINES] += 1
    if N[at + FLAGS] & ROOT != ROOT:
        put(V, cell + DOWN, combine(get(V, cell + DOWN), p))
        S[COMBINES] += 1
    S[SIZE] += 1


def put_entry(D: Any, x: int, i: int, t: int, p: Any) -> None:
    """Make room at index i of node x (without a child) and put the entry there."""
    N, V = D[1], D[2]
    at, cell = x * STRIDE, x * CELLS
    n = N[at + COUNT]
    for j in range(n, i, -1):
        N[at + TIMES + j] = N[at + TIMES + j - 1]
        put(V, cell + j, get(V, cell + j - 1))
    N[at + TIMES + i] = t
    put(V, cell + i, p)
    N[at + COUNT] = n + 1


def raise_root(D: Any) -> None:
    """A new root above the old one, which is to be split next."""
    S, N, _ = D
    x = S[TOP]
    root = allocate(D, ROOT)
    N[root * STRIDE + KIDS] = x
    N[x * STRIDE + PARENT] = root
    S[TOP] = root
    S[HEIGHT] += 1


def split(D: Any, x: int) -> int:
    """Cut an overflowing node: MU entries stay, the next moves up, the rest goes to a new right node."""
    S, N, V = D
    y = allocate(D, N[x * STRIDE + FLAGS] & (LEAF | RIGHT))
    at, to = x * STRIDE, y * STRIDE
    N[at + FLAGS] &= LEAF | LEFT
    moved = MU - 1
    for i in range(moved):
        N[to + TIMES + i] = N[at + TIMES + MU + 1 + i]
        put(V, y * CELLS + i, get(V, x * CELLS + MU + 1 + i))
    if N[at + FLAGS] & LEAF == 0:
        for i in range(moved + 1):
            kid = N[at + KIDS + MU + 1 + i]
            N[to + KIDS + i] = kid
            N[kid * STRIDE + PARENT] = y
    elif N[to + FLAGS] & RIGHT:
        S[RIGHT_FINGER] = y
    N[at + COUNT] = MU
    N[to + COUNT] = moved
    parent = N[at + PARENT]
    N[to + PARENT] = parent
    i = child_index(D, parent, x)
    for j in range(N[parent * STRIDE + COUNT], i, -1):
        N[parent * STRIDE + KIDS + j + 1] = N[parent * STRIDE + KIDS + j]
    N[parent * STRIDE + KIDS + i + 1] = y
    put_entry(D, parent, i, N[at + TIMES + MU], get(V, x * CELLS + MU))
    return y


def rebalance_overflow(D: Any, x: int) -> None:
    """Split upwards while a node has too many entries, then repair."""
    S, N, _ = D
    hit = 0
    while N[x * STRIDE + COUNT] >= 2 * MU:
        if x == S[TOP]:
            raise_root(D)
        y = split(D, x)
        refresh(D, x)
        recount(D, x)
        refresh(D, y)
        recount(D, y)
        hit |= spine(D, x) | spine(D, y)
        parent = N[x * STRIDE + PARENT]
        if hit == RIGHT and spine(D, y) == RIGHT and N[parent * STRIDE + COUNT] < 2 * MU:
            extend(D, parent, x, y)
            return
        x = parent
        hit |= spine(D, x)
    repair(D, x, hit, 1)


def extend(D: Any, parent: int, x: int, y: int) -> None:
    """Take a split at the right edge, as in-order inserts make them, into the parent's aggregates.

    It adds x and one entry at their end, so they need not be recomputed.
    """
    S, N, V = D
    own = parent * CELLS + OWN
    last = N[parent * STRIDE + COUNT] - 1
    put(V, parent * CELLS + KID_OWN + last, get(V, x * CELLS + OWN))
    piece = combine(get(V, x * CELLS + OWN), get(V, parent * CELLS + last))
    put(V, own, combine(get(V, own), piece))
    N[parent * STRIDE + BELOW] += N[x * STRIDE + BELOW] + 1
    S[COMBINES] += 2
    if parent != S[TOP]:
        down = parent * CELLS + DOWN
        put(V, down, combine(get(V, down), piece))
        S[COMBINES] += 1
    descend(D, y, RIGHT)


# --- evict -----------------------------------------------------------------------------------


def evict(D: Any) -> int:
    """The oldest entry: amortised O(1)."""
    S, N, V = D
    if S[SIZE] == 0:
        return EMPTY
    x = S[LEFT_FINGER]
    S[SIZE] -= 1
    at, cell = x * STRIDE, x * CELLS
    n = N[at + COUNT] - 1
    if n < MU - 1 or n == 0:
        take_entry(D, x, 0)
        rebalance_underflow(D, x, 0, spine(D, x))
        return OK
    # Only this leaf changes: its entries move down and are combined in the same pass.
    total = get(V, cell + 1)
    N[at + TIMES] = N[at + TIMES + 1]
    put(V, cell, total)
    for j in range(1, n):
        p = get(V, cell + j + 1)
        N[at + TIMES + j] = N[at + TIMES + j + 1]
        put(V, cell + j, p)
        total = combine(total, p)
    put(V, cell + n, ONE)
    N[at + COUNT] = N[at + BELOW] = n
    put(V, cell + OWN, total)
    S[COMBINES] += n - 1
    if N[at + FLAGS] & ROOT != ROOT:
        parent = N[at + PARENT]
        if parent != S[TOP]:
            total = combine(total, get(V, parent * CELLS + DOWN))
            S[COMBINES] += 1
        put(V, cell + DOWN, total)
    return OK


def evict_at(D: Any, t: int) -> int:
    """The entry of time t, anywhere: O(log d)."""
    S, N, V = D
    x, i = search(D, t)
    at = x * STRIDE
    if i == N[at + COUNT] or N[at + TIMES + i] != t:
        return MISSING
    S[SIZE] -= 1
    if N[at + FLAGS] & LEAF:
        take_entry(D, x, i)
        rebalance_underflow(D, x, 0, spine(D, x))
        return OK
    # An inner entry gives its place to its neighbour in a leaf below.
    oldest = N[N[at + KIDS + i + 1] * STRIDE + COUNT] > MU - 1
    leaf = N[at + KIDS + i + 1] if oldest else N[at + KIDS + i]
    levels = 1
    while N[leaf * STRIDE + FLAGS] & LEAF == 0:
        leaf = N[leaf * STRIDE + KIDS + (0 if oldest else N[leaf * STRIDE + COUNT])]
        levels += 1
    j = 0 if oldest else N[leaf * STRIDE + COUNT] - 1
    N[at + TIMES + i] = N[leaf * STRIDE + TIMES + j]
    put(V, x * CELLS + i, get(V, leaf * CELLS + j))
    take_entry(D, leaf, j)
    rebalance_underflow(D, leaf, levels, spine(D, leaf))
    return OK


def take_entry(D: Any, x: int, i: int) -> None:
    """Close the gap that entry i of node x leaves (children stay)."""
    N, V = D[1], D[2]
    at, cell = x * STRIDE, x * CELLS
    n = N[at + COUNT] - 1
    for j in range(i, n):
        N[at + TIMES + j] = N[at + TIMES + j + 1]
        put(V, cell + j, get(V, cell + j + 1))
    put(V, cell + n, ONE)
    N[at + COUNT] = n


def rebalance_underflow(D: Any, x: int, levels: int, hit: int) -> None:
    """Merge or move upwards while a node has too few entries, then repair.

    ``levels``: how far above x an entry was replaced; everything up to there is recomputed.
    """
    S, N, _ = D
    while x != S[TOP] and N[x * STRIDE + COUNT] < MU - 1:
        parent = N[x * STRIDE + PARENT]
        i = child_index(D, parent, x)
        after = i < N[parent * STRIDE + COUNT]
        y = N[parent * STRIDE + KIDS + (i + 1 if after else i - 1)]
        hit |= spine(D, x) | spine(D, y)
        levels -= 1
        # Leaves merge whenever they fit into one: in-order windows have leaves of MU entries, and
        # would otherwise move single entries between two of them at nearly every evict.
        if N[y * STRIDE + COUNT] < MU + (1 if N[x * STRIDE + FLAGS] & LEAF else 0):
            x = merge(D, parent, i if after else i - 1)
            if parent != S[TOP] or N[parent * STRIDE + COUNT] > 0:
                x = parent
            else:  # the root has lost its last entry: the merged node is the root now
                release_node(D, parent)
                N[x * STRIDE + PARENT] = -1
                S[TOP] = x
                S[HEIGHT] -= 1
                hit = ROOT
        else:
            if after:
                move_from_right(D, parent, i)
            else:
                move_from_left(D, parent, i)
            refresh(D, y)
            recount(D, y)
            refresh(D, x)
            recount(D, x)
            x = parent
        hit |= spine(D, x)
    while levels > 0 and x != S[TOP]:
        refresh(D, x)
        recount(D, x)
        x = N[x * STRIDE + PARENT]
        hit |= spine(D, x)
        levels -= 1
    repair(D, x, hit, -1)


def merge(D: Any, parent: int, i: int) -> int:
    """Children i and i + 1 and the entry between them become one node."""
    S, N, V = D
    x, y = N[parent * STRIDE + KIDS + i], N[parent * STRIDE + KIDS + i + 1]
    at, other = x * STRIDE, y * STRIDE
    n, m = N[at + COUNT], N[other + COUNT]
    N[at + TIMES + n] = N[parent * STRIDE + TIMES + i]
    put(V, x * CELLS + n, get(V, parent * CELLS + i))
    for j in range(m):
        N[at + TIMES + n + 1 + j] = N[other + TIMES + j]
        put(V, x * CELLS + n + 1 + j, get(V, y * CELLS + j))
    if N[at + FLAGS] & LEAF == 0:
        for j in range(m + 1):
            kid = N[other + KIDS + j]
            N[at + KIDS + n + 1 + j] = kid
            N[kid * STRIDE + PARENT] = x
    N[at + COUNT] = n + 1 + m
    N[at + FLAGS] |= N[other + FLAGS]
    if S[RIGHT_FINGER] == y:
        S[RIGHT_FINGER] = x
    take_entry(D, parent, i)
    for j in range(i + 1, N[parent * STRIDE + COUNT] + 1):
        N[parent * STRIDE + KIDS + j] = N[parent * STRIDE + KIDS + j + 1]
    release_node(D, y)
    refresh(D, x)
    recount(D, x)
    return x


def move_from_right(D: Any, parent: int, i: int) -> None:
    """Child i takes the entry that follows it in the parent, which takes the first of child i + 1."""
    N, V = D[1], D[2]
    x, y = N[parent * STRIDE + KIDS + i], N[parent * STRIDE + KIDS + i + 1]
    at, other = x * STRIDE, y * STRIDE
    n = N[at + COUNT]
    put_entry(D, x, n, N[parent * STRIDE + TIMES + i], get(V, parent * CELLS + i))
    N[parent * STRIDE + TIMES + i] = N[other + TIMES]
    put(V, parent * CELLS + i, get(V, y * CELLS))
    if N[at + FLAGS] & LEAF == 0:
        kid = N[other + KIDS]
        N[at + KIDS + n + 1] = kid
        N[kid * STRIDE + PARENT] = x
        for j in range(N[other + COUNT]):
            N[other + KIDS + j] = N[other + KIDS + j + 1]
    take_entry(D, y, 0)


def move_from_left(D: Any, parent: int, i: int) -> None:
    """Child i takes the entry before it in the parent, which takes the last of child i - 1."""
    N, V = D[1], D[2]
    x, y = N[parent * STRIDE + KIDS + i], N[parent * STRIDE + KIDS + i - 1]
    at, other = x * STRIDE, y * STRIDE
    last = N[other + COUNT] - 1
    if N[at + FLAGS] & LEAF == 0:
        for j in range(N[at + COUNT], -1, -1):
            N[at + KIDS + j + 1] = N[at + KIDS + j]
        kid = N[other + KIDS + last + 1]
        N[at + KIDS] = kid
        N[kid * STRIDE + PARENT] = x
    put_entry(D, x, 0, N[parent * STRIDE + TIMES + i - 1], get(V, parent * CELLS + i - 1))
    N[parent * STRIDE + TIMES + i - 1] = N[other + TIMES + last]
    put(V, parent * CELLS + i - 1, get(V, y * CELLS + last))
    take_entry(D, y, last)


# --- query -----------------------------------------------------------------------------------


def query(D: Any) -> Any:
    """Left finger, root, right finger: two combines."""
    S, _, V = D
    own = get(V, S[TOP] * CELLS + OWN)
    if S[HEIGHT] == 1:
        return own
    S[COMBINES] += 2
    left = combine(get(V, S[LEFT_FINGER] * CELLS + DOWN), own)
    return combine(left, get(V, S[RIGHT_FINGER] * CELLS + DOWN))
