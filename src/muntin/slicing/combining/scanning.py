"""Scans: running combinations of partials along several runs at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.slicing.partials import PartialSet, States

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def scan(
    partials: PartialSet, states: States, offsets: Column, backwards: Mask | None = None
) -> tuple[States, int]:
    """Row i combines its run up to i; run j is `states[offsets[j]:offsets[j + 1]]`, in that order.

    Where `backwards`, later rows of the run are the left operands. Pairs are combined first, their sums
    scanned in the same way, and every second row added: 2 combines per row, in 2 log2(n) calls over all
    runs. A loop over rows would need half the combines, but one call for each.
    """
    sizes = np.diff(offsets)
    if sizes.max(initial=0) <= 1:
        return states, 0
    turned = np.zeros(len(sizes), dtype=np.bool_) if backwards is None else backwards
    pairs = sizes // 2
    inner_offsets = np.concatenate([[0], np.cumsum(pairs)])
    run = np.repeat(np.arange(len(sizes)), pairs)
    left = offsets[run] + 2 * (np.arange(len(run)) - inner_offsets[run])
    paired = join(partials, states, left, left + 1, turned[run])
    inner, combines = scan(partials, paired, inner_offsets, backwards)
    run = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(run)) - offsets[run]
    index = np.arange(len(run))
    before = len(run) + inner_offsets[run] + (place + 1) // 2 - 1  # the pairs up to this row
    even = np.flatnonzero((place % 2 == 0) & (place > 0))
    both = partials.concat([states, inner])
    added = join(partials, both, before[even], even, turned[run[even]])
    source = np.where(place % 2 == 1, before, index)
    source[even] = len(run) + int(inner_offsets[-1]) + np.arange(len(even))
    return partials.take(partials.concat([both, added]), source), combines + len(left) + len(even)


def join(
    partials: PartialSet, states: States, first: Column, second: Column, turned: Mask | None = None
) -> States:
    """The combination of row `first[j]` with row `second[j]`, with operands swapped where turned."""
    rows = np.empty(2 * len(first), dtype=np.int64)
    rows[0::2] = first if turned is None else np.where(turned, second, first)
    rows[1::2] = second if turned is None else np.where(turned, first, second)
    lo = np.arange(len(first), dtype=np.int64) * 2
    return partials.reduce(states, rows, lo, lo + 2)
