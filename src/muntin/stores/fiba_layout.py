"""FiBA: where a node and the state of the tree have their fields. Every kernel of the tree imports all of it.

State ``D = (S, N, V)``: ``S`` integers, ``N`` the nodes' integers, ``V`` the nodes' partials. Node x starts
at ``N[x]`` and ``V[x]`` and takes STRIDE cells of both:

    N   COUNT, PARENT, FLAGS, BELOW, times of the entries from TIMES on, children from KIDS on
    V   partials of the entries, copies of the children's OWN from KID_OWN on, OWN, DOWN

A node has COUNT entries and, unless it is a leaf, COUNT + 1 children; at most MOST entries, one more while
an operation runs. `fiba_aggregate_kernels` defines OWN, DOWN and BELOW.

FLAGS has LEFT for the nodes on the path to the left finger and RIGHT for those to the right one; the
root has both, every other node at most one. A node without either is an *up* node; it has at least
MU - 1 entries. Inner nodes on the spines have at least SPARE, about half as many, and the two fingers may
be empty: a window grows and shrinks at its ends, which then need less rebalancing. An entry at distance d
from an end is still O(log d) levels away from it. (The paper exempts the root only.)

The first S[SKIP] entries of the left finger are evicted. Node 0 is no node; its cells hold the products
of the left finger's entries, see `fiba_aggregate_kernels`.
"""

from __future__ import annotations

COUNT, PARENT, FLAGS, BELOW, TIMES = range(5)
LEFT, RIGHT, ROOT, LEAF = 1, 2, 3, 4

TOP, LEFT_FINGER, RIGHT_FINGER, SIZE, NEWEST, SKIP, SUMMED = range(1, 8)
FREE, FREE_COUNT, FRESH, CAPACITY, HEIGHT = range(8, 13)
PATH = 16  # scratch for the nodes of a path
STATES = PATH + 2 * 64

EARLIEST, LATEST = -(2**63), 2**63 - 1


def constants(arity: int) -> dict[str, int]:
    """The fields whose place depends on the minimum arity of a node."""
    width = 2 * arity
    return {
        "MU": arity,
        "MOST": width - 1,
        "SPARE": max(arity // 2 - 1, 1),
        "STRIDE": (4 + width + width + 1 + 7) // 8 * 8,  # whole cache lines
        "KIDS": 4 + width,
        "KID_OWN": width,
        "OWN": 2 * width + 1,
        "DOWN": 2 * width + 2,
    }


# Replaced by the constants of a tree's own arity when its kernels are specialised.
MU, MOST, SPARE, STRIDE, KIDS, KID_OWN, OWN, DOWN = constants(4).values()
