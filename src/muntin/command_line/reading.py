"""Files and the standard input as a sequence of batches, in bounded memory."""

from __future__ import annotations

import json
import time as clocks
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, cast

import pyarrow as pa

from muntin.command_line.inputs import StandardInput
from muntin.command_line.settings import InputSettings
from muntin.command_line.times import TimeReader
from muntin.connectors.files import Tuples, Wanted, csv_batches, file_batches, readable, whole_lines
from muntin.connectors.input_files import InputFile
from muntin.errors import DataError, value_text

__all__ = ["Portion", "Reader"]

ROWS = 65_536
"""The most rows of a portion."""
CHUNK = 1 << 20
"""The most bytes of lines that are read at a time."""
PATIENCE = 0.2
"""The seconds to wait for more lines of a file that is followed."""
_TYPING = "--type amount=float64, or a line under [input.types]"
_NOTHING = pa.RecordBatch.from_pydict({})
"""Stands for the absence of new lines in a file that is followed."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Some tuples of a source, or a watermark among them."""

    tuples: Tuples
    rows: int
    """The rows of the source that end with this portion, those of watermarks included."""
    watermark: object = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads sources in the way of the settings."""

    settings: InputSettings
    times: TimeReader
    reads: frozenset[str] | None
    """The columns that the query reads; None: all."""
    follow: bool = False
    """Whether text files are read on as they grow; an empty portion comes while they do not."""

    def chunks(self, source: InputFile, skip: int = 0) -> Iterator[Portion]:
        """The tuples of a source after its first `skip` rows."""
        with readable(source, _TYPING):
            if source.form == "jsonl":
                yield from self._json_lines(source, skip)
            else:
                yield from self._batches(source, skip)

    def _batches(self, source: InputFile, skip: int) -> Iterator[Portion]:
        types = {self.times.column: pa.string()} | self.settings.schema
        wanted = Wanted(self.reads, types, self.settings.delimiter, _TYPING)
        read = self._csv_lines if source.form == "csv" and self.follow else file_batches
        header, rows = int(source.form == "csv"), 0
        for batch in cast("Iterator[pa.RecordBatch]", read(source, wanted)):
            if batch is _NOTHING:
                yield Portion([], rows)
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                first, rows = rows, rows + part.num_rows
                if rows > skip:
                    part = part.slice(max(0, skip - first))
                    line = rows - part.num_rows + header + 1
                    yield Portion(self._with_times(part, str(source), line), rows)

    def _with_times(
        self, part: pa.RecordBatch, where: str, line: int
    ) -> pa.RecordBatch | list[dict[str, Any]]:
        """The part with times in place of texts; as records where a text is no time, which is a bad tuple."""
        read, column = self.times.read(part, where, line), self.times.column
        if column not in part.schema.names or read[column].null_count == part[column].null_count:
            return read
        records: list[dict[str, Any]] = read.to_pylist()
        for record, text in zip(records, part[column].to_pylist(), strict=True):
            if record[column] is None:
                record[column] = text
        return records

    def _csv_lines(self, source: InputFile, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """A CSV file that is followed: lines as they come, in the types of the first ones."""
        header = b""
        for lines in self._lines(source):
            if not header:
                header, _, lines = lines.partition(b"\n")
            if not lines.strip():
                yield _NOTHING
                continue
            for batch in csv_batches(pa.BufferReader(header + b"\n" + lines), wanted.of(source)):
                known = {field.name: field.type for field in batch.schema if not pa.types.is_null(field.type)}
                wanted = wanted._replace(types={**wanted.types, **known})
                yield batch

    def _json_lines(self, source: InputFile, skip: int) -> Iterator[Portion]:
        records: list[dict[str, Any]] = []
        line = 0
        for lines in self._lines(source):
            for text in BytesIO(lines):
                line += 1
                if line <= skip or not text.strip():
                    continue
                record = _record(text, source, line)
                if record.keys() == {"watermark"}:
                    if records:
                        yield self._portion(records, source, line - 1)
                        records = []
                    yield Portion([], line, record["watermark"])
                    continue
                records.append(record)
                if len(records) >= ROWS:
                    yield self._portion(records, source, line)
                    records = []
            if self.follow or isinstance(source, StandardInput):  # results should not wait for more lines
                yield self._portion(records, source, line)
                records = []
        if records:
            yield self._portion(records, source, line)

    def _portion(self, records: list[dict[str, Any]], source: InputFile, line: int) -> Portion:
        """Records with times in place of texts; those that are none stay, and are bad tuples."""
        column = self.times.column
        values = [record.get(column) for record in records]
        kinds = set(map(type, values)) - {type(None)}
        if kinds == {int} and (self.times.kind == "timestamp" or self.times.unit is not None):
            batch = pa.RecordBatch.from_pydict({column: pa.array(values, pa.int64())})
        elif kinds == {str}:
            batch = pa.RecordBatch.from_pydict({column: pa.array(values, pa.string())})
        else:
            return Portion(records, line)
        read = self.times.read(batch, str(source), line - len(records) + 1).column(0)
        for record, value, text in zip(records, read.to_pylist(), values, strict=True):
            record[column] = text if value is None else value
        return Portion(records, line)

    def _lines(self, source: InputFile) -> Iterator[bytes]:
        """Whole lines, some at a time, and none while a file that is followed has no more."""
        follow = self.follow and not isinstance(source, StandardInput)
        with source.opened() as stream:
            yield from whole_lines(_chunks(stream, follow))


def _chunks(stream: Any, follow: bool) -> Iterator[bytes]:
    """Bytes as they come: `read1` does not wait until a pipe has as many as it may give."""
    while (chunk := stream.read1(CHUNK)) or follow:
        if not chunk:
            clocks.sleep(PATIENCE)
        yield chunk


def _record(text: bytes, source: InputFile, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = value_text(text.decode("utf-8", "replace").strip(), 80)
        cure = "; if it is CSV, give --input-format csv" if isinstance(source, StandardInput) else ""
        raise DataError(f"{source}, line {line}: must be a JSON object: got {shown}; {error}{cure}") from None
    if not isinstance(record, dict):
        raise DataError(f"{source}, line {line}: must be a JSON object: got {value_text(record, 80)}")
    return record
