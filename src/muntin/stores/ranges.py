"""Aggregates of many row ranges at once: how windows are computed from slices in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError, QueryError, nearest
from muntin.stores import columns, compilation, ranges_kernels
from muntin.stores.monoids import Monoid, named, plain_sum

STRATEGIES = ("lazy", "prefix", "two_stacks", "tree")
Rows = npt.NDArray[np.int64]


class Reduced(NamedTuple):
    """One partial for each range (a tuple of arrays for a partial of several columns)."""

    partials: Any
    combines: int
    strategy: str


def reduce_ranges(
    partials: Any,
    monoid: str | Monoid,
    lo: npt.ArrayLike,
    hi: npt.ArrayLike,
    *,
    strategy: str | None = None,
) -> Reduced:
    """Combine ``partials[lo[j]:hi[j]]``, in order, for every j. An empty range gives the identity.

    ``partials`` are partials already, not values: an array, a tuple of arrays (one for each column
    of the monoid), or a list of objects for an interpreted monoid. Strategies, all with the same
    result: "lazy" loops over each range; "prefix" subtracts running sums (exact inverses only);
    "two_stacks" sweeps over ranges whose starts and ends never go back; "tree" serves any ranges.
    Left out, `choose` picks one. Sums of int64 are exact; one that does not fit is an error.

    >>> import numpy as np
    >>> reduce_ranges(np.array([3.0, 1.0, 2.0, 5.0]), "max", [0, 1, 3], [2, 3, 4]).partials
    array([3., 2., 5.])
    """
    starts, ends = _rows(lo), _rows(hi)
    interpreted = isinstance(partials, list)
    n = len(partials[0]) if isinstance(partials, tuple) else len(partials)
    _check(starts, ends, n)
    found = _monoid(monoid, partials)
    if found.name == "sum" and found.columns == ("int64", "int64") and not isinstance(partials, tuple):
        return _integer_sums(np.ascontiguousarray(partials, np.int64), starts, ends, strategy)
    compiled = not interpreted and bool(found.columns)
    if not compiled and not interpreted:
        raise QueryError(f"{found!r} is interpreted: give its partials as a list")
    return _reduce(partials, n, found, starts, ends, strategy, compiled)


def choose(monoid: Monoid, n: int, lo: Rows, hi: Rows) -> str:
    """The cheapest strategy that fits, by the combines it needs in the worst case.

    >>> choose(named("max"), 100, np.arange(0, 90), np.arange(10, 100))
    'two_stacks'
    """
    rows = int(np.maximum(hi - lo, 0).sum())
    if rows <= 2 * len(lo) + n // 4:
        return "lazy"
    if monoid.invert is not None:
        return "prefix"
    if is_monotone(lo) and is_monotone(hi):
        return "lazy" if rows <= 2 * n else "two_stacks"
    tree = n + 2 * len(lo) * max(n, 2).bit_length()
    return "lazy" if rows <= tree else "tree"


def is_monotone(rows: Rows) -> bool:
    """Whether the rows never go back."""
    return bool((rows[1:] >= rows[:-1]).all())


def _reduce(
    partials: Any, n: int, monoid: Monoid, lo: Rows, hi: Rows, strategy: str | None, compiled: bool
) -> Reduced:
    strategy = strategy or choose(monoid, n, lo, hi)
    if strategy not in STRATEGIES:
        raise QueryError(f'unknown strategy "{strategy}".{nearest(strategy, STRATEGIES)}')
    if strategy == "prefix" and monoid.invert is None:
        raise QueryError(f'"prefix" needs an exact inverse, and "{monoid.name}" has none')
    if strategy == "two_stacks" and not (is_monotone(lo) and is_monotone(hi)):
        raise QueryError('"two_stacks" needs ranges whose starts and ends never go back; use "tree"')
    kernels = compilation.specialise((ranges_kernels,), monoid, compiled=compiled)
    room = {"lazy": 1, "prefix": n + 1, "two_stacks": n + 1, "tree": 2 * n + 1}[strategy]
    if compiled:
        out, scratch = columns.allocate(monoid.columns, len(lo)), columns.allocate(monoid.columns, room)
        cells = _cells(partials, monoid)
        rows: tuple[Any, Any] = (lo, hi)
    else:
        one = monoid.python.identity
        out, scratch, cells = [one] * len(lo), [one] * room, partials
        rows = (lo.tolist(), hi.tolist())
    combines = getattr(kernels, f"reduce_{strategy}")(cells, n, *rows, out, scratch)
    return Reduced(out, int(combines), strategy)


def _integer_sums(values: npt.NDArray[np.int64], lo: Rows, hi: Rows, strategy: str | None) -> Reduced:
    """Exact sums: 64-bit arithmetic where no range can overflow, 128-bit where one might."""
    longest = int(np.maximum(hi - lo, 0).max(initial=0))
    largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    if longest * largest < 2**63:
        return _reduce(values, len(values), plain_sum(), lo, hi, strategy, compiled=True)
    wide = (values, values >> 63)
    reduced = _reduce(wide, len(values), named("sum", "int64"), lo, hi, strategy, compiled=True)
    low, high = reduced.partials
    if (high != low >> 63).any():
        j = int(np.flatnonzero(high != low >> 63)[0])
        raise DataError(f"the sum of rows {lo[j]} to {hi[j]} does not fit into 64 bits; use float64 values")
    return reduced._replace(partials=low)


def _monoid(monoid: str | Monoid, partials: Any) -> Monoid:
    if isinstance(monoid, Monoid):
        return monoid
    first: Any = partials[0] if isinstance(partials, tuple) else partials
    kind = "int64" if isinstance(first, np.ndarray) and first.dtype.kind in "iub" else "float64"
    return named(monoid, kind)


def _cells(partials: Any, monoid: Monoid) -> Any:
    parts: Sequence[Any] = partials if isinstance(partials, tuple) else (partials,)
    if len(parts) != len(monoid.columns):
        raise DataError(f'"{monoid.name}" has {len(monoid.columns)} columns: got {len(parts)}')
    arrays = tuple(np.ascontiguousarray(p, name) for p, name in zip(parts, monoid.columns, strict=True))
    return arrays if len(arrays) > 1 else arrays[0]


def _rows(rows: npt.ArrayLike) -> Rows:
    return np.ascontiguousarray(rows, np.int64)


def _check(lo: Rows, hi: Rows, n: int) -> None:
    if len(lo) != len(hi):
        raise DataError(f"as many starts as ends: got {len(lo)} and {len(hi)}")
    inside = (lo >= 0) & (hi <= n) | (lo >= hi)
    if not inside.all():
        j = int(np.flatnonzero(~inside)[0])
        raise DataError(f"ranges must lie within 0 and {n}: got {lo[j]} to {hi[j]}")
