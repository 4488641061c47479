"""Compiled: search in sorted columns, and rows sorted by columns in time that grows with the rows alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]

BITS = 11
"""Bits per pass of the radix sort: its counters fit into a first-level cache."""
INSERTION_SORTED = 32
"""Up to this many numbers are sorted by insertion."""


@compiled
def gallop(values: Ints, at: int, end: int, bound: int) -> int:
    """First position from `at` on whose value is >= bound, searched in steps that double."""
    step = 1
    low = at
    while at < end and values[at] < bound:
        low = at + 1
        at += step
        step *= 2
    high = min(at, end)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def seek(values: Ints, at: int, guess: int, end: int, bound: int) -> int:
    """As `gallop`, but from a position near which the value is likely to lie."""
    guess = max(at, min(guess, end - 1))
    if guess >= end or values[guess] < bound:
        return int(gallop(values, guess, end, bound))
    step = 1
    high = guess
    low = guess - 1
    while low >= at and values[low] >= bound:
        high = low
        low -= step
        step *= 2
    low = max(low + 1, at)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return int(low)


@compiled
def insertion_sort(values: Ints) -> None:
    """Sort numbers in place, by insertion."""
    for i in range(1, values.shape[0]):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value


@compiled
def sort_by(column: Ints, order: Ints) -> Ints:
    """`order` sorted by the column, ties left as they are: a radix sort, smallest digits first.

    A column in order already costs a look at it.
    """
    n = order.shape[0]
    if n == 0:
        return order
    low = high = column[order[0]]
    ordered = True
    previous = low
    for i in range(n):
        value = column[order[i]]
        ordered &= value >= previous
        low = min(low, value)
        high = max(high, value)
        previous = value
    if ordered:
        return order
    order = order.copy()
    if n <= INSERTION_SORTED:
        for i in range(1, n):
            row = order[i]
            j = i - 1
            while j >= 0 and column[order[j]] > column[row]:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = row
        return order
    other = np.empty_like(order)
    counts = np.empty((1 << BITS) + 1, np.int64)
    mask = (1 << BITS) - 1
    span = np.uint64(high) - np.uint64(low)
    shift = np.uint64(0)
    while span >> shift:
        counts[:] = 0
        for i in range(n):
            digit = ((np.uint64(column[order[i]]) - np.uint64(low)) >> shift) & np.uint64(mask)
            counts[digit + np.uint64(1)] += 1
        for d in range(mask):
            counts[d + 1] += counts[d]
        for i in range(n):
            digit = ((np.uint64(column[order[i]]) - np.uint64(low)) >> shift) & np.uint64(mask)
            other[counts[digit]] = order[i]
            counts[digit] += 1
        order, other = other, order
        shift += np.uint64(BITS)
        if shift >= np.uint64(64):
            break
    return order


@compiled
def sort_windows(end: Ints, start: Ints, number: Ints, key: Ints) -> Ints:
    """The order of windows by end, start, number and key.

    Periodic windows are listed so that windows with equal ends are in that order already. So first
    they are sorted by end alone, and by the rest only if that was not enough.
    """
    order = np.arange(end.shape[0])
    by_end = sort_by(end, order)
    if _in_order(by_end, end, start, number, key):
        return by_end
    return sort_by(end, sort_by(start, sort_by(number, sort_by(key, order))))


@compiled
def group_begins(end: Ints, start: Ints, number: Ints, begins: Ints) -> int:
    """Where sorted windows have another end, start or number than the one before, and how many there are.

    How many groups there are, or -1 if there is no room for all, and for their end.
    """
    n = end.shape[0]
    count = 0
    at = 0
    while at < n:
        if count + 1 >= begins.shape[0]:
            return -1
        begins[count] = at
        count += 1
        # In steps that double, as in `gallop`: the next group begins between `low` and `high`.
        low, high, step = at + 1, n, 1
        while at + step < n:
            if _same_group(at, at + step, end, start, number):
                low = at + step + 1
                step *= 2
            else:
                high = at + step
                break
        while low < high:
            middle = (low + high) >> 1
            if _same_group(at, middle, end, start, number):
                low = middle + 1
            else:
                high = middle
        at = low
    begins[count] = n
    return count


@compiled
def _same_group(p: int, q: int, end: Ints, start: Ints, number: Ints) -> bool:
    return bool(end[p] == end[q] and start[p] == start[q] and number[p] == number[q])


@compiled
def move_ranges(source: Ints, begins: Ints, sizes: Ints, places: Ints, out: Ints) -> None:
    """Copy ranges of a column, each to its place in another."""
    for r in range(begins.shape[0]):
        begin, size = begins[r], sizes[r]
        out[places[r] : places[r] + size] = source[begin : begin + size]


@compiled
def repeat_each(values: Ints, sizes: Ints, out: Ints) -> None:
    """Repeat each value by its size."""
    at = 0
    for r in range(values.shape[0]):
        out[at : at + sizes[r]] = values[r]
        at += sizes[r]


@compiled
def merge_windows(bounds: Ints, end: Ints, start: Ints, number: Ints, key: Ints, order: Ints) -> None:
    """As `sort_windows`, for runs from one bound to the next of which each is sorted already."""
    heads = bounds[:-1].copy()
    for o in range(order.shape[0]):
        best = -1
        for r in range(heads.shape[0]):
            h = heads[r]
            if h == bounds[r + 1]:
                continue
            if best < 0 or _before(h, heads[best], end, start, number, key):
                best = r
        order[o] = heads[best]
        heads[best] += 1


@compiled
def _before(p: int, q: int, end: Ints, start: Ints, number: Ints, key: Ints) -> bool:
    if end[p] != end[q]:
        return bool(end[p] < end[q])
    if start[p] != start[q]:
        return bool(start[p] < start[q])
    if number[p] != number[q]:
        return bool(number[p] < number[q])
    return bool(key[p] < key[q])


@compiled
def _in_order(order: Ints, end: Ints, start: Ints, number: Ints, key: Ints) -> bool:
    for i in range(1, order.shape[0]):
        if _before(order[i], order[i - 1], end, start, number, key):
            return False
    return True


@compiled
def split_sorted(
    time: Ints, ids: Ints | None, low: int, span: int, bits: int, ahead: Ints, behind: Ints
) -> tuple[int, int]:
    """Key, time and position of each tuple as one number: those in order `ahead`, the others `behind`.

    Without a branch, since which one comes next cannot be predicted.
    """
    a = b = np.uint64(0)
    top = np.int64(0)
    for i in range(time.shape[0]):
        place = time[i] - low
        if ids is not None:
            place += ids[i] * span
        number = (place << bits) | i
        ahead[a] = number
        behind[b] = number
        a += np.uint64(number >= top)
        b += np.uint64(number < top)
        top = max(top, number)
    return int(a), int(b)


@compiled
def merge_sorted(ahead: Ints, behind: Ints, bits: int, order: Ints, place: Ints) -> None:
    """Merge the two, each with a number at its end that is larger than all; take the positions out again."""
    a = b = np.uint64(0)
    mask = (1 << bits) - 1
    for o in range(order.shape[0]):
        p, q = ahead[a], behind[b]
        number = min(p, q)
        order[o] = number & mask
        place[o] = number >> bits
        a += np.uint64(p < q)
        b += np.uint64(q < p)


@compiled
def ties_in_turn(order: Ints, ids: Ints, time: Ints, seq: Ints) -> bool:
    """Whether tuples of one key and time are in order of arrival."""
    for i in range(1, order.shape[0]):
        p, q = order[i - 1], order[i]
        if seq[p] > seq[q] and time[p] == time[q] and ids[p] == ids[q]:
            return False
    return True
