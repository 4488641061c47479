"""Compiled work on sums of integers in limbs of 32 bits, declared in `scalars`."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Floats, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled
from muntin.scalars import LIMB, MASK


@compiled
def carry(out: Ints) -> None:
    """Carry between the limbs of each row."""
    for j in range(out.shape[0]):
        for k in range(out.shape[1] - 1):
            out[j, k + 1] += out[j, k] >> LIMB
            out[j, k] &= MASK


@compiled
def add_limb_rows(state: Ints, rows: Ints | None, lo: Ints, hi: Ints, out: Ints) -> bool:
    """Sum of a range of rows with carried limbs; False if one does not fit.

    The loop of the declaration would not notice that the last limb wraps around.
    """
    width = state.shape[1]
    fits = True
    for j in range(lo.size):
        beyond = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            for k in range(width - 1):
                out[j, k] += state[r, k]
            # The last limb may have any of its 64 bits set, so it is added in halves.
            out[j, width - 1] += state[r, width - 1] & MASK
            beyond += state[r, width - 1] >> LIMB
        for k in range(width - 1):
            out[j, k + 1] += out[j, k] >> LIMB
            out[j, k] &= MASK
        beyond += out[j, width - 1] >> LIMB
        if beyond < -(2**30) or beyond >= 2**30:
            fits = False
        out[j, width - 1] = (beyond << LIMB) | (out[j, width - 1] & MASK)
    return fits


@compiled
def narrow_limb_rows(state: Ints, out: Ints) -> int:
    """Each row of carried limbs as one integer; the first row that does not fit into 64 bits, or -1."""
    for j in range(state.shape[0]):
        low = (state[j, 1] << LIMB) | state[j, 0]
        sign = low >> 63
        fits = state[j, 1] == low >> LIMB
        if state.shape[1] > 2:
            fits = state[j, 2] == sign & MASK and state[j, 3] == sign
        if not fits:
            return j
        out[j] = low
    return -1


@compiled
def divide_limb_rows(state: Ints, divisor: Ints, factor: int, out: Ints) -> bool:
    """(row * factor / divisor), rounded half up, as two words; False if one does not fit.

    Bit by bit: exact for any divisor, and there are only as many rows as results.
    """
    width = state.shape[1]
    fits = True
    limbs = np.empty(width + 2, np.int64)
    for j in range(state.shape[0]):
        if divisor[j] == 0:
            continue
        negative = state[j, width - 1] < 0
        over = 0
        for k in range(width + 1):
            # The last limb is wider than the others: two of them.
            limb = state[j, k] & MASK if k < width else state[j, width - 1] >> LIMB
            over += (-limb if negative else limb) * factor
            limbs[k] = over & MASK
            over >>= LIMB
        limbs[width + 1] = over
        low = np.uint64(0)
        high = np.uint64(0)
        rest = 0
        for k in range(width + 1, -1, -1):
            for b in range(LIMB - 1, -1, -1):
                rest = 2 * rest + ((limbs[k] >> b) & 1)
                if high >> np.uint64(62):
                    fits = False
                high = (high << np.uint64(1)) | (low >> np.uint64(63))
                low = low << np.uint64(1)
                if rest >= divisor[j]:
                    rest -= divisor[j]
                    low |= np.uint64(1)
        if 2 * rest >= divisor[j]:
            low += np.uint64(1)
            high += np.uint64(low == 0)
        if negative:
            low = ~low + np.uint64(1)
            high = ~high + np.uint64(low == 0)
        out[j, 0] = np.int64(low)
        out[j, 1] = np.int64(high)
    return fits


@compiled
def split_means(state: Ints, count: Ints, base: Ints, rest: Floats) -> None:
    """Row by row the mean of a sum in limbs: its floor (modulo 2**64), and what is left of it.

    Long division, 16 bits at a time: exact for up to 2**47 values.
    """
    for j in range(count.size):
        n = max(count[j], 1)
        top = state.shape[1] - 1
        q = state[j, top] // n
        left = state[j, top] - q * n
        for k in range(top - 1, -1, -1):
            for shift in (16, 0):
                left = (left << 16) + ((state[j, k] >> shift) & 0xFFFF)
                q = (q << 16) + left // n
                left %= n
        base[j] = q
        rest[j] = left / n
