"""Slices into windows: how many rows are combined for many windows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Partial
from muntin.errors import UserCodeError
from muntin.slicing.partials import PartialSet, States

Column = npt.NDArray[np.int64]

LAZY, FLATFAT = "lazy", "flatfat"


def combine_ranges(
    partials: PartialSet, states: States, rows: Column | None, lo: Column, hi: Column, store: str
) -> tuple[States, int]:
    """One row for each window `rows[lo:hi]`, and how many combines that took.

    "lazy" walks over the rows of each window. "flatfat" first combines neighbours level by level
    into a tree over the rows, then each window from at most 2 log2(n) nodes [reactive §4]: all
    windows share the work. Partials that grow with their tuples (collect, quantiles) stay lazy,
    since every level of a tree would hold them again.
    """
    walked = int(np.maximum(hi - lo - 1, 0).sum())
    growing = [p.weights(s) is not None for p, s in zip(partials.partials, states, strict=True)]
    if store == FLATFAT and len(lo) and not all(growing):
        try:
            return _combine_by_tree(partials, states, rows, lo, hi, growing)
        except UserCodeError:
            # A node may join the slices of different keys: no window asks for it, and the user's
            # combine may refuse it. Without nodes, what fails is what a window needs.
            pass
    return partials.window(states, rows, lo, hi), walked * len(growing)


def _combine_by_tree(
    partials: PartialSet, states: States, rows: Column | None, lo: Column, hi: Column, growing: list[bool]
) -> tuple[States, int]:
    walked = int(np.maximum(hi - lo - 1, 0).sum())
    tree = _Tree(partials.partials[0].size(states[0]) if rows is None else len(rows), lo, hi)
    after: list[Any] = []
    leaves: dict[int, list[Any]] = {}
    combines = 0
    for i, (partial, needs) in enumerate(zip(partials.partials, partials.needs, strict=True)):
        reduced = tuple(after[n] for n in needs)
        if growing[i] or any(growing[n] for n in needs):
            before = tuple(states[n] for n in needs)
            after.append(partial.window(states[i], rows, lo, hi, before, reduced))
            combines += walked
            continue
        leaf = states[i] if rows is None else partial.take(states[i], rows)
        levels = tree.levels(partial, leaf, [leaves[n] for n in needs])
        leaves[i] = levels
        nodes = partial.concat(levels)
        before = tuple(partials.partials[n].concat(leaves[n]) for n in needs)
        after.append(partial.reduce(nodes, tree.nodes, tree.lo, tree.hi, before, reduced))
        combines += tree.combines
    return tuple(after), combines


class _Tree:
    """A tree of pairs over n rows: where its levels begin, and the nodes that cover each range."""

    def __init__(self, n: int, lo: Column, hi: Column) -> None:
        from muntin.slicing.combining_kernels import count_nodes, cover

        self.sizes = [n]
        # A level above the longest range is never looked at.
        longest = int((hi - lo).max())
        while self.sizes[-1] > 1 and (1 << len(self.sizes)) <= longest:
            self.sizes.append(self.sizes[-1] // 2)
        base = np.cumsum([0, *self.sizes]).astype(np.int64)
        offsets = np.empty(len(lo) + 1, dtype=np.int64)
        total = count_nodes(lo, hi, offsets)
        self.nodes = np.empty(total, dtype=np.int64)
        cover(lo, hi, base, offsets, self.nodes)
        self.lo, self.hi = offsets[:-1], offsets[1:]
        used = int(np.maximum(self.hi - self.lo - 1, 0).sum())
        self.combines = sum(self.sizes[1:]) + used

    def levels(self, partial: Partial, leaves: Any, needs: list[list[Any]]) -> list[Any]:
        """The partials of all levels, each level from the pairs of the one below."""
        found = [leaves]
        for k, size in enumerate(self.sizes[1:]):
            left = np.arange(size, dtype=np.int64) * 2
            before = tuple(levels[k] for levels in needs)
            after = tuple(levels[k + 1] for levels in needs)
            found.append(partial.reduce(found[-1], None, left, left + 2, before, after))
        return found
