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
from functools import cache, partial
from types import FunctionType
from typing import Any

import numpy as np

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled_around, inner
from muntin.deferred_import import DeferredImport
from muntin.scalars import Scalars

types: Any = DeferredImport("numba.core.types")  # what follows it runs while Numba compiles

__all__ = ["Loops", "loops"]

START: Any = None
lift: Any = None
combine: Any = None
rebase: Any = None
invert: Any = None
lower: Any = None
get: Any = None
put: Any = None
row: Any = None
row_before: Any = None
row_after: Any = None


def _lift_runs(
    values: Any, valid: Bools | None, begin: Ints, end: Ints, group: Ints, n: int, out: Any, *context: Any
) -> None:
    """Combine the tuples of each run in its group, one of n."""
    for g in range(n):
        put(out, g, START[0])
    for r in range(begin.size):
        g = group[r]
        c = row(context, g)
        p = get(out, g)
        if valid is None:
            for i in range(np.uint64(begin[r]), np.uint64(end[r])):
                p = combine(p, lift(*row(values, i), *c))
        else:
            for i in range(np.uint64(begin[r]), np.uint64(end[r])):
                p = combine(p, lift(*row(values, i), *c) if valid[i] else START[0])
        put(out, g, p)


def _lift_scattered(values: Any, valid: Bools | None, group: Ints, n: int, out: Any, *context: Any) -> None:
    """Combine tuples in their groups, n in number, in the order of the batch."""
    for g in range(n):
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


def _lift_each(values: Any, index: Ints, out: Any) -> None:
    """The partial of each tuple at these places."""
    for j in range(index.size):
        put(out, j, lift(*row(values, index[j])))


def _invert_rows(whole: Any, part: Any, index: Ints, out: Any) -> None:
    """Remove the part from the whole, at these rows."""
    for j in index:
        put(out, j, invert(get(whole, j), get(part, j)))


def _lower_rows(state: Any, index: Ints, out: Any, ok: Bools) -> None:
    """The results at these rows; `ok` is false where a row has none."""
    for j in index:
        ok[j], out[j] = lower(get(state, j))


# --- rows of columns ----------------------------------------------------------------------------------
# A column is an array, an array of a few words a row, or a constant that is the same in every row.
# Indices are unsigned: Numba then omits the test for a negative one.


def _cells(given: Any, words: int) -> list[tuple[int, Any, int]]:
    """Each number of a row: the place of its column, the type of the column, and the word in it."""
    kinds = (given,) if isinstance(given, types.Array) else tuple(given)
    wide = [words if isinstance(kind, types.Array) and kind.ndim == 2 else 1 for kind in kinds]
    return [(k, kind, word) for k, kind in enumerate(kinds) for word in range(wide[k])]


def _entry(context: Any, builder: Any, given: Any, value: Any, cell: tuple[int, Any, int], i: Any) -> Any:
    """The column of a cell, and the type and value of its index in row i."""
    k, kind, word = cell
    column = value if isinstance(given, types.Array) else builder.extract_value(value, k)
    if not isinstance(kind, types.Array) or kind.ndim == 1:
        return column, types.uint64, i
    pair = types.UniTuple(types.uint64, 2)
    return column, pair, context.make_tuple(builder, pair, [i, context.get_constant(types.uint64, word)])


def _read(given: Any, cells: list[tuple[int, Any, int]], scalar: bool = False) -> Any:
    """The numbers at these cells as a tuple, or a single one as a scalar."""
    row_type = types.Tuple([kind.dtype if isinstance(kind, types.Array) else kind for _, kind, _ in cells])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = []
        for cell in cells:
            column, at, place = _entry(context, builder, given, args[0], cell, args[1])
            kind = cell[1]
            if isinstance(kind, types.Array):
                get_item = context.get_function(operator.getitem, kind.dtype(kind, at))
                column = get_item(builder, (column, place))
            values.append(column)
        return values[0] if scalar else context.make_tuple(builder, row_type, values)

    return (row_type[0] if scalar else row_type)(given, types.uint64), generate


def _row(typing_context: Any, columns: Any, i: Any) -> Any:
    return _read(columns, _cells(columns, 2))


def _row_before(typing_context: Any, contexts: Any, i: Any) -> Any:
    return _read(contexts, [cell for cell in _cells(contexts, 2) if cell[0] < len(contexts) // 2])


def _row_after(typing_context: Any, contexts: Any, i: Any) -> Any:
    return _read(contexts, [cell for cell in _cells(contexts, 2) if cell[0] >= len(contexts) // 2])


def _access(width: int) -> tuple[Any, Any]:
    """`get` and `put` of a row of a state: one array, with `width` numbers a row, or a tuple of columns."""

    def get(typing_context: Any, state: Any, i: Any) -> Any:
        return _read(state, _cells(state, width), isinstance(state, types.Array) and state.ndim == 1)

    def put(typing_context: Any, state: Any, i: Any, p: Any) -> Any:
        cells = _cells(state, width)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            for n, cell in enumerate(cells):
                column, at, place = _entry(context, builder, state, args[0], cell, args[1])
                number, its_type = (builder.extract_value(args[2], n), p[n]) if tuple_ else (args[2], p)
                number = context.cast(builder, number, its_type, cell[1].dtype)
                set_item = context.get_function(operator.setitem, types.none(cell[1], at, cell[1].dtype))
                set_item(builder, (column, place, number))
            return context.get_dummy_value()

        tuple_ = isinstance(p, types.BaseTuple)
        return types.none(state, types.uint64, p), generate

    return get, put


def _prepare(namespace: dict[str, Any], width: int) -> None:
    """Give Numba the access to rows."""
    from numba.extending import intrinsic

    get, put = _access(width)
    access = {"get": get, "put": put, "row": _row, "row_before": _row_before, "row_after": _row_after}
    namespace |= {name: intrinsic(function) for name, function in access.items()}


# --- the copies ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loops:
    """The compiled loops of one declaration; the last two only where it has `invert` and `lower`."""

    lift_runs: Callable[..., None]
    lift_scattered: Callable[..., None]
    reduce_rows: Callable[..., None]
    lift_each: Callable[..., None]
    invert_rows: Callable[..., None]
    lower_rows: Callable[..., None]


@cache
def loops(scalars: Scalars, cached: bool = True) -> Loops:
    """The loops around a declaration, for the types of their calls; those of users are not cached on disk."""
    bound = {field.name: getattr(scalars, field.name) for field in fields(scalars)}
    namespace = globals() | {name: _inner(part) for name, part in bound.items() if callable(part)}
    namespace["START"] = (scalars.identity,)  # Numba would give a plain number a literal type
    parts = tuple(bound.values())
    functions = (_lift_runs, _lift_scattered, _reduce_rows, _lift_each, _invert_rows, _lower_rows)
    copies = (FunctionType(f.__code__, namespace, f.__name__) for f in functions)
    prepare = cache(partial(_prepare, namespace, scalars.width))
    if cached:
        return Loops(*(compiled_around(copy, parts, prepare) for copy in copies))
    from muntin.dispatcher_kernels import uncached

    prepare()
    return Loops(*map(uncached, copies))


@cache
def _inner(function: Any) -> Any:
    """A function of a declaration, compiled into the loops."""
    if hasattr(function, "py_func"):  # it is a kernel already
        return function
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    return inner(copy)
