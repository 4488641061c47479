"""The loops over tuples and slices, compiled around one user-defined aggregate.

A partial aggregate is a row of a few columns, one NumPy array each. `lift` and `combine` become part of the
loops (the code generation of the Reactive Aggregator [reactive §5.3]). An exception ends a loop; its caller
starts over in the interpreter. Each loop is compiled for one set of types, to save time: no array is
optional, and all arrays that are only read are read-only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import njit

from muntin.aggregates.compiling import operation_kernels
from muntin.aggregates.compiling.tracing import Code

Loop = Callable[..., Any]

_NAMES = ("lift", "combine", "load", "store", "invert", "lower")


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The compiled loops of one aggregate over inputs of known kinds."""

    code: Code
    lift_runs: Loop
    lift_scatter: Loop
    lift_each: Loop
    fold_items: Loop
    reduce_rows: Loop
    invert_rows: Loop | None
    lower_rows: Loop | None


@functools.cache
def build(code: Code) -> Kernels:
    """The loops around the functions of an aggregate; each is compiled when it is first called."""
    world = {**vars(operation_kernels), "inf": math.inf, "nan": math.nan}
    exec(code.source, world)  # noqa: S102  made by `tracing`
    inner: Any = {"nogil": True, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    given = {name: njit(**inner)(world[name]) for name in _NAMES if name in world}
    functions: Any = map(given.get, _NAMES)
    lift, combine, load, store, invert, lower = functions

    @njit(nogil=True)
    def lift_runs(
        values: Any, valid: Any, step: int, begin: Any, end: Any, group: Any, count: Any, columns: Any
    ) -> None:
        """Fold the tuples of each run into its group; tuple i counts if `valid[step * i]`."""
        for r in range(begin.size):
            g = group[r]
            n = count[g]
            p = load(columns, g)
            for i in range(begin[r], end[r]):
                if valid[step * i]:
                    q = lift(values, i)
                    p = combine(p, q) if n > 0 else q
                    n += 1
            store(columns, g, p)
            count[g] = n

    @njit(nogil=True)
    def lift_scatter(values: Any, valid: Any, step: int, group: Any, count: Any, columns: Any) -> None:
        """Fold tuples into their groups, in the order of the batch."""
        for i in range(group.size):
            g = group[i]
            if g >= 0 and valid[step * i]:
                q = lift(values, i)
                store(columns, g, combine(load(columns, g), q) if count[g] > 0 else q)
                count[g] += 1

    @njit(nogil=True)
    def lift_each(values: Any, index: Any, columns: Any) -> None:
        """The partial aggregates of single tuples."""
        for j in range(index.size):
            store(columns, j, lift(values, index[j]))

    @njit(nogil=True)
    def fold_items(items: Any, offsets: Any, columns: Any) -> None:
        """The fold of the items of each row."""
        for j in range(offsets.size - 1):
            if offsets[j] < offsets[j + 1]:
                p = load(items, offsets[j])
                for i in range(offsets[j] + 1, offsets[j + 1]):
                    p = combine(p, load(items, i))
                store(columns, j, p)

    @njit(nogil=True)
    def reduce_rows(state: Any, count: Any, rows: Any, lo: Any, hi: Any, counts: Any, columns: Any) -> None:
        """The fold of a range of rows, for each output row; rows that count 0 are empty."""
        for j in range(lo.size):
            n = 0
            p = load(columns, j)
            for i in range(lo[j], hi[j]):
                r = rows[i]
                if count[r] > 0:
                    p = combine(p, load(state, r)) if n > 0 else load(state, r)
                    n += count[r]
            store(columns, j, p)
            counts[j] = n

    @njit(nogil=True)
    def invert_rows(whole: Any, part: Any, index: Any, columns: Any) -> None:
        """Remove the part from the whole, at these rows."""
        for j in index:
            store(columns, j, invert(load(whole, j), load(part, j)))

    @njit(nogil=True)
    def lower_rows(columns: Any, index: Any, out: Any, ok: Any) -> None:
        """The results at these rows; `ok` is false where they are None."""
        for j in index:
            ok[j], out[j] = lower(load(columns, j))

    optional = [invert_rows if "invert" in given else None, lower_rows if code.result else None]
    return Kernels(code, lift_runs, lift_scatter, lift_each, fold_items, reduce_rows, *optional)
