"""Arriving tuples: times are read, bad tuples are detected and treated by policy."""

from __future__ import annotations

import logging
import time as clocks
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError, RowError, value_text
from muntin.query import MAX_AHEAD, QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.side_outputs import with_column, with_texts
from muntin.timeline import INF, LIMIT, NEG_INF, Micros, TimeColumn, TimeExtent, format_instant, format_span
from muntin.timeline.extent_kernels import extent as extent_of

if TYPE_CHECKING:
    from muntin.slicing.state import Header

LOG = logging.getLogger("muntin")
SAMPLE = 3
_WITHIN = "must lie within +-2**62 (in units of its own)"

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Times = tuple[npt.NDArray[np.int64], TimeExtent | None]
"""The times of tuples, all of them good, and their extent, if it is known."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that its column cannot hold: the batch has a null there, and the tuple is bad."""

    row: int
    column: str
    value: object
    rule: str
    cure: str = ""
    is_in_batch: bool = True
    """Whether the tuple has the value in this column, so that the bad output shows it there."""

    @classmethod
    def absent(cls, row: int, column: str, field: str) -> Misfit:
        """A record without this column, but with a field that has almost its name."""
        rule = f'is missing from a record that has a new field "{field}" instead, which looks misspelt'
        cure = f'rename the field, or declare both "{column}" and "{field}" in schema= if it is right'
        return cls(row, column, None, rule, cure, is_in_batch=False)

    @property
    def reason(self) -> str:
        """What is wrong, in words."""
        if not self.is_in_batch:
            return f'the column "{self.column}" {self.rule}'
        return _rule(self.column, self.rule) + value_text(self.value, 80)

    @property
    def text(self) -> str:
        """The value as the bad output shows it."""
        try:
            return str(self.value)
        except Exception:  # noqa: BLE001  # of the user's class, or of an integer with too many digits
            return value_text(self.value)


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows of a batch that are bad, with a reason for each; `cure` is the same for all."""

    rows: Rows
    reasons: pa.Array
    cure: str = ""


class BadTupleError(RowError):
    """A bad tuple where the policy is "fail"; `row` is its place in the batch."""

    def __init__(self, reason: str, row: int, shown: str) -> None:
        super().__init__(reason, row, f", {shown}")
        self.without_row = f"{reason} in {shown}"


class Arrivals:
    """Separates bad tuples, which do not fit their types or have no place in time, from the others."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.hidden: tuple[str, ...] = (ARRIVAL,)
        """Columns of the engine, which no message and no routed tuple has."""
        self.look: Callable[[npt.NDArray[np.int64]], TimeExtent] = extent_of
        """Finds the earliest and the latest of many times."""
        self.clock: Callable[[], float] = clocks.time
        """Seconds since 1970."""
        self.max_ahead: int | None = None
        self.latest_allowed = INF
        """Times up to this one are not too far ahead of the clock, as it was last read."""

    def set_max_ahead(self, spec: QuerySpec, follows: bool, time: TimeColumn) -> None:
        """Set how far ahead of the clock a tuple may be; `follows`: the watermark follows the data."""
        default = MAX_AHEAD if follows and not time.is_integer else None
        self.max_ahead = default if spec.max_ahead is None else spec.max_ahead
        self.latest_allowed = INF if self.max_ahead is None else NEG_INF

    def is_too_far_ahead(self, time: int) -> bool:
        """Whether a time is too far ahead of the clock; the clock is read only beyond `latest_allowed`."""
        if time > self.latest_allowed:
            assert self.max_ahead is not None
            self.latest_allowed = min(int(self.clock() * 1_000_000) + self.max_ahead, INF)
        return time > self.latest_allowed

    def timeless(self, data: pa.RecordBatch, time: str, misfits: Sequence[Misfit], header: Header) -> bool:
        """Whether the first tuples have no time at all, so that not even its type is known; counts them."""
        if time not in data.schema.names or not pa.types.is_null(data.column(time).type) or not len(data):
            return False
        self._set_aside(data, misfits, [_bad_rows(data, time, np.arange(len(data)), _WITHIN)], header)
        return True

    def good(
        self, data: pa.RecordBatch, binding: Binding, misfits: Sequence[Misfit], header: Header
    ) -> tuple[pa.RecordBatch, tuple[npt.NDArray[np.int64], TimeExtent | None]]:
        """The usable tuples, and with their times the extent of these, if it is known.

        With the policy "fail" an error before anything changes.
        """
        column = data.column(binding.spec.time)
        time, valid, extent = binding.time.to_internal(column, strict=False, look=self.look)
        flaws: list[BadRows] = []
        if valid is not None and not valid.all():
            flaws.append(_bad_rows(data, binding.spec.time, np.flatnonzero(~valid), binding.time.rule))
        for name in binding.measures:
            fine = _measurable(data.column(name))
            if not fine.all():
                flaws.append(_bad_rows(data, name, np.flatnonzero(~fine), _WITHIN))
        if self.max_ahead is not None and len(time):
            extent = self.look(time) if extent is None else extent
            if self.is_too_far_ahead(extent[1]):
                flaws.append(
                    self._future(data, binding.spec.time, np.flatnonzero(time > self.latest_allowed))
                )
        if not flaws and not misfits:
            return data, (time, extent)
        wrong = self._set_aside(data, misfits, flaws, header)
        right = np.setdiff1d(np.arange(len(data)), wrong, assume_unique=True)
        return data.take(pa.array(right)), (time[right], None)

    def _future(self, data: pa.RecordBatch, column: str, rows: Rows) -> BadRows:
        """The rows that are too far ahead of the clock, with the rule and its cure."""
        assert self.max_ahead is not None
        now = format_instant(Micros(self.latest_allowed - self.max_ahead))
        rule = f"must not be more than {format_span(self.max_ahead)} ahead of the clock ({now})"
        return _bad_rows(data, column, rows, rule, "give .on() a longer max_ahead= if it is right")

    def without(
        self,
        data: pa.RecordBatch,
        times: tuple[Rows, TimeExtent | None],
        flaws: dict[int, str],
        header: Header,
    ) -> tuple[pa.RecordBatch, tuple[Rows, TimeExtent | None]]:
        """The tuples and times without the bad rows, which `flaws` maps to their reasons."""
        rows, reasons = np.array(sorted(flaws)), pa.array([flaws[row] for row in sorted(flaws)], pa.string())
        wrong = self._set_aside(data, (), [BadRows(rows, reasons)], header)
        right = np.setdiff1d(np.arange(len(data)), wrong, assume_unique=True)
        return data.take(pa.array(right)), (times[0][right], None)

    def _set_aside(
        self, data: pa.RecordBatch, misfits: Sequence[Misfit], flaws: list[BadRows], header: Header
    ) -> Rows:
        """Treat these tuples as the policy says; returns their rows. The first reason found counts."""
        misfit_rows = np.array([misfit.row for misfit in misfits], dtype=np.int64)
        misfit_reasons = pa.array([misfit.reason for misfit in misfits], pa.string())
        rows, first = np.unique(
            np.concatenate([misfit_rows, *(flaw.rows for flaw in flaws)]), return_index=True
        )
        reasons = pa.concat_arrays([misfit_reasons, *(flaw.reasons for flaw in flaws)]).take(pa.array(first))
        texts = [(int(np.searchsorted(rows, m.row)), m.column, m.text) for m in misfits if m.is_in_batch]
        visible = [name for name in data.schema.names if name not in self.hidden]
        wrong = with_texts(pa.Table.from_batches([data.select(visible).take(pa.array(rows))]), texts)
        shown = _shown(wrong.slice(0, SAMPLE))
        if self.policy == "fail":
            cures = [m.cure for m in misfits] + [flaw.cure for flaw in flaws for _ in flaw.rows]
            cure = cures[first[0]]
            others = f" ({len(rows)} of {len(data)} tuples are bad)" if len(data) > 1 else ""
            raise BadTupleError(
                f"{reasons[0]}",
                int(rows[0]),
                f"{shown[0]}{others}; "
                f'repair it, {f"{cure}, " if cure else ""}or choose bad="skip" or bad="route"',
            )
        sample = zip(reasons.to_pylist()[:SAMPLE], shown, strict=True)
        LOG.warning("%d bad tuples: %s", len(rows), "; ".join(f"{why} in {tuple_}" for why, tuple_ in sample))
        header.metrics.bad += len(rows)
        if self.policy == "route":
            header.bad_output += (with_column(wrong, "reason", reasons),)
        return rows


