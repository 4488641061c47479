"""Compiled choice of one tuple per group: by an order key, then by (time, arrival)."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled


@compiled
def better(keys: Ints | None, time: Ints, seq: Ints, i: int, best: int, largest: bool, latest: bool) -> bool:
    """Whether tuple i is chosen before the best one so far."""
    if keys is not None:
        if keys[i] != keys[best]:
            return bool((keys[i] > keys[best]) == largest)
    if time[i] != time[best]:
        return bool((time[i] > time[best]) == latest)
    return bool((seq[i] > seq[best]) == latest)


@compiled
def choose_scatter(
    keys: Ints | None,
    valid: Bools | None,
    time: Ints,
    seq: Ints,
    group: Ints,
    n: int,
    largest: bool,
    latest: bool,
) -> Ints:
    """The place of the chosen tuple of each of n groups, -1 if there is none."""
    chosen = np.full(n, -1, np.int64)
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        best = chosen[g]
        if best < 0 or better(keys, time, seq, i, best, largest, latest):
            chosen[g] = i
    return chosen


@compiled
def choose_rows(
    keys: Ints | None,
    time: Ints,
    seq: Ints,
    rows: Ints | None,
    lo: Ints,
    hi: Ints,
    largest: bool,
    latest: bool,
) -> Ints:
    """The chosen one of a range of rows, for each output row; rows with a negative seq hold none."""
    chosen = np.full(lo.size, -1, np.int64)
    for j in range(lo.size):
        best = -1
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            if seq[r] < 0:
                continue
            if best < 0 or better(keys, time, seq, r, best, largest, latest):
                best = r
        chosen[j] = best
    return chosen
