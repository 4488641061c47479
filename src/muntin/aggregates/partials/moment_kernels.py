"""Compiled central moments.

A mean is a pair (base, rest). Where `exact` is not None, values and bases are integers, otherwise
floats. The power is the fourth, the third, or else the second. Numba compiles a variant for each: a
test inside the loops would keep them from being vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.aggregates.arrays import Bools, Floats, Ints
from muntin.compiled_kernels import compiled

_LANES = 32
_HALF = 32
_MASK = 0xFFFFFFFF
_LIMB = 4294967296.0
_FAR = 2.0**900
"""Above this, sums of floats may overflow, and their means lose some digits."""
_ROUNDING = 2.0**-40

Numbers = npt.NDArray[Any]


@compiled
def _apart(x: Any, base: Any, exact: bool | None) -> float:
    """x - base with a single rounding; the difference of two integers may need 65 bits."""
    if exact is None:
        return float(x - base)
    return float(((x >> _HALF) - (base >> _HALF)) * _LIMB + ((x & _MASK) - (base & _MASK)))


@compiled
def _near(d: float, mean: float, exact: bool | None) -> float:
    """A deviation from a mean; 0 where it is only the rounding error of a mean above `_FAR`."""
    if exact is None and abs(mean) > _FAR and abs(d) <= abs(mean) * _ROUNDING:
        return 0.0
    return d


@compiled
def _power(d: float, third: bool | None, fourth: bool | None) -> float:
    square = d * d
    if fourth is not None:
        return square * square
    if third is not None:
        return square * d
    return square


@compiled
def power_runs(
    values: Numbers,
    exact: bool | None,
    valid: Bools | None,
    begin: Ints,
    end: Ints,
    group: Ints,
    base: Numbers,
    rest: Floats,
    third: bool | None,
    fourth: bool | None,
    out: Floats,
) -> None:
    """Add the powers of the deviations of each run to its group; lanes, so that additions do not wait."""
    lanes = np.empty(_LANES)
    for r in range(begin.size):
        a = begin[r]
        b = end[r]
        m = base[group[r]]
        s = rest[group[r]]
        total = 0.0
        if b - a >= 2 * _LANES and (exact is not None or not abs(m) > _FAR):
            lanes[:] = 0.0
            while b - a >= _LANES:
                block = values[a : a + _LANES]
                if valid is None:
                    for k in range(_LANES):
                        lanes[k] += _power(_apart(block[k], m, exact) - s, third, fourth)
                else:
                    ok = valid[a : a + _LANES]
                    for k in range(_LANES):
                        d = _apart(block[k], m, exact) - s
                        lanes[k] += _power(d, third, fourth) if ok[k] else 0.0
                a += _LANES
            for k in range(_LANES):
                total += lanes[k]
        for i in range(a, b):
            if valid is None or valid[i]:
                total += _power(_near(_apart(values[i], m, exact) - s, m, exact), third, fourth)
        out[group[r]] += total


@compiled
def power_scatter(
    values: Numbers,
    exact: bool | None,
    valid: Bools | None,
    group: Ints,
    base: Numbers,
    rest: Floats,
    third: bool | None,
    fourth: bool | None,
    out: Floats,
) -> None:
    """Add the powers of the deviations to their groups."""
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        d = _near(_apart(values[i], base[g], exact) - rest[g], base[g], exact)
        out[g] += _power(d, third, fourth)


@compiled
def power_rows(
    state: Floats,
    second: Floats | None,
    third: Floats | None,
    exact: bool | None,
    rows: Ints | None,
    lo: Ints,
    hi: Ints,
    count: Ints,
    base: Numbers,
    rest: Floats,
    base_after: Numbers,
    rest_after: Floats,
    out: Floats,
) -> None:
    """Moments of a range of rows about the mean of all of them, for each output row (Pébay).

    The order is told by the lower moments that are given: none, the second, or both.
    """
    for j in range(lo.size):
        total = 0.0
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            n = count[r]
            if n == 0:
                continue
            d = _apart(base[r], base_after[j], exact) + (rest[r] - rest_after[j])
            d = _near(d, base_after[j], exact)
            if second is None:
                total += state[r] + n * d * d
            elif third is None:
                total += state[r] + 3.0 * d * second[r] + n * d * d * d
            else:
                total += state[r] + 4.0 * d * third[r] + 6.0 * d * d * second[r] + n * d * d * d * d
        out[j] = total


@compiled
def product_runs(
    x: Numbers,
    x_exact: bool | None,
    y: Numbers,
    y_exact: bool | None,
    begin: Ints,
    end: Ints,
    group: Ints,
    x_base: Numbers,
    x_rest: Floats,
    y_base: Numbers,
    y_rest: Floats,
    out: Floats,
) -> None:
    """Add the products and squares of the deviations of each run to its group."""
    lanes = np.empty((3, _LANES))
    for r in range(begin.size):
        a = begin[r]
        b = end[r]
        g = group[r]
        lanes[:] = 0.0
        x_far = x_exact is None and abs(x_base[g]) > _FAR
        y_far = y_exact is None and abs(y_base[g]) > _FAR
        while b - a >= _LANES and not x_far and not y_far:
            xs = x[a : a + _LANES]
            ys = y[a : a + _LANES]
            for k in range(_LANES):
                dx = _apart(xs[k], x_base[g], x_exact) - x_rest[g]
                dy = _apart(ys[k], y_base[g], y_exact) - y_rest[g]
                lanes[0, k] += dx * dy
                lanes[1, k] += dx * dx
                lanes[2, k] += dy * dy
            a += _LANES
        for i in range(a, b):
            dx = _near(_apart(x[i], x_base[g], x_exact) - x_rest[g], x_base[g], x_exact)
            dy = _near(_apart(y[i], y_base[g], y_exact) - y_rest[g], y_base[g], y_exact)
            lanes[0, 0] += dx * dy
            lanes[1, 0] += dx * dx
            lanes[2, 0] += dy * dy
        for w in range(3):
            for k in range(_LANES):
                out[g, w] += lanes[w, k]


@compiled
def product_scatter(
    x: Numbers,
    x_exact: bool | None,
    y: Numbers,
    y_exact: bool | None,
    group: Ints,
    x_base: Numbers,
    x_rest: Floats,
    y_base: Numbers,
    y_rest: Floats,
    out: Floats,
) -> None:
    """Add the products and squares of the deviations to their groups."""
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        dx = _near(_apart(x[i], x_base[g], x_exact) - x_rest[g], x_base[g], x_exact)
        dy = _near(_apart(y[i], y_base[g], y_exact) - y_rest[g], y_base[g], y_exact)
        out[g, 0] += dx * dy
        out[g, 1] += dx * dx
        out[g, 2] += dy * dy


@compiled
def product_rows(
    state: Floats,
    x_exact: bool | None,
    y_exact: bool | None,
    rows: Ints | None,
    lo: Ints,
    hi: Ints,
    count: Ints,
    x_base: Numbers,
    x_rest: Floats,
    y_base: Numbers,
    y_rest: Floats,
    x_base_after: Numbers,
    x_rest_after: Floats,
    y_base_after: Numbers,
    y_rest_after: Floats,
    out: Floats,
) -> None:
    """Products and squares of a range of rows about the means of all of them, for each output row."""
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            n = count[r]
            if n == 0:
                continue
            dx = _apart(x_base[r], x_base_after[j], x_exact) + (x_rest[r] - x_rest_after[j])
            dy = _apart(y_base[r], y_base_after[j], y_exact) + (y_rest[r] - y_rest_after[j])
            dx, dy = _near(dx, x_base_after[j], x_exact), _near(dy, y_base_after[j], y_exact)
            out[j, 0] += state[r, 0] + n * dx * dy
            out[j, 1] += state[r, 1] + n * dx * dx
            out[j, 2] += state[r, 2] + n * dy * dy
