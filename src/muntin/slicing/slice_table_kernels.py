"""Compiled: rows of the slice table merged, fused and folded.

Rows are sorted by (key, first); each lies inside one slice of its key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled
from muntin.slicing.sorting_kernels import gallop

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@compiled
def merge_order(a_key: Ints, a_first: Ints, b_key: Ints, b_first: Ints, rows: Ints) -> None:
    """Order of the rows of two sorted tables as one; rows of the second count from len(first) on."""
    na = a_key.shape[0]
    nb = b_key.shape[0]
    i = 0
    j = 0
    for o in range(na + nb):
        if j == nb or (
            i < na and (a_key[i] < b_key[j] or (a_key[i] == b_key[j] and a_first[i] <= b_first[j]))
        ):
            rows[o] = i
            i += 1
        else:
            rows[o] = na + j
            j += 1


@compiled
def untouched(fixed: Ints, new: Ints) -> int:
    """How many rows at the front lie before all new ones, and are no neighbour of the first of them."""
    low = np.searchsorted(fixed[0], new[0, 0])
    high = np.searchsorted(fixed[0], new[0, 0], side="right")
    return int(max(0, low + np.searchsorted(fixed[1, low:high], new[1, 0]) - 1))


@compiled
def undisturbed(fixed: Ints, new: Ints, level: Ints, edges: Ints) -> int:
    """From which new row on each lies behind all old ones, and in another slice than the one before it."""
    key, first, rank = new[0], new[1], new[5]
    upto = 0
    old = fixed.shape[1] - 1
    if old >= 0:
        low = np.searchsorted(key, fixed[0, old])
        high = np.searchsorted(key, fixed[0, old], side="right")
        # The first one behind the old rows is their neighbour.
        upto = min(low + np.searchsorted(first[low:high], fixed[1, old], side="right") + 1, key.shape[0])
    begin = max(upto, 1)
    cell = int(np.searchsorted(edges, first[begin - 1], side="right"))
    for r in range(begin, key.shape[0]):
        if key[r] != key[r - 1]:
            cell = int(np.searchsorted(edges, first[r], side="right"))
            continue
        here = gallop(edges, cell, edges.shape[0], first[r] + 1)
        if here == cell and level[r] == level[r - 1] and rank[r] < 0 and rank[r - 1] < 0:
            upto = r + 1
        cell = here
    return int(upto)


@compiled
def fuse_runs(
    rows: Ints, old: int, fixed: Ints, level: Ints, edges: Ints, gap: int, lo: Ints, hi: Ints
) -> int:
    """Runs of rows that are one slice: same key and slice, no session gap between.

    Two old rows were apart before and stay apart; a new row between them may close their gap
    (fuse), join one of them (update) or stand alone (the split without recomputation).
    [scotty Alg. 3 to 6]
    """
    key, first, last, rank = fixed[0], fixed[1], fixed[2], fixed[5]
    out = -1
    reach = np.int64(0)
    previous = np.int64(-1)
    cell = 0
    for o in range(rows.shape[0]):
        r = rows[o]
        joined = False
        if previous >= 0 and key[r] == key[previous] and (r >= old or previous >= old):
            here = gallop(edges, cell, edges.shape[0], first[r] + 1)
            if (
                rank[r] < 0
                and rank[previous] < 0
                and level[r] == level[previous]
                and here == cell
                and (gap < 0 or first[r] <= reach + gap)
            ):
                joined = True
            cell = here
        elif previous < 0 or r >= old or (o + 1 < rows.shape[0] and rows[o + 1] >= old):
            cell = int(np.searchsorted(edges, first[r], side="right"))
        if joined:
            hi[out] = o + 1
            reach = max(reach, last[r])
        else:
            out += 1
            lo[out] = o
            hi[out] = o + 1
            reach = last[r]
        previous = r
    return out + 1


@compiled
def reduce_rows(
    rows: Ints,
    lo: Ints,
    hi: Ints,
    fixed: Ints,
    fresh: Ints,
    level: Ints,
    o_fixed: Ints,
    o_fresh: Ints,
    o_level: Ints,
) -> None:
    """The columns of slices that are combined from the rows `rows[lo:hi]`."""
    for j in range(lo.shape[0]):
        r = rows[lo[j]]
        first, last, n, mark, u = fixed[1, r], fixed[2, r], fixed[3, r], fixed[4, r], fresh[r]
        o_fixed[0, j], o_fixed[5, j], o_level[j] = fixed[0, r], fixed[5, r], level[r]
        for o in range(lo[j] + 1, hi[j]):
            r = rows[o]
            first = min(first, fixed[1, r])
            last = max(last, fixed[2, r])
            n += fixed[3, r]
            mark += fixed[4, r]
            u += fresh[r]
        o_fixed[1, j], o_fixed[2, j], o_fixed[3, j], o_fixed[4, j], o_fresh[j] = first, last, n, mark, u


@compiled
def merge_rows(
    old: Ints,
    old_fresh: Ints,
    old_level: Ints,
    old_from: int,
    new: Ints,
    new_fresh: Ints,
    new_level: Ints,
    new_upto: int,
    edges: Ints,
    gap: int,
    both: Ints,
    order: Ints,
    lo: Ints,
    hi: Ints,
    out: Ints,
) -> int:
    """Old rows from one on and new ones up to one as slices: which rows are in which, and their columns.

    Rows of slice j are `order[lo[j]:hi[j]]`, where new rows count on from the old ones. `both` gets the
    fixed columns, fresh and level of all rows, `out` those of the slices, one after the other and
    without a space between. All at once: for the few rows of a small batch each call, and each array
    that is returned, costs more than what is done.
    """
    old_count, columns = old.shape[1] - old_from, old.shape[0]
    for c in range(columns):
        both[c, :old_count] = old[c, old_from:]
        both[c, old_count:] = new[c, :new_upto]
    both[columns, :old_count], both[columns, old_count:] = old_fresh[old_from:], new_fresh[:new_upto]
    both[columns + 1, :old_count], both[columns + 1, old_count:] = old_level[old_from:], new_level[:new_upto]
    fixed, fresh, level = both[:columns], both[columns], both[columns + 1]
    merge_order(fixed[0, :old_count], fixed[1, :old_count], fixed[0, old_count:], fixed[1, old_count:], order)
    count = int(fuse_runs(order, old_count, fixed, level, edges, gap, lo, hi))
    rows = out[: (columns + 2) * count].reshape(columns + 2, count)
    reduce_rows(order, lo[:count], hi[:count], fixed, fresh, level, rows[:columns], rows[-2], rows[-1])
    return count


@compiled
def needed_runs(
    key: Ints,
    first: Ints,
    last: Ints,
    level: Ints,
    rank: Ints,
    edges: Ints,
    gaps: Ints,
    until: int,
    hard: Flags,
    lo: Ints,
    hi: Ints,
) -> int:
    """Runs of rows whose separators no window needs any more: they fold into one partial.

    `edges` are the fixed edges still needed; a session gap still counts for the sessions that
    the rows take part in (classes from `level` on); `hard[i]` forbids joining row i to the row
    before it; rows that begin after `until` are left alone.
    """
    out = -1
    reach = np.int64(0)
    for r in range(key.shape[0]):
        joined = False
        if r > 0 and key[r] == key[r - 1] and first[r] <= until and not hard[r]:
            if level[r] == level[r - 1] and (rank[r] < 0) == (rank[r - 1] < 0):
                e = np.searchsorted(edges, reach, side="right")
                clear = e == edges.shape[0] or edges[e] > first[r]
                level_now = level[r]
                if clear and level_now < gaps.shape[0] and first[r] > reach + gaps[level_now]:
                    clear = False
                joined = clear
        if joined:
            hi[out] = r + 1
            reach = max(reach, last[r])
        else:
            out += 1
            lo[out] = r
            hi[out] = r + 1
            reach = last[r]
    return out + 1


@compiled
def key_offsets(key: Ints, keys: int) -> Ints:
    """Where each key's rows begin: rows of key k are offsets[k]:offsets[k+1]."""
    offsets = np.zeros(keys + 1, np.int64)
    for k in key:
        offsets[k + 1] += 1
    for k in range(keys):
        offsets[k + 1] += offsets[k]
    return offsets


@compiled
def ends_until(time: Ints, offsets: Ints, upto: int) -> Ints:
    """Per key: the position behind its last row with a time of at most `upto`; its times are sorted."""
    ends = np.empty(offsets.shape[0] - 1, np.int64)
    for k in range(ends.shape[0]):
        own = time[offsets[k] : offsets[k + 1]]
        ends[k] = offsets[k] + np.searchsorted(own, upto, side="right")
    return ends


@compiled
def align_ranks(key: Ints, rank: Ints, target: Ints, reached: Ints, keys: int) -> Ints:
    """Per key: the largest begin of a ranked row up to target; `reached` where target is there."""
    aligned = np.zeros(keys, np.int64)
    for i in range(key.shape[0]):
        k = key[i]
        if rank[i] <= target[k] and rank[i] > aligned[k]:
            aligned[k] = rank[i]
    for k in range(keys):
        if target[k] >= reached[k]:
            aligned[k] = reached[k]
    return aligned
