"""Compiled bitwise folds; `out` starts with the identity."""

from __future__ import annotations

from muntin.aggregates.arrays import Bools, Ints
from muntin.compiled_kernels import compiled


@compiled
def _join(p: int, q: int, code: int) -> int:
    if code == 0:
        return p & q
    if code == 1:
        return p | q
    return p ^ q


@compiled
def bit_runs(
    values: Ints, valid: Bools | None, begin: Ints, end: Ints, group: Ints, code: int, out: Ints
) -> None:
    """Join the integers of each run into its group."""
    for r in range(begin.size):
        found = out[group[r]]
        run = values[begin[r] : end[r]]
        if valid is None:
            for i in range(run.size):
                found = _join(found, run[i], code)
        else:
            ok = valid[begin[r] : end[r]]
            for i in range(run.size):
                found = _join(found, run[i], code) if ok[i] else found
        out[group[r]] = found


@compiled
def bit_scatter(values: Ints, valid: Bools | None, group: Ints, code: int, out: Ints) -> None:
    """Join integers into their groups."""
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        out[g] = _join(out[g], values[i], code)


@compiled
def bit_rows(state: Ints, rows: Ints | None, lo: Ints, hi: Ints, code: int, out: Ints) -> None:
    """Join a range of rows, for each output row."""
    for j in range(lo.size):
        found = out[j]
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            found = _join(found, state[r], code)
        out[j] = found
