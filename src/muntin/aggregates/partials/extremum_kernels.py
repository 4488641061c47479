"""Compiled minima and maxima of order keys; `out` starts with the identity."""

from __future__ import annotations

from muntin.aggregates.arrays import Bools, Ints
from muntin.compiled_kernels import compiled


@compiled
def extreme_runs(
    keys: Ints, valid: Bools | None, begin: Ints, end: Ints, group: Ints, largest: bool, out: Ints
) -> None:
    """The smallest or largest key of each run, into its group."""
    for r in range(begin.size):
        found = out[group[r]]
        run = keys[begin[r] : end[r]]
        if valid is None:
            if largest:
                for i in range(run.size):
                    found = max(found, run[i])
            else:
                for i in range(run.size):
                    found = min(found, run[i])
        else:
            ok = valid[begin[r] : end[r]]
            if largest:
                for i in range(run.size):
                    found = max(found, run[i] if ok[i] else found)
            else:
                for i in range(run.size):
                    found = min(found, run[i] if ok[i] else found)
        out[group[r]] = found


@compiled
def extreme_scatter(keys: Ints, valid: Bools | None, group: Ints, largest: bool, out: Ints) -> None:
    """The smallest or largest key of each group."""
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        if largest:
            out[g] = max(out[g], keys[i])
        else:
            out[g] = min(out[g], keys[i])


@compiled
def extreme_rows(state: Ints, rows: Ints | None, lo: Ints, hi: Ints, largest: bool, out: Ints) -> None:
    """The smallest or largest key of a range of rows, for each output row."""
    for j in range(lo.size):
        found = out[j]
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            if largest:
                found = max(found, state[r])
            else:
                found = min(found, state[r])
        out[j] = found


# How often the extreme occurs; `best` are the extremes of the groups.


@compiled
def equal_runs(
    keys: Ints, valid: Bools | None, begin: Ints, end: Ints, group: Ints, best: Ints, out: Ints
) -> None:
    """Add how often the extreme of its group occurs in each run."""
    for r in range(begin.size):
        wanted = best[group[r]]
        run = keys[begin[r] : end[r]]
        count = 0
        if valid is None:
            for i in range(run.size):
                count += run[i] == wanted
        else:
            ok = valid[begin[r] : end[r]]
            for i in range(run.size):
                count += ok[i] and run[i] == wanted
        out[group[r]] += count


@compiled
def equal_scatter(keys: Ints, valid: Bools | None, group: Ints, best: Ints, out: Ints) -> None:
    """Add how often the extreme of each group occurs."""
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        out[g] += keys[i] == best[g]


@compiled
def equal_rows(
    state: Ints, before: Ints, after: Ints, rows: Ints | None, lo: Ints, hi: Ints, out: Ints
) -> None:
    """Add up the rows that have the extreme of the whole range, for each output row."""
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            if before[r] == after[j]:
                out[j] += state[r]
