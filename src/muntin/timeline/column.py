"""The time column: its type outside, int64 inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from muntin.deferred_import import DeferredImport
from muntin.errors import DataError, QueryError, RowError, value_text
from muntin.timeline.spans import INF, LIMIT, Micros, format_instant, format_span, instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from muntin.timeline import extent_kernels
else:
    extent_kernels = DeferredImport("muntin.timeline.extent_kernels")

TimeExtent: TypeAlias = tuple[int, int, bool]
"""Smallest and largest of some times, and whether they never go back."""

# Column units per microsecond, as (multiply, divide) from the column to microseconds.
_TO_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_INT64 = np.dtype(np.int64)
_YEAR = 366 * 86_400_000_000
_LONG = 50 * _YEAR
"""The longest window over nanoseconds, whose range of 292 years must also cover the tuples."""


@dataclass(frozen=True)
class TimeColumn:
    """How the times of one column become int64 inside, and edges become values of its type again.

    `spans` are the lengths that the queries hold. They decide the type of the
    edges: the column's own, or microseconds where a length is no multiple of the
    column's unit (`sliding(every="250 ms")` over a column of seconds). Nanoseconds
    end in 1677 and 2262; times must lie as far inside as windows may be long, so
    that their edges are still nanoseconds.

    >>> column = TimeColumn(pa.timestamp("ms"))
    >>> times, valid, _ = column.to_internal(pa.array([0, -1], pa.timestamp("ms")))
    >>> times.tolist(), valid
    ([0, -1000], None)
    >>> column.to_edges(times, ceil=False).type
    TimestampType(timestamp[ms])
    """

    type: pa.DataType
    spans: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not (pa.types.is_timestamp(self.type) or pa.types.is_integer(self.type)):
            raise DataError(
                f"the time column must be a timestamp or an integer: got {self.type}; {_cast(self.type)}"
            )
        _check_zone(self.type)
        for length in self.spans:
            if length and isinstance(length, Micros) == self.is_integer:
                self._refuse_span(length)

    def _refuse_span(self, length: int) -> None:
        if self.is_integer:
            raise QueryError(
                f"lengths must be integers on the integer time column ({self.type}): "
                f'got "{format_span(length)}"; count in units of the column, or make it a timestamp, if it '
                'counts seconds (s), ms, us or ns since 1970: pc.cast(column, pa.timestamp("s")) in Arrow, '
                'pd.to_datetime(column, unit="s") in pandas, f.timestamp_seconds(column) on Spark'
            )
        raise QueryError(
            f"lengths must be durations on the time column ({self.type}): got {length}; "
            f'did you mean "{length} seconds"?'
        )

    @cached_property
    def is_integer(self) -> bool:
        """Whether the column holds integers, whose unit is then the unit inside."""
        return bool(pa.types.is_integer(self.type))

    @cached_property
    def edge_type(self) -> pa.DataType:
        """The type of window edges in results."""
        if self.is_integer:
            return pa.int64()
        multiply, divide = _TO_MICROS[self.type.unit]
        too_long = divide > 1 and self._longest > _LONG
        if too_long or any(length % multiply for length in self.spans):
            return pa.timestamp("us", tz=self.type.tz)
        return self.type

    @property
    def _longest(self) -> int:
        """How far the edges of a window may lie from its tuples; calendar windows have no length."""
        return max((*self.spans, _YEAR))

    @cached_property
    def limit(self) -> int:
        """How far from 1970 a time may lie, inside."""
        nanoseconds = not self.is_integer and self.edge_type.unit == "ns"
        return INF // 1_000 - self._longest if nanoseconds else LIMIT

    @property
    def rule(self) -> str:
        """The same in words."""
        if self.limit == LIMIT:
            return "must lie within +-2**62 (microseconds, or units of its own)"
        ends = (str(format_instant(Micros(sign * self.limit))) for sign in (-1, 1))
        return f"must lie between {' and '.join(ends)}, or its windows have no edges in nanoseconds"

    def to_internal(
        self,
        array: pa.Array | pa.ChunkedArray,
        *,
        strict: bool = True,
        look: Callable[[NDArray[np.int64]], TimeExtent] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, TimeExtent | None]:
        """The times as int64, which of them are valid (None: all of them), and their extent, if it is known.

        Nanoseconds are floored. A null is invalid and 0. A time beyond the `limit`
        raises DataError, or is invalid as well when not `strict`. No copy is made
        of a column of microseconds or int64 without nulls, and of these the extent is
        known. `look` computes it, where the caller has a faster function.
        """
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
        if array.type == self.type:
            dtype, multiply, divide, bound = self._own_scale
        elif pa.types.is_null(array.type):
            return np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_), None
        else:
            self._check_kind(array.type)
            dtype, multiply, divide, bound = self._scale(array.type)
        raw, valid = _raw_values(array, dtype)
        extent = None
        if dtype is not _INT64:
            extent = (int(raw.min()), int(raw.max()), False) if len(raw) else None
        elif bound < INF and len(raw):
            extent = (look or extent_kernels.extent)(cast("NDArray[np.int64]", raw))
        if extent is not None and (extent[0] < -bound or extent[1] > bound):
            # Only the upper bound for unsigned values, where -bound is no value of the type.
            beyond = raw > bound if raw.dtype.kind == "u" else (raw > bound) | (raw < -bound)
            if strict:
                raise _out_of_range(array, int(np.flatnonzero(beyond)[0]), self.rule)
            valid = ~beyond if valid is None else valid & ~beyond
            raw, extent = np.where(beyond, raw.dtype.type(0), raw), None
        if dtype is _INT64 and multiply == divide:
            return cast("NDArray[np.int64]", raw), valid, extent
        return _scaled(raw, multiply, divide), valid, None

    def trusted(self, array: pa.Array) -> NDArray[np.int64]:
        """As `to_internal`, of a column in which all times are known to be good."""
        dtype, multiply, divide, _ = self._own_scale if array.type == self.type else self._scale(array.type)
        return _scaled(_raw_values(array, dtype)[0], multiply, divide)

    @cached_property
    def _own_scale(self) -> tuple[np.dtype[Any], int, int, int]:
        return self._scale(self.type)

    def _scale(self, kind: pa.DataType) -> tuple[np.dtype[Any], int, int, int]:
        """How numbers are stored, multiplied and divided for microseconds; how far from 0 they may lie."""
        if not self.is_integer:
            multiply, divide = _TO_MICROS[kind.unit]
            return _INT64, multiply, divide, self.limit * divide // multiply
        dtype = _INT64 if kind == pa.int64() else np.dtype(str(kind))
        return dtype, 1, 1, self.limit

    @property
    def edges_always_fit(self) -> bool:
        """Whether `to_edges` never fails: edges in nanoseconds may lie outside of their range."""
        return self.edge_unit is not None

    @property
    def edge_unit(self) -> int | None:
        """The unit of edges in that of times; None for nanoseconds."""
        multiply, divide = self._edge_scale
        return multiply if divide == 1 else None

    def to_edges(self, times: NDArray[np.int64], *, ceil: bool) -> pa.Array:
        """Edges in their type outside: starts rounded down, ends (`ceil`) up.

        Most edges are multiples of the unit. An end that follows a tuple ("last
        tuple + 1") is not, on a column coarser than microseconds: rounded up, the
        window still holds that tuple.
        """
        values = times
        multiply, divide = self._edge_scale
        if divide > 1:
            bound = INF // divide
            if len(times) and (int(times.max()) > bound or int(times.min()) < -bound):
                raise DataError(  # of a landmark or a fixed band, whose start the user chose
                    f"a window edge lies outside the range of {self.edge_type} (years 1677 to 2262); "
                    'cast the time column to timestamp("us")'
                )
            values = times * divide
        elif multiply > 1:
            values = -(-times // multiply) if ceil else times // multiply
        return pa.Array.from_buffers(
            self.edge_type, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
        )

    @cached_property
    def _edge_scale(self) -> tuple[int, int]:
        return (1, 1) if self.is_integer else _TO_MICROS[self.edge_type.unit]

    def internal(self, value: object) -> int:
        """A watermark or another single time, as it is inside.

        On a timestamp column a datetime (UTC when it has no zone), a date, an ISO text, a
        NumPy or pandas time, an Arrow scalar, or the watermark of an operator, which is a
        number of microseconds marked as such; on an integer column an integer.
        """
        if type(value) is int and self.is_integer and -LIMIT <= value <= LIMIT:
            return value
        if type(value) is Micros and not self.is_integer and -LIMIT <= value <= LIMIT:
            return int(value)
        if isinstance(value, pa.Scalar):
            if not value.is_valid:
                raise DataError(f"a time must not be null: got {value_text(value)}; leave the call out")
            return int(self.to_internal(pa.repeat(value, 1))[0][0])
        try:
            time = instant(value)
        except QueryError as error:
            raise DataError(str(error)) from None
        if self.is_integer and isinstance(time, Micros):
            raise DataError(
                f"a time on the integer time column must be an integer: got {value_text(value)}; "
                "give it in units of the column"
            )
        if not self.is_integer and not isinstance(time, Micros):
            raise bare_number(time)
        return int(time)

    def text(self, time: int) -> str:
        """An internal time for messages: in ISO format, or the number of an integer column."""
        return str(format_instant(int(time) if self.is_integer else Micros(time)))

    def _check_kind(self, other: pa.DataType) -> None:
        """A batch may come in another unit or width, but not as another kind of time."""
        if other == self.type:
            return
        if self.is_integer != pa.types.is_integer(other):
            raise DataError(f"the time column must be of type {self.type} in every batch: got {other}")
        if not self.is_integer and (
            not pa.types.is_timestamp(other) or (self.type.tz is None) != (other.tz is None)
        ):
            raise DataError(
                f"the time column must be of type {self.type} in every batch: got {other}; "
                "cast it, so that all times have a zone or none has"
            )


def _cast(kind: pa.DataType) -> str:
    """How to make timestamps of a column of this type."""
    if pa.types.is_date(kind):
        return 'cast it: pc.cast(column, pa.timestamp("s")), or f.to_timestamp(column) on Spark'
    if pa.types.is_floating(kind):
        return (
            "if it counts seconds since 1970: pc.cast(pc.round(pc.multiply(column, 1e6)), pa.int64())"
            '.cast(pa.timestamp("us")), or f.timestamp_seconds(column) on Spark'
        )
    return "cast it: pc.cast or pc.strptime of Arrow, pd.to_datetime of pandas, f.to_timestamp on Spark"


def bare_number(value: int) -> DataError:
    """The error for an integer in place of a time, where the time column holds timestamps."""
    unit = epoch_unit(value)
    moment = f'np.datetime64({value}, "{unit}")' if unit else "a datetime, like dt.datetime(2024, 1, 31)"
    return DataError(
        f"a time on a timestamp column must be a datetime or an ISO text: got {value}, which has no unit; "
        f"write {moment}"
    )


def epoch_unit(value: int) -> str:
    """The unit in which a number counts since 1970, if it then lies in the years 1990 to 2100; else empty.

    >>> epoch_unit(1_700_000_000), epoch_unit(1_700_000_000_000), epoch_unit(5)
    ('s', 'ms', '')
    """
    scales = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
    return next((unit for unit, n in scales.items() if 631_152_000 <= abs(value) // n < 4_102_444_800), "")


def _raw_values(
    array: pa.Array, dtype: np.dtype[Any]
) -> tuple[NDArray[np.integer[Any]], NDArray[np.bool_] | None]:
    """The stored numbers without a copy; nulls as 0 in a copy, with the mask of valid ones."""
    data, size = array.buffers()[1], len(array)
    if not size or data is None:
        return np.zeros(size, dtype), None if not array.null_count else np.zeros(size, np.bool_)
    raw = np.frombuffer(data, dtype, size, array.offset * dtype.itemsize)
    if not array.null_count:
        return raw, None
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    # What lies under a null is arbitrary, and must not fail the range check.
    return np.where(valid, raw, dtype.type(0)), valid


def _scaled(raw: NDArray[np.integer[Any]], multiply: int, divide: int) -> NDArray[np.int64]:
    times = raw if raw.dtype is _INT64 else raw.astype(np.int64)
    if multiply > 1:
        times = times * multiply
    elif divide > 1:
        times = times // divide  # rounds towards minus infinity, also before the epoch
    return cast("NDArray[np.int64]", times)


def _out_of_range(array: pa.Array, row: int, rule: str) -> DataError:
    value = array.view(pa.int64())[row].as_py() if pa.types.is_timestamp(array.type) else array[row].as_py()
    return RowError(f"a time {rule}: got {value} ({array.type})", row, "; check the unit of the column")


def _check_zone(kind: pa.DataType) -> None:
    """Refuse an unknown zone: results have the zone of the column, and would be unreadable."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        try:
            pa.scalar(0, kind).as_py()
        except (KeyError, ValueError) as error:
            raise DataError(
                f'the zone of the time column must be known: got "{kind.tz}"; '
                f'cast the column, for example to pa.timestamp("{kind.unit}", "UTC")'
            ) from error
