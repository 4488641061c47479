"""The loops over tuples and slices, compiled around one user-defined aggregate.

A partial aggregate is a row of a few columns, one NumPy array each. `lift` and `combine` become part
of the loops (the code generation of the Reactive Aggregator [reactive §5.3]). Whatever a user's
function raises ends a loop; its caller then starts over in the interpreter.

Each loop is compiled for one set of types, since that takes its time: arrays that may be missing are
always there, and all arrays that are only read are read-only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import njit, types
from numba.extending import intrinsic

from muntin.aggregates.compiling.arithmetic_kernels import is_tuple
from muntin.aggregates.compiling.refusal_kernels import COMPILER_ERRORS, reason
from muntin.aggregates.compiling.rewriting_kernels import inner_jit
from muntin.aggregates.compiling.signature_kernels import KINDS, NAMES, Typed, partial_kind
from muntin.aggregates.partials.cells import Form

Loop = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The compiled loops of one aggregate over inputs of known kinds."""

    form: Form
    """Of the partial aggregates."""
    lift_runs: Loop
    lift_scatter: Loop
    lift_each: Loop
    fold_items: Loop
    reduce_rows: Loop
    invert_rows: Loop | None
    lower_rows: Loop | None
    result: str
    """NumPy's name of the type of `lower_rows`; without it, why `lower` is not compiled."""


# --- rows of columns: of tuples of arrays ---------------------------------------------------------


def _get_row(typing_context: Any, columns: Any, i: Any) -> Any:
    """Row i as a tuple."""
    kinds = tuple(columns)
    row = types.Tuple(tuple(kind.dtype for kind in kinds))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = []
        for k, kind in enumerate(kinds):
            item = context.get_function(operator.getitem, kind.dtype(kind, types.intp))
            parts.append(item(builder, (builder.extract_value(args[0], k), args[1])))
        return context.make_tuple(builder, row, parts)

    return row(columns, types.intp), generate


def _put_row(typing_context: Any, columns: Any, i: Any, row: Any) -> Any:
    """Write a tuple into row i."""
    kinds = tuple(columns)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for k, kind in enumerate(kinds):
            set_item = context.get_function(operator.setitem, types.none(kind, types.intp, kind.dtype))
            set_item(builder, (builder.extract_value(args[0], k), args[1], builder.extract_value(args[2], k)))
        return context.get_dummy_value()

    return types.none(columns, types.intp, row), generate


_get: Any = intrinsic(_get_row)
_put: Any = intrinsic(_put_row)


def _cast(kind: Any) -> Any:
    """What a function returned, as a partial aggregate of this type."""

    @intrinsic
    def cast(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.cast(builder, args[0], signature.args[0], kind)

        return kind(value), generate

    return cast


# --- the loops ----------------------------------------------------------------------------------


def build(functions: Any, kinds: tuple[str, ...]) -> Kernels | str:
    """The loops around the functions of an aggregate over inputs of these kinds, or why there are none."""
    try:
        return _build(functions, kinds)
    except COMPILER_ERRORS as error:
        return reason(error)


def _build(functions: Any, kinds: tuple[str, ...]) -> Kernels:
    lift, combine = Typed("lift", functions.lift, len(kinds)), Typed("combine", functions.combine, 2)
    invert = None if functions.invert is None else Typed("invert", functions.invert, 2)
    steps = [combine] if invert is None else [combine, invert]
    kind = partial_kind(lift, tuple(KINDS[name] for name in kinds), steps)
    scalar = not is_tuple(kind)
    cast = _cast(kind)
    load = inner_jit(_load_number if scalar else _load_row)
    store = inner_jit(_store_number if scalar else _store_row)
    lifted = _lifted(lift.call, cast)
    joined = _joined(combine.call, cast)
    lower_rows, result = _lower(functions, kind, load)
    return Kernels(
        Form(scalar, tuple(NAMES[part] for part in ((kind,) if scalar else kind))),
        *_lifting(lifted, joined, load, store),
        *_reducing(joined, load, store),
        None if invert is None else _inverting(_joined(invert.call, cast), load, store),
        lower_rows,
        result,
    )


def _load_number(columns: Any, i: Any) -> Any:
    return columns[0][i]


def _load_row(columns: Any, i: Any) -> Any:
    return _get(columns, i)


def _store_number(columns: Any, i: Any, p: Any) -> None:
    columns[0][i] = p


def _store_row(columns: Any, i: Any, p: Any) -> None:
    _put(columns, i, p)


def _lifted(lift: Any, cast: Any) -> Any:
    return inner_jit(lambda values, i: cast(lift(*_get(values, i))))


def _joined(combine: Any, cast: Any) -> Any:
    return inner_jit(lambda p, q: cast(combine(p, q)))


def _lifting(lift: Any, combine: Any, load: Any, store: Any) -> tuple[Loop, Loop, Loop]:
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

    return lift_runs, lift_scatter, lift_each


def _reducing(combine: Any, load: Any, store: Any) -> tuple[Loop, Loop]:
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
        """The fold of a range of rows, for each output row; rows that count 0 hold nothing."""
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

    return fold_items, reduce_rows


def _inverting(invert: Any, load: Any, store: Any) -> Loop:
    @njit(nogil=True)
    def invert_rows(whole: Any, part: Any, index: Any, columns: Any) -> None:
        """What remains of the whole without the part, at these rows."""
        for j in index:
            store(columns, j, invert(load(whole, j), load(part, j)))

    found: Loop = invert_rows
    return found


def _lower(functions: Any, kind: Any, load: Any) -> tuple[Loop | None, str]:
    if functions.lower is None:
        return None, ""
    try:
        lower = Typed("lower", functions.lower, 1)
        result, _ = lower.returns(kind)
    except COMPILER_ERRORS as error:
        return None, reason(error)
    found = result.type if isinstance(result, types.Optional) else result
    if found not in NAMES:
        return None, f"lower returns {result}, not a number"
    call = lower.call

    @njit(nogil=True)
    def lower_rows(columns: Any, index: Any, out: Any, ok: Any) -> None:
        """The results at these rows; not ok where they are None."""
        for j in index:
            value = call(load(columns, j))
            if value is None:
                ok[j] = False
            else:
                out[j] = value

    return lower_rows, NAMES[found]
