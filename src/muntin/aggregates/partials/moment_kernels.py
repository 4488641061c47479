"""Compiled second moments."""

from __future__ import annotations

import numpy as np
from numba import njit

from muntin.aggregates.arrays import Bools, Floats, Ints

_LANES = 32


@njit(cache=True, nogil=True)
def moment_runs(
    values: Floats,
    valid: Bools | None,
    begin: Ints,
    end: Ints,
    group: Ints,
    mean: Floats,
    squares: Floats,
    drift: Floats,
) -> None:
    """Add the squared deviations of each run, and the deviations themselves, to its group."""
    square_lanes = np.empty(_LANES)
    drift_lanes = np.empty(_LANES)
    for r in range(begin.size):
        a = begin[r]
        b = end[r]
        m = mean[group[r]]
        square_sum = 0.0
        drift_sum = 0.0
        if b - a >= 2 * _LANES:
            square_lanes[:] = 0.0
            drift_lanes[:] = 0.0
            while b - a >= _LANES:
                block = values[a : a + _LANES]
                if valid is None:
                    for k in range(_LANES):
                        d = block[k] - m
                        square_lanes[k] += d * d
                        drift_lanes[k] += d
                else:
                    ok = valid[a : a + _LANES]
                    for k in range(_LANES):
                        d = block[k] - m if ok[k] else 0.0
                        square_lanes[k] += d * d
                        drift_lanes[k] += d
                a += _LANES
            for k in range(_LANES):
                square_sum += square_lanes[k]
                drift_sum += drift_lanes[k]
        for i in range(a, b):
            if valid is None or valid[i]:
                d = values[i] - m
                square_sum += d * d
                drift_sum += d
        squares[group[r]] += square_sum
        drift[group[r]] += drift_sum


@njit(cache=True, nogil=True)
def moment_scatter(
    values: Floats, valid: Bools | None, group: Ints, mean: Floats, squares: Floats, drift: Floats
) -> None:
    """Add the squared deviations, and the deviations themselves, to their groups."""
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        d = values[i] - mean[g]
        squares[g] += d * d
        drift[g] += d


@njit(cache=True, nogil=True)
def moment_rows(
    state: Floats,
    rows: Ints | None,
    lo: Ints,
    hi: Ints,
    count: Ints,
    mean: Floats,
    mean_after: Floats,
    out: Floats,
) -> None:
    """Chan's combination of a range of rows, for each output row."""
    for j in range(lo.size):
        total = 0.0
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            if count[r] > 0:
                d = mean[r] - mean_after[j]
                total += state[r] + count[r] * d * d
        out[j] = total
