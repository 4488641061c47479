"""Tuples, columns and contexts as arguments of kernels, and the rows that kernels return as `Cuts`."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.deferred_import import DeferredImport
from muntin.errors import DataError
from muntin.expressions import Expr, as_expr
from muntin.timeline import LIMIT
from muntin.windows.base import Ints, Window
from muntin.windows.tuple_driven import Contexts, Cuts, Tuples

if TYPE_CHECKING:
    from muntin.windows import cut_kernels
else:
    cut_kernels = DeferredImport("muntin.windows.cut_kernels")

Numbers: TypeAlias = npt.NDArray[Any]
"""An int64 or a float64 array."""

Flags: TypeAlias = npt.NDArray[np.bool_]

_NO_PAIRS = np.zeros((2, 0), np.int64)


def needs(window: Window, problem: str) -> DataError:
    """The error for a column that a window cannot read."""
    return DataError(f"{window.describe()} needs {problem}")


def owned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous, writable array: one type for compiled code, whatever the array was sliced from."""
    return np.require(array, requirements=["C", "W"])


def condition(tuples: Tuples, expr: Expr, window: Window) -> Flags:
    """Which tuples satisfy a predicate; null counts as false."""
    column = tuples.columns[expr]
    if isinstance(column, np.ndarray):
        return owned(column.astype(np.bool_, copy=False))
    column = _one_array(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    if not pa.types.is_boolean(column.type):
        raise DataError(
            f'{window.describe()} needs a condition: "{expr}" is {column.type}; compare it with something'
        )
    return owned(column.fill_null(False).to_numpy(zero_copy_only=False))


def number_values(tuples: Tuples, expr: Expr, window: Window, step: Any = 1) -> tuple[Numbers, Flags, Any]:
    """The values of a number column, which of them are not null, and `step` to match.

    Integer columns give int64 within +-2**62, so that differences of two stay inside
    int64; others float64. A column of decimals gives int64 in units of its last
    digit, with `step` scaled to it: 0.1 then means a tenth.
    """
    column = tuples.columns[expr]
    if isinstance(column, np.ndarray):
        column = pa.array(column)
    column = _one_array(column)
    kind = column.type
    valid = _valid(column)
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64), valid, step
    if pa.types.is_decimal(kind):
        values, step = _decimals(column, step)
    elif pa.types.is_floating(kind):
        values, step = column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False), float(step)
    elif pa.types.is_integer(kind):
        column = column.fill_null(0)
        # What a cast of a large uint64 wraps to is negative, and refused below all the same.
        values = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        if pa.types.is_uint64(kind) and (values < 0).any():
            values = np.full(len(values), LIMIT)
    else:
        raise needs(window, f'a column of numbers: "{expr}" is {kind}; cast it')
    if values.dtype == np.int64 and len(values) and (values.max() >= LIMIT or values.min() <= -LIMIT):
        raise DataError(
            f'{window.describe()} needs values below 2**62: "{expr}" ({kind}) has larger ones; cast it'
        )
    return owned(values), valid, step


def measure_values(tuples: Tuples, window: Window) -> Numbers:
    """The values of a window's measure: int64 or float64, in every tuple, below 2**62."""
    assert window.measure is not None
    expr = as_expr(window.measure)
    column = tuples.columns[expr]
    if not isinstance(column, np.ndarray) and pa.types.is_decimal(column.type):
        raise DataError(
            f'{window.describe()} needs an integer or a float measure: "{expr}" is {column.type}; cast it'
        )
    values, valid, _ = number_values(tuples, expr, window)
    # NaN is neither: a comparison with it is false.
    if valid.all() and (not len(values) or (values.max() < LIMIT and values.min() > -LIMIT)):
        return values
    row = int(np.flatnonzero(~valid | ~(np.abs(values) < LIMIT))[0])
    value = values[row] if valid[row] else "null"
    raise needs(window, f'a number below 2**62 in every tuple: "{expr}" has {value}')


def python_values(column: pa.Array | npt.NDArray[Any]) -> list[Any]:
    """The values for the interpreter."""
    values: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return values


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _valid(column: pa.Array) -> Flags:
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    return owned(column.is_valid().to_numpy(zero_copy_only=False))


def _decimals(column: pa.Array, step: Any) -> tuple[Numbers, int]:
    """Decimals in units of the last digit; too many digits become the largest number, which is refused."""
    exact = step if isinstance(step, decimal.Decimal) else decimal.Decimal(str(step))
    digits = max(column.type.scale, -int(exact.as_tuple().exponent), 0)
    too_many = np.full(len(column), LIMIT)
    try:
        wide = column.fill_null(0).cast(pa.decimal128(38, digits))
    except pa.ArrowInvalid:
        return too_many, 1
    words = np.frombuffer(wide.buffers()[1], np.int64, count=2 * (wide.offset + len(wide)))
    words = words.reshape(-1, 2)[wide.offset :]
    fits = (words[:, 1] == words[:, 0] >> 63).all()  # the upper half only repeats the sign
    return words[:, 0] if fits else too_many, int(exact.scaleb(digits))


def arrays(tuples: Tuples) -> tuple[Ints, Ints, Ints]:
    """Offsets, times and ranks, with which the arguments of a kernel begin."""
    return owned(tuples.offsets), owned(tuples.time), owned(tuples.rank)


def matrix(contexts: Contexts, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Contexts as a matrix of numbers, one row each, that shares their memory.

    A context is laid out before the first tuple shows the type of a column, so the
    8 bytes of a field hold either an int64 or a float64.
    """
    if not contexts.flags.c_contiguous:
        raise ValueError("contexts must be contiguous, to be advanced in place")
    rows: npt.NDArray[Any] = contexts.view(dtype).reshape(len(contexts), contexts.itemsize // 8)
    return rows


def cuts_of_rows(rows: Ints, marks: Numbers | None = None, opened: Ints = _NO_PAIRS) -> Cuts:
    """Cuts from rows (segment, begin, end, start, stop, complete_at), marks (low, high), and open begins."""
    # Copies of the columns in use: the matrix behind them has room for more.
    segment, begin, end, start, stop, complete_at = rows.copy()
    low, high = (None, None) if marks is None else marks.copy()
    edge_segment, edge_rank = cut_kernels.merged_edges(segment, begin, end, opened).copy()
    return Cuts(segment, begin, end, start, stop, complete_at, low, high, edge_segment, edge_rank)
