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

    False where a sum of integers exceeds its room; then the trees are of no use any more.
    """
    fits = True
    combines = 0
    paths = np.empty(leaves.shape[0], np.int64)
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
                left = 2 * region[BASE] + 2 * ((region[ROOM] >> height) + x)
                nodes[level + x] = nodes[left]
                fits &= add(codes, nodes[level + x], nodes[left + 1])
                combines += 1
            count = parents
    last, low = -1, 0
    for j in range(lo.shape[0]):
        total = out[j]
        if hi[j] <= lo[j]:
            clear(codes, total)
            continue
        k = window_keys[j]
        region = regions[k]
        if k != last:
            last, low = k, np.searchsorted(fixed[0], k)
        a = region[ROOM] + region[FRONT] + lo[j] - low
        b = a + hi[j] - lo[j]
        top = 2 * region[BASE]
        some = False
        while a < b:
            if a & 1:
                if some:
                    fits &= add(codes, total, nodes[top + a])
                    combines += 1
                else:
                    total[:] = nodes[top + a]
                some = True
                a += 1
            if b & 1:
                b -= 1
                if some:
                    fits &= add(codes, total, nodes[top + b])
                    combines += 1
                else:
                    total[:] = nodes[top + b]
                some = True
            a >>= 1
            b >>= 1
    counters[COMBINES] += combines
    return fits


@inner
def add(codes: Ints, total: Ints, row: Ints) -> bool:
    """Combine the words of a row into a total; False where a sum of integers exceeds its room."""
    at = 0
    fits = True
    for code in codes:
        if code == COUNT:
            total[at] += row[at]
            at += 1
        elif code == INTEGER_SUM:
            low = total[at] + row[at]
            rest = total[at + 1] + row[at + 1]
            fits = fits and -(2**61) <= total[at + 1] < 2**61 and -(2**61) <= row[at + 1] < 2**61
            total[at], total[at + 1] = low & MASK, rest + (low >> LIMB)
            at += 2
        elif code == FLOAT_SUM:
            a, b = total[at : at + 2].view(np.float64), row[at : at + 2].view(np.float64)
            a[0], a[1] = add_floats((a[0], a[1]), (b[0], b[1]))
            at += 2
        else:
            total[at] = min(total[at], row[at]) if code == SMALLEST else max(total[at], row[at])
            at += 1
    return fits


@inner
def clear(codes: Ints, total: Ints) -> None:
    """The words of no slice."""
    total[:] = 0
    at = 0
    for code in codes:
        if code == INTEGER_SUM or code == FLOAT_SUM:
            at += 2
            continue
        if code != COUNT:
            total[at] = LARGEST_INTEGER if code == SMALLEST else SMALLEST_INTEGER
        at += 1
