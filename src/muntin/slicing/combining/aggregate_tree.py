"""FlatFAT over slices: one binary tree per watermark, shared by all its windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.aggregate_tree_kernels import count_nodes, cover
from muntin.slicing.combining.base import Combiner, View
from muntin.slicing.partials import PartialSet, States

Column = npt.NDArray[np.int64]


class AggregateTree(Combiner):
    """Combines neighbours level by level into a tree over the rows, then windows from its nodes.

    The tree costs one combine per row, a window at most 2 log2(n) more [reactive §4]. It is built at each
    watermark over all keys: the number of calls depends on its levels, not on the number of keys.
    """

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        if not (view.hi > view.lo).any():
            return partials.reduce(states, view.rows, view.lo, view.hi), 0
        # Rows of no window need no nodes.
        base = int(view.lo[view.hi > view.lo].min())
        end = int(view.hi.max())
        leaves = partials.take(states, view.row(np.arange(base, end)))
        lo = np.maximum(view.lo - base, 0)
        hi = np.maximum(view.hi - base, lo)
        nodes, lo, hi, sizes = _cover(end - base, lo, hi)
        levels = [leaves]
        for size in sizes[1:]:
            left = np.arange(size, dtype=np.int64) * 2
            levels.append(partials.reduce(levels[-1], None, left, left + 2))
        used = int(np.maximum(hi - lo - 1, 0).sum())
        combines = (sum(sizes[1:]) + used) * len(partials.partials)
        return partials.reduce(partials.concat(levels), nodes, lo, hi), combines


def _cover(n: int, lo: Column, hi: Column) -> tuple[Column, Column, Column, list[int]]:
    """The nodes that cover ranges of n rows, begin and end of those of each range, and the levels' sizes."""
    sizes = [n]
    # Levels whose nodes are longer than the longest range are never used.
    longest = int((hi - lo).max())
    while sizes[-1] > 1 and (1 << len(sizes)) <= longest:
        sizes.append(sizes[-1] // 2)
    offsets = np.empty(len(lo) + 1, dtype=np.int64)
    nodes = np.empty(count_nodes(lo, hi, offsets), dtype=np.int64)
    cover(lo, hi, np.cumsum([0, *sizes]).astype(np.int64), offsets, nodes)
    return nodes, offsets[:-1], offsets[1:], sizes
