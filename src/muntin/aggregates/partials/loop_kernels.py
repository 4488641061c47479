"""The loops over tuples and rows, compiled for each declaration of a numeric partial.

The functions below refer to a declaration by globals (`lift`, `combine`, `START`, ...). `loops` makes a
copy of them whose globals belong to one declaration, and compiles it: LLVM inlines and vectorises it.

`valid` and `rows` may be None: Numba compiles a variant without the test.
Loops over ranges use slices, whose indices cannot be negative, so that LLVM can vectorise them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled_around, inner
from muntin.scalars import Scalars

__all__ = ["Loops", "loops"]

START: Any = None
lift: Any = None
combine: Any = None
rebase: Any = None
get: Any = None
put: Any = None


def _lift_runs(
    values: Any, valid: Bools | None, begin: Ints, end: Ints, group: Ints, out: Any, *context: Any
) -> None:
    """Combine the tuples of each run in its group."""
    for g in range(out.shape[0]):
        put(out, g, START[0])
    for r in range(begin.size):
        g = group[r]
        c = row(context, g)
        p = get(out, g)
        run = values[begin[r] : end[r]]
        if valid is None:
            for i in range(run.size):
                p = combine(p, lift(run[i], *c))
        else:
            ok = valid[begin[r] : end[r]]
            for i in range(run.size):
                p = combine(p, lift(run[i], *c) if ok[i] else START[0])
        put(out, g, p)


def _lift_scattered(values: Any, valid: Bools | None, group: Ints, out: Any, *context: Any) -> None:
    """Combine tuples in their groups, in the order of the batch."""
    for g in range(out.shape[0]):
        put(out, g, START[0])
    for i in range(group.size):
        g = group[i]
        if g < 0:
            continue
        if valid is not None and not valid[i]:
            continue
        put(out, g, combine(get(out, g), lift(*row(values, i), *row(context, g))))


def _reduce_rows(state: Any, rows: Ints | None, lo: Ints, hi: Ints, out: Any, *contexts: Any) -> None:
    """Combine a range of rows, for each output row.

    The first half of `contexts` has the rows of the state, the second half those of the result.
    """
    for j in range(lo.size):
        after = row_after(contexts, j)
        p = START[0]
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            p = combine(p, rebase(get(state, r), *row_before(contexts, r), *after))
        put(out, j, p)


# --- rows: of a state, one or a few numbers wide, and of tuples of columns ---------------------------
# Indices are unsigned: Numba then omits the test for a negative one.


def _get_1(state: Any, i: int) -> Any:
    return state[np.uint64(i)]


def _put_1(state: Any, i: int, p: Any) -> None:
    state[np.uint64(i)] = p


def _get_2(state: Any, i: int) -> Any:
    return state[np.uint64(i), 0], state[np.uint64(i), 1]


def _put_2(state: Any, i: int, p: Any) -> None:
    state[np.uint64(i), 0] = p[0]
    state[np.uint64(i), 1] = p[1]


def _get_3(state: Any, i: int) -> Any:
    return state[np.uint64(i), 0], state[np.uint64(i), 1], state[np.uint64(i), 2]


def _put_3(state: Any, i: int, p: Any) -> None:
    state[np.uint64(i), 0] = p[0]
    state[np.uint64(i), 1] = p[1]
    state[np.uint64(i), 2] = p[2]


def _get_4(state: Any, i: int) -> Any:
    return state[np.uint64(i), 0], state[np.uint64(i), 1], state[np.uint64(i), 2], state[np.uint64(i), 3]


def _put_4(state: Any, i: int, p: Any) -> None:
    state[np.uint64(i), 0] = p[0]
    state[np.uint64(i), 1] = p[1]
    state[np.uint64(i), 2] = p[2]
    state[np.uint64(i), 3] = p[3]


_ACCESS = ((_get_1, _put_1), (_get_2, _put_2), (_get_3, _put_3), (_get_4, _put_4))


def _row_of(given: Any, begin: int, end: int) -> Any:
    """Row i of the columns from `begin` to `end`, as a tuple of scalars.

    A column is an array, an array of two words a row, or a constant that is the same in every row.
    """
    kinds = (given,) if isinstance(given, types.Array) else tuple(given)
    places: list[tuple[int, Any, int]] = []
    for k, kind in enumerate(kinds[begin:end], begin):
        words = 2 if isinstance(kind, types.Array) and kind.ndim == 2 else 1
        places += [(k, kind, word) for word in range(words)]
    row_type = types.Tuple([kind.dtype if isinstance(kind, types.Array) else kind for _, kind, _ in places])
    pair = types.UniTuple(types.uint64, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = []
        for k, kind, word in places:
            value = args[0] if isinstance(given, types.Array) else builder.extract_value(args[0], k)
            if isinstance(kind, types.Array):
                at: Any = types.uint64
                place = args[1]
                if kind.ndim == 2:
                    constant = context.get_constant(types.uint64, word)
                    at, place = pair, context.make_tuple(builder, pair, [args[1], constant])
                value = context.get_function(operator.getitem, kind.dtype(kind, at))(builder, (value, place))
            values.append(value)
        return context.make_tuple(builder, row_type, values)

    return row_type(given, types.uint64), generate


def _row(typing_context: Any, columns: Any, i: Any) -> Any:
    return _row_of(columns, 0, 1 if isinstance(columns, types.Array) else len(columns))


def _row_before(typing_context: Any, contexts: Any, i: Any) -> Any:
    return _row_of(contexts, 0, len(contexts) // 2)


def _row_after(typing_context: Any, contexts: Any, i: Any) -> Any:
    return _row_of(contexts, len(contexts) // 2, len(contexts))


row: Any = intrinsic(_row)
row_before: Any = intrinsic(_row_before)
row_after: Any = intrinsic(_row_after)


# --- the copies ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loops:
    """The compiled loops of one declaration."""

    lift_runs: Callable[..., None]
    lift_scattered: Callable[..., None]
    reduce_rows: Callable[..., None]


@cache
def loops(scalars: Scalars) -> Loops:
    """The loops around a declaration; compiled for the types of their first call, and cached on disk."""
    bound = {field.name: getattr(scalars, field.name) for field in fields(scalars)}
    bound["get"], bound["put"] = _ACCESS[scalars.width - 1]
    namespace = globals() | {name: _inner(part) for name, part in bound.items() if callable(part)}
    namespace["START"] = (scalars.identity,)  # Numba would give a plain number a literal type
    copies = (
        FunctionType(f.__code__, namespace, f.__name__) for f in (_lift_runs, _lift_scattered, _reduce_rows)
    )
    return Loops(*(compiled_around(copy, tuple(bound.values())) for copy in copies))


@cache
def _inner(function: Any) -> Any:
    """A function of a declaration, compiled into the loops."""
    if isinstance(function, Dispatcher):
        return function
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    return inner(copy)