def arrival_numbers(data: pa.RecordBatch, header: Header) -> npt.NDArray[np.int64] | int:
    """The numbers of tuples in order of arrival; that of the first where they follow one by one."""
    counted = data.schema.get_field_index(ARRIVAL) < 0
    return header.arrivals if counted else data.column(ARRIVAL).to_numpy()


def out_of_order(time: Rows, newest: int, column: TimeColumn) -> DataError:
    """The error for times before earlier ones of the batch, or before the newest time."""
    previous = np.concatenate([[newest], time[:-1]])
    wrong = int(np.flatnonzero(time < previous)[0])
    return RowError(
        "the stream was declared in order, but a tuple comes after a newer one: "
        f"time {column.text(time[wrong])} after {column.text(previous[wrong])}",
        wrong,
        "; sort the input, or leave in_order=True out and use watermarks",
    )


def _shown(tuples: pa.Table) -> list[dict[str, object]]:
    """The tuples as Python values; times that Python cannot hold as the integers that they are."""
    try:
        rows: list[dict[str, object]] = tuples.to_pylist()
    except (OverflowError, ValueError):
        times = [i for i, kind in enumerate(tuples.schema.types) if pa.types.is_timestamp(kind)]
        for i in times:
            tuples = tuples.set_column(i, tuples.column_names[i], tuples.column(i).cast(pa.int64()))
        rows = tuples.to_pylist()
    return rows


def _rule(column: str, rule: str) -> str:
    return f'the column "{column}" {rule}: got '


def _bad_rows(data: pa.RecordBatch, column: str, rows: Rows, rule: str, cure: str = "") -> BadRows:
    """Rows without a usable value in the column of the time or of a measure, with the reasons."""
    values = data.column(column).take(pa.array(rows))
    absent = pc.is_null(values)
    needs = _rule(column, "needs a value in every tuple")
    within = _rule(column, rule)
    rules = pc.if_else(absent, needs, within)
    texts = values.cast(pa.string()).fill_null("null")
    return BadRows(rows, pc.binary_join_element_wise(rules, texts, ""), cure)


def _measurable(column: pa.Array) -> Mask:
    """Which values are positions on a measure: numbers below 2**62, no null, no NaN."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.bool_)
    there: Mask = pc.is_valid(column).to_numpy(zero_copy_only=False).copy()
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
    there &= (values < LIMIT) & (values > -LIMIT)
    return there
