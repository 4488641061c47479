"""Compiled: one step of periodic windows and sessions over numeric partials, from the cut to the results.

A step costs mostly its calls: each call of a kernel takes a microsecond or more whatever it does. So
tuples are cut, lifted and merged into the slices, and the windows that end are listed and combined, in a
single call. Partials are columns of 64-bit words, known by a code each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.partials.limb_kernels import add_limb_rows, carry
from muntin.aggregates.partials.step_codes import COUNT, FLOAT_SUM, INTEGER_SUM, SMALLEST
from muntin.aggregates.partials.sum_kernels import add_float_rows, float_runs
from muntin.compiled_kernels import compiled
from muntin.scalars import LARGEST_INTEGER, LIMB, MASK, SMALLEST_INTEGER
from muntin.slicing.cutting_kernels import cut_sorted_time, next_member
from muntin.slicing.listing_kernels import WIDTH, list_periodic, sessions
from muntin.slicing.scattered_step_kernels import MOST_CELLS, MOST_EDGES, edges_around, scattered_slices
from muntin.slicing.slice_table_kernels import fuse_runs, key_offsets, merge_order, reduce_rows
from muntin.slicing.sorting_kernels import sort_windows
from muntin.timeline.extent_kernels import extent

Ints = npt.NDArray[np.int64]

FIXED = 6
"""The columns of a slice before its partials: key, first, last, n, mark, rank."""
LISTED = 6
"""The columns of a window before its partials: start, end, number, key, lo, hi."""
ROOM = 1_024
"""The windows that there is room for at first: the memory of more is not ready at once."""
MOST_LISTED = 65_536
"""The most windows that one call lists."""
SPARSE = 16
"""The tuples per edge from which searching for the next edge takes less time than asking each tuple."""
BLOCK = 256
"""The tuples that are looked at together when gaps are searched for."""


@compiled
def numeric_step(
    codes: Ints,
    time: Ints,
    ids: Ints,
    values: Ints,
    read: Ints,
    key: int,
    keys: int,
    in_order: bool,
    low: int,
    high: int,
    offsets: Ints,
    periods: Ints,
    gap: int,
    session: int,
    old: Ints,
    old_level: Ints,
    series: Ints,
    before: int,
    watermark: int,
    reach: int,
    narrow: bool,
) -> tuple[Ints, Ints, Ints, int, int, int]:
    """Add tuples, if there are any, to the slices `old`, and list the windows that end by the watermark.

    Without `ids` all tuples have one `key`. A partial reads the row of `values` that `read` says. `gap` is
    that of the window with the number `session`, -1 without one.
    `narrow`: the sums of windows must fit into 64 bits. Returns the columns of all slices and their levels,
    the columns of the windows, the combines of merging and of windows, and the first edge after the
    watermark, at most `reach`. There are no slices where a sum overflows or there is no room.
    """
    width = old.shape[0] - FIXED
    none = np.empty((FIXED + width, 0), np.int64)
    failed = (none, old_level[:0], np.empty((LISTED + width, 0), np.int64), 0, 0, reach)
    table, level, merged = old, old_level, 0
    if time.shape[0]:
        edges = edges_around(offsets, periods, low, high, MOST_CELLS if in_order else MOST_EDGES)
        if not edges.shape[0]:
            return failed
        if in_order:
            begins = cut(time, edges) if gap < 0 else cut_with_gap(time, edges, gap)
            new = lifted_slices(codes, width, time, values, read, key, begins)
        else:
            new = scattered_slices(codes, width, time, ids, values, read, key, keys, low, high, edges, gap)
        if not 0 < new.shape[1] <= MOST_CELLS:
            return failed
        if keys == 1 and gap < 0 and (not old.shape[1] or old[2, -1] <= new[1, 0]):
            table, level = appended_slices(codes, old, old_level, new, edges[0])
        else:
            table, level = merged_slices(codes, old, old_level, new, edges, gap)
        merged = old.shape[1] + new.shape[1] - table.shape[1]
    if not table.shape[1]:
        return failed
    ended, columns = listed_windows(table, keys, series, before, watermark)
    if ended < 0:
        return failed
    alive, over = table[0, :0], np.empty((5, 0), np.int64)
    if gap >= 0:
        alive = np.flatnonzero(level == 0)
        over = ended_sessions(alive, table, gap, watermark)
    windows = np.empty((LISTED + width, ended + over.shape[1]), np.int64)
    windows[:LISTED, :ended] = columns
    for j in range(over.shape[1]):
        windows[0, ended + j], windows[1, ended + j] = over[1, j], over[2, j] + gap
        windows[2, ended + j], windows[3, ended + j] = session, over[0, j]
        windows[4, ended + j], windows[5, ended + j] = over[3, j], over[4, j]
    lo, hi, partials = windows[4], windows[5], windows[LISTED:]
    order = np.arange(table.shape[1])
    if not reduced(codes, table[FIXED:], order, lo[:ended], hi[:ended], partials[:, :ended]):
        return failed
    if over.shape[1]:
        if not reduced(codes, table[FIXED:], alive, lo[ended:], hi[ended:], partials[:, ended:]):
            return failed
        level = level.copy()
        for j in range(ended, ended + over.shape[1]):
            level[alive[lo[j] : hi[j]]] = 1
    if narrow and not narrow_sums(codes, partials):
        return failed
    walked = 0
    for j in range(windows.shape[1]):
        walked += max(0, hi[j] - lo[j] - 1)
    if over.shape[1]:
        windows = windows[:, sort_windows(windows[1], windows[0], windows[2], windows[3])]
    if reach > watermark:
        reach = next_member(offsets, periods, watermark, reach)
    return table, level, windows, merged, walked, reach


@compiled
def listed_windows(table: Ints, keys: int, series: Ints, before: int, watermark: int) -> tuple[int, Ints]:
    """The periodic windows that end by the watermark, as columns: how many, or -1 if there are too many."""
    starts, none = key_offsets(table[0], keys), np.zeros(1, np.bool_)
    room, number = ROOM, -1
    rows, ends, others = np.empty((0, WIDTH), np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    while number < 0 and room <= MOST_LISTED:
        rows = np.empty((room, WIDTH), np.int64)
        ends, others = np.empty(2 * room, np.int64), np.empty(4 * room, np.int64)
        number = list_periodic(starts, table[1], none, False, series, before, watermark, rows, ends, others)
        room = max(room + 1, -number)
    columns = np.empty((LISTED, max(number, 0)), np.int64)
    if number > 0:
        columns[0], columns[1] = ends[:number], ends[number : 2 * number]
        columns[2:] = others[: 4 * number].reshape(4, number)
    return number, columns


@compiled
def ended_sessions(alive: Ints, table: Ints, gap: int, watermark: int) -> Ints:
    """The sessions of the slices `alive` that end before the watermark.

    As columns: key, first and last time, and the positions of its slices among these.
    """
    session_rows = np.empty((5, alive.shape[0]), np.int64)
    number = sessions(alive, table[0], table[1], table[2], gap, SMALLEST_INTEGER, session_rows)
    over = 0
    for j in range(number):
        if session_rows[2, j] + gap < watermark:
            session_rows[:, over] = session_rows[:, j]
            over += 1
    return session_rows[:, :over].copy()


@compiled
def cut(time: Ints, edges: Ints) -> Ints:
    """Where slices begin among times in order, and behind them the number of times.

    Only the next edge counts. [scotty Alg. 1]
    """
    begins = np.empty(edges.shape[0] + 1, np.int64)
    if time.shape[0] > SPARSE * edges.shape[0]:
        number = cut_sorted_time(time, edges, begins)
        begins[number] = time.shape[0]
        return begins[: number + 1]
    count, e = 0, 0
    for i in range(time.shape[0]):
        if time[i] >= edges[e]:
            begins[count] = i
            count += 1
            while edges[e] <= time[i]:  # the last one is behind all times
                e += 1
    begins[count] = time.shape[0]
    return begins[: count + 1]


@compiled
def cut_with_gap(time: Ints, edges: Ints, gap: int) -> Ints:
    """As `cut`, and slices also begin behind a silence longer than the gap.

    Most blocks of tuples have neither an edge nor a gap, which is found out without a branch per tuple.
    """
    begins = np.empty(time.shape[0] + 1, np.int64)
    count, e = 1, np.searchsorted(edges, time[0], side="right")
    begins[0] = 0
    for start in range(1, time.shape[0], BLOCK):
        block = time[start - 1 : start + BLOCK]
        silent = False
        for i in range(1, block.shape[0]):
            silent |= block[i] - block[i - 1] > gap
        if not silent and block[block.shape[0] - 1] < edges[e]:
            continue
        for i in range(1, block.shape[0]):
            if block[i] >= edges[e] or block[i] - block[i - 1] > gap:
                begins[count] = start + i - 1
                count += 1
                while edges[e] <= block[i]:
                    e += 1
    begins[count] = time.shape[0]
    return begins[: count + 1]


@compiled
def lifted_slices(
    codes: Ints, width: int, time: Ints, values: Ints, read: Ints, key: int, begins: Ints
) -> Ints:
    """The slices of these tuples: their fixed columns, and the columns of their partials."""
    count = begins.shape[0] - 1
    new = np.zeros((FIXED + width, count), np.int64)
    for j in range(count):
        new[0, j], new[1, j], new[2, j] = key, time[begins[j]], time[begins[j + 1] - 1]
        new[3, j], new[5, j] = begins[j + 1] - begins[j], -1
    begin, end, group = begins[:-1], begins[1:], np.arange(count)
    at = FIXED
    for p in range(codes.shape[0]):
        code = codes[p]
        if code == COUNT:
            new[at] = new[3]
            at += 1
        elif code == INTEGER_SUM:
            limbs = np.zeros((count, 2), np.int64)
            for j in range(count):
                run = values[read[p], begin[j] : end[j]]
                low = rest = 0
                for i in range(run.shape[0]):
                    low += run[i] & MASK
                    rest += run[i] >> LIMB
                limbs[j, 0], limbs[j, 1] = low, rest
            carry(limbs)
            new[at], new[at + 1] = limbs[:, 0], limbs[:, 1]
            at += 2
        elif code == FLOAT_SUM:
            sums = np.zeros((count, 2))
            float_runs(values[read[p]].view(np.float64), None, begin, end, group, sums)
            bits = sums.view(np.int64)
            new[at], new[at + 1] = bits[:, 0], bits[:, 1]
            at += 2
        else:
            for j in range(count):
                smallest, largest, _ = extent(values[read[p], begin[j] : end[j]])
                new[at, j] = smallest if code == SMALLEST else largest
            at += 1
    return new


@compiled
def appended_slices(codes: Ints, old: Ints, old_level: Ints, new: Ints, edge: int) -> tuple[Ints, Ints]:
    """As `merged_slices` for one key without sessions, where no new tuple lies before an old one.

    New tuples may join only the last old slice: if it begins at the last `edge` before them or later.
    """
    n = old.shape[1]
    joins = n > 0 and old[1, n - 1] >= edge and old[5, n - 1] < 0 and not old_level[n - 1]
    begin = n - 1 if joins else n
    size = begin + new.shape[1]
    table, level = np.empty((old.shape[0], size), np.int64), np.zeros(size, np.int64)
    for row in range(old.shape[0]):
        table[row, :begin] = old[row, :begin]
        table[row, begin:] = new[row]
    level[:begin] = old_level[:begin]
    if joins:
        both = np.empty((old.shape[0], 2), np.int64)
        both[:, 0], both[:, 1] = old[:, begin], new[:, 0]
        table[1, begin] = old[1, begin]
        table[3, begin] += old[3, begin]
        table[4, begin] += old[4, begin]
        rows, lo = np.arange(2), np.zeros(1, np.int64)
        if not reduced(codes, both[FIXED:], rows, lo, lo + 2, table[FIXED:, begin : begin + 1]):
            return table[:, :0].copy(), level[:0]
    return table, level


@compiled
def merged_slices(
    codes: Ints, old: Ints, old_level: Ints, new: Ints, edges: Ints, gap: int
) -> tuple[Ints, Ints]:
    """Merge two sorted tables of slices, and the levels; no slices where a sum overflows.

    Rows of one key combine unless an edge or the gap of sessions lies between them.
    """
    n, size = old.shape[1], old.shape[1] + new.shape[1]
    both, level, fresh = (
        np.empty((old.shape[0], size), np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )
    both[:, :n], both[:, n:], level[:n] = old, new, old_level
    order, lo, hi = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    merge_order(both[0, :n], both[1, :n], both[0, n:], both[1, n:], order)
    count = fuse_runs(order, n, both[:FIXED], level, edges, gap, lo, hi)
    table, out_level = np.empty((old.shape[0], count), np.int64), np.empty(count, np.int64)
    lo, hi = lo[:count], hi[:count]
    reduce_rows(order, lo, hi, both[:FIXED], fresh, level, table[:FIXED], fresh.copy(), out_level)
    if not reduced(codes, both[FIXED:], order, lo, hi, table[FIXED:]):
        return table[:, :0].copy(), out_level[:0]
    return table, out_level


@compiled
def reduced(codes: Ints, words: Ints, order: Ints, lo: Ints, hi: Ints, out: Ints) -> bool:
    """Combine the rows `order[lo:hi]` of all partials, for each output row; False where a sum overflows."""
    at = 0
    fits = True
    for p in range(codes.shape[0]):
        code = codes[p]
        if code == COUNT:
            for j in range(lo.shape[0]):
                total = 0
                for o in range(lo[j], hi[j]):
                    total += words[at, order[o]]
                out[at, j] = total
            at += 1
        elif code == INTEGER_SUM:
            limbs = np.zeros((lo.shape[0], 2), np.int64)
            fits = add_limb_rows(pairs_of(words, at), order, lo, hi, limbs) and fits
            out[at], out[at + 1] = limbs[:, 0], limbs[:, 1]
            at += 2
        elif code == FLOAT_SUM:
            sums = np.zeros((lo.shape[0], 2))
            add_float_rows(pairs_of(words, at).view(np.float64), order, lo, hi, sums)
            bits = sums.view(np.int64)
            out[at], out[at + 1] = bits[:, 0], bits[:, 1]
            at += 2
        else:
            for j in range(lo.shape[0]):
                extreme = LARGEST_INTEGER if code == SMALLEST else SMALLEST_INTEGER
                for o in range(lo[j], hi[j]):
                    word = words[at, order[o]]
                    extreme = min(extreme, word) if code == SMALLEST else max(extreme, word)
                out[at, j] = extreme
            at += 1
    return fits


@compiled
def narrow_sums(codes: Ints, words: Ints) -> bool:
    """Whether each sum of integers fits into 64 bits."""
    at = 0
    for p in range(codes.shape[0]):
        if codes[p] == INTEGER_SUM:
            for j in range(words.shape[1]):
                if words[at + 1, j] != ((words[at + 1, j] << LIMB) | words[at, j]) >> LIMB:
                    return False
        at += 2 if codes[p] == INTEGER_SUM or codes[p] == FLOAT_SUM else 1
    return True


@compiled
def pairs_of(words: Ints, at: int) -> Ints:
    """Two columns as rows of two words."""
    pairs = np.empty((words.shape[1], 2), np.int64)
    pairs[:, 0], pairs[:, 1] = words[at], words[at + 1]
    return pairs
