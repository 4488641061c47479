"""Compiled: the trees of `standing_trees`, which follow the slices of many keys in shared arrays.

The tree of a key has the region BASE .. BASE + ROOM of the leaves; ROOM is a power of two. Its slices are the
leaves FRONT .. END of the region, in their order. Node x of a region is row 2 * BASE + x of `nodes`: the root
is 1, the children of x are 2x and 2x + 1, and leaf i is ROOM + i. A node is computed when all its leaves are
slices, and read only then: slices that are appended or evicted cost no combine but those of new nodes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.partials.step_codes import COUNT, FLOAT_SUM, INTEGER_SUM, SMALLEST
from muntin.aggregates.partials.sum_kernels import FLOAT_SUM as FLOATS
from muntin.compiled_kernels import compiled, inner
from muntin.scalars import LARGEST_INTEGER, LIMB, MASK, SMALLEST_INTEGER

Ints = npt.NDArray[np.int64]
add_floats = FLOATS.combine

BASE, ROOM, FRONT, END, SEEN = range(5)
"""Columns of a region; SEEN is the number of the step that compared it with the table last."""
USED, COMBINES, CHANGED = range(3)
"""Fields of the counters: leaves of all regions, combines so far, and slices to be written."""
LEAST_ROOM = 8
ROOM_OF_SUMS = 2**55
"""Bound of the upper limbs of sums: those of a window, at most 128 of them, cannot wrap around."""


@compiled
def follow(
    regions: Ints,
    identity: Ints,
    counters: Ints,
    fixed: Ints,
    keys: Ints,
    seen: int,
    unchanged: int,
    number: int,
    rows: Ints,
    leaves: Ints,
) -> bool:
    """Compare the trees of these keys with the rows of the table; False if there is no room for them all.

    `fixed` has the columns key, first, last, n and mark. Rows before `unchanged` are as the step with the
    number `seen` saw them; this one has the given `number`. The rows to write go to `rows`, in their order,
    and the leaves that they belong to, counted over all regions, to `leaves`.
    """
    key, first, n, mark = fixed[0], fixed[1], fixed[3], fixed[4]
    changed = 0
    for k in keys:
        region = regions[k]
        low, high = np.searchsorted(key, k), np.searchsorted(key, k, side="right")
        size = high - low
        start = 0
        if region[ROOM] and region[SEEN] == seen:
            start = max(0, min(unchanged - low, region[END] - region[FRONT], size))
        base = region[BASE]
        if start == 0 and size:
            while region[FRONT] < region[END] and identity[0, base + region[FRONT]] < first[low]:
                region[FRONT] += 1
        if region[FRONT] + size > region[ROOM]:
            start = 0
            needed = LEAST_ROOM
            while needed < size + size // 4:
                needed *= 2
            if region[ROOM] < needed:
                if counters[USED] + needed > identity.shape[1]:
                    return False
                region[BASE], region[ROOM] = counters[USED], needed
                counters[USED] += needed
                base = region[BASE]
            region[FRONT] = region[END] = 0
        stored = min(region[END] - region[FRONT], size)
        moved = False
        for i in range(start, size):
            row, leaf = low + i, base + region[FRONT] + i
            if i < stored and not moved:
                if identity[0, leaf] != first[row]:
                    moved = True  # a slice was added or dropped before this one
                elif identity[1, leaf] == n[row] and identity[2, leaf] == mark[row]:
                    continue
            identity[0, leaf], identity[1, leaf], identity[2, leaf] = first[row], n[row], mark[row]
            rows[changed], leaves[changed] = row, leaf
            changed += 1
        region[END] = region[FRONT] + size
        region[SEEN] = number
    counters[CHANGED] = changed
    return True


@compiled
def serve(
    codes: Ints,
    regions: Ints,
    nodes: Ints,
    counters: Ints,
    keys: Ints,
    leaves: Ints,
    words: Ints,
    fixed: Ints,
    window_keys: Ints,
    lo: Ints,
    hi: Ints,
    out: Ints,
) -> bool:
    """Write these leaves, recompute the nodes above them, and combine rows lo .. hi of each window.

    False where a sum of integers exceeds its room; then the trees are invalid.
    """
    fits = True
    combines = 0
    paths, covers = np.empty(leaves.shape[0], np.int64), np.empty(2 * 64, np.int64)
    at = 0
    for k in keys:
        region = regions[k]
        begin = at
        while at < leaves.shape[0] and region[BASE] <= leaves[at] < region[BASE] + region[ROOM]:
            leaf = leaves[at] - region[BASE]
            nodes[2 * region[BASE] + region[ROOM] + leaf] = words[:, at]
            paths[at] = leaf
            at += 1
        count, height = at - begin, 0
        while count and region[ROOM] >> height > 1:
            height += 1
            level = 2 * region[BASE] + (region[ROOM] >> height)
            parents = 0
            for j in range(begin, begin + count):
                x = paths[j] >> 1
                if parents and paths[begin + parents - 1] == x:
                    continue
                if x << height < region[FRONT] or (x + 1) << height > region[END]:
                    continue
                paths[begin + parents] = x
                parents += 1
                covers[0] = 2 * region[BASE] + 2 * ((region[ROOM] >> height) + x)
                covers[1] = covers[0] + 1
                fits &= total(codes, nodes, covers, 2, nodes, level + x)
                combines += 1
            count = parents
    last, low = -1, 0
    for j in range(lo.shape[0]):
        if window_keys[j] != last:
            last = window_keys[j]
            region, low = regions[last], np.searchsorted(fixed[0], last)
        count = 0
        if hi[j] > lo[j]:
            region = regions[last]
            a = region[ROOM] + region[FRONT] + lo[j] - low
            b = a + hi[j] - lo[j]
            top = 2 * region[BASE]
            while a < b:
                if a & 1:
                    covers[count] = top + a
                    count += 1
                    a += 1
                if b & 1:
                    b -= 1
                    covers[count] = top + b
                    count += 1
                a >>= 1
                b >>= 1
            combines += count - 1
        fits &= total(codes, nodes, covers, count, out, j)
    counters[COMBINES] += combines
    return fits


@inner
def total(codes: Ints, nodes: Ints, rows: Ints, count: int, out: Ints, to: int) -> bool:
    """Combine these rows of nodes into a row of `out`; False where a sum of integers exceeds its room."""
    at = 0
    fits = True
    for code in codes:
        if code == COUNT:
            n = 0
            for i in range(count):
                n += nodes[rows[i], at]
            out[to, at] = n
            at += 1
        elif code == INTEGER_SUM:
            low = rest = 0
            for i in range(count):
                part = nodes[rows[i], at + 1]
                fits = fits and -ROOM_OF_SUMS <= part < ROOM_OF_SUMS
                low, rest = low + nodes[rows[i], at], rest + part
            out[to, at], out[to, at + 1] = low & MASK, rest + (low >> LIMB)
            at += 2
        elif code == FLOAT_SUM:
            p = (0.0, 0.0)
            for i in range(count):
                q = nodes[rows[i], at : at + 2].view(np.float64)
                p = add_floats(p, (q[0], q[1]))
            both = out[to, at : at + 2].view(np.float64)
            both[0], both[1] = p
            at += 2
        else:
            extreme = LARGEST_INTEGER if code == SMALLEST else SMALLEST_INTEGER
            for i in range(count):
                word = nodes[rows[i], at]
                extreme = min(extreme, word) if code == SMALLEST else max(extreme, word)
            out[to, at] = extreme
            at += 1
    return fits
