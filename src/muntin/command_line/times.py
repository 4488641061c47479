"""The time column of a file: texts and integers become timestamps, and a bad one is named with its line."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from muntin.connectors.types import kind_of
from muntin.errors import DataError, value_text
from muntin.timeline import epoch_unit
from muntin.timeline.text_times import read_times, text_advice, unread_rows

__all__ = ["BAD", "TimeReader"]

BAD = 'repair it, write bad = "skip" under [stream], or give a file for bad tuples: --bad bad.jsonl'
"""What to do about a bad tuple."""


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Reads the times of one column.

    `kind` is what the lengths of the query need: "timestamp", "integer" or, where they do not tell, "".
    With `strict` a text that is no time is an error, otherwise a null, which is a bad tuple.
    """

    column: str
    kind: str
    form: str | None = None
    unit: str | None = None
    strict: bool = True

    def read(self, batch: pa.RecordBatch, where: str, line: int) -> pa.RecordBatch:
        """The batch with a time column that the engine takes; its first row is in this line of `where`."""
        at = batch.schema.get_field_index(self.column)
        if at < 0:
            return batch
        times = self._times(batch.column(at), where, line)
        return batch.set_column(at, self.column, times)

    def _times(self, given: pa.Array, where: str, line: int) -> pa.Array:
        kind = kind_of(given.type)
        if kind == "text" and self.form is None and (self.kind == "integer" or self.unit is not None):
            given, kind = self._integers(given, where, line), "integer"
        if kind == "integer" and self.kind != "integer":
            return self._since_1970(given, where)
        if kind == "date":
            return given.cast(pa.timestamp("s"))
        if kind != "text":
            return given
        times = read_times(given, self.form)
        unread = unread_rows(given, times)
        if unread and len(unread) == len(given) - given.null_count and self.form is None:
            self._since_1970(given, where)
        if unread and self.strict:
            raise self._unreadable(given, unread[0], where, line)
        return times

    def _integers(self, texts: pa.Array, where: str, line: int) -> pa.Array:
        try:
            return texts.cast(pa.int64())
        except pa.ArrowInvalid:
            numbers = pc.match_substring_regex(texts, r"^\s*[+-]?\d{1,18}\s*$")
            row = pc.index(pc.fill_null(numbers, True), False).as_py()
            if self.strict:
                raise DataError(
                    f'{where}, line {line + row}: the time column "{self.column}" must hold integers: '
                    f"got {value_text(texts[row].as_py(), 80)}; {self._cure_of_integers()}"
                ) from None
            return pc.if_else(numbers, texts, None).cast(pa.int64())

    def _cure_of_integers(self) -> str:
        if self.unit is not None:
            return f"{BAD}; or leave --time-unit out, if it holds times"
        return f'{BAD}; or give the windows lengths like "10 seconds", if it holds times'

    def _since_1970(self, numbers: pa.Array, where: str) -> pa.Array:
        """Integers as timestamps, in the unit that was given."""
        if kind_of(numbers.type) == "text":
            try:
                numbers = numbers.cast(pa.int64())
            except pa.ArrowInvalid:
                return numbers
        if self.unit is not None:
            return numbers.cast(pa.int64()).cast(pa.timestamp(self.unit))
        if self.kind != "timestamp":
            return numbers
        first = next((number for number in numbers.to_pylist() if number is not None), 0)
        guess = epoch_unit(first) or "s"
        raise DataError(
            f'{where}: the time column "{self.column}" must hold times, since the query has durations: '
            f"got {first}; if it counts since 1970, give its unit: --time-unit {guess}"
        )

    def _unreadable(self, texts: pa.Array, row: int, where: str, line: int) -> DataError:
        shown = value_text(texts[row].as_py(), 80)
        rule = "in ISO format" if self.form is None else f'in the format "{self.form}"'
        _, code = text_advice(texts)
        form = code.partition('format="')[2].partition('"')[0]
        cure = BAD
        if form and form not in ("...", self.form):
            cure = f'give the format: --time-format "{form}"'
        return DataError(
            f'{where}, line {line + row}: the time column "{self.column}" must hold times {rule}: '
            f"got {shown}; {cure}"
        )
