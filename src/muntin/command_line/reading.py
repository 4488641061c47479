"""Files and the standard input as a sequence of batches, in bounded memory."""

from __future__ import annotations

import gzip
import json
import sys
import time as clocks
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from muntin.command_line.inputs import STDIN, Source
from muntin.command_line.settings import InputSettings
from muntin.command_line.times import TimeReader
from muntin.errors import DataError, value_text

__all__ = ["Portion", "Reader"]

ROWS = 65_536
"""The most rows of a portion."""
BLOCK = 4 << 20
"""The bytes of a CSV file that become one portion; the first ones decide the types of its columns."""
PATIENCE = 0.2
"""The seconds to wait for more lines of a file that is followed."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Some tuples of a source, or a watermark among them."""

    tuples: pa.RecordBatch | list[dict[str, Any]]
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

    def portions(self, source: Source, skip: int = 0) -> Iterator[Portion]:
        """The tuples of a source after its first `skip` rows."""
        read = {"csv": self._csv, "jsonl": self._json_lines, "parquet": self._parquet, "arrow": self._arrow}
        try:
            yield from read[source.form](source, skip)
        except pa.ArrowException as error:
            raise DataError(f"cannot read {source}: {error}") from error
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read {source}: {getattr(error, 'strerror', None) or error}") from error

    def _batches(
        self, source: Source, batches: Iterator[pa.RecordBatch], skip: int, header: int
    ) -> Iterator[Portion]:
        rows = 0
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                first, rows = rows, rows + part.num_rows
                if rows > skip:
                    part = part.slice(max(0, skip - first))
                    line = rows - part.num_rows + header + 1
                    yield Portion(self.times.read(part, str(source), line), rows)

    def _csv(self, source: Source, skip: int) -> Iterator[Portion]:
        if self.follow:
            yield from self._csv_lines(source, skip)
            return
        types = {self.times.column: pa.string()} | self.settings.schema
        with _opened(source) as stream:
            reader = csv.open_csv(
                stream,
                csv.ReadOptions(block_size=BLOCK, use_threads=False),
                csv.ParseOptions(delimiter=_delimiter(source, self.settings)),
                csv.ConvertOptions(column_types=types),
            )
            try:
                yield from self._batches(source, iter(reader), skip, header=1)
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"cannot read {source}: {error}; the first {BLOCK >> 20} MB decide the types of columns: "
                    "give the type with --type column=float64, or under [input.types]"
                ) from error

    def _csv_lines(self, source: Source, skip: int) -> Iterator[Portion]:
        """A CSV file that is followed: lines as they come, in the types of the first ones."""
        options = csv.ParseOptions(delimiter=_delimiter(source, self.settings))
        types = {self.times.column: pa.string()} | self.settings.schema
        header, rows = b"", 0
        for lines in self._lines(source):
            if not header and lines:
                header, *lines = lines
            if not lines:
                yield Portion([], rows)
                continue
            table = csv.read_csv(
                pa.py_buffer(header + b"".join(lines)),
                parse_options=options,
                convert_options=csv.ConvertOptions(column_types=types),
            )
            types |= {f.name: f.type for f in table.schema if not pa.types.is_null(f.type)}
            types[self.times.column] = pa.string()
            for portion in self._batches(source, iter(table.to_batches()), max(0, skip - rows), 1 + rows):
                yield Portion(portion.tuples, rows + portion.rows)
            rows += table.num_rows

    def _parquet(self, source: Source, skip: int) -> Iterator[Portion]:
        with _opened(source, seekable=True) as stream:
            file = parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            columns = None if self.reads is None else [name for name in names if name in self.reads]
            yield from self._batches(source, file.iter_batches(ROWS, columns=columns or None), skip, header=0)

    def _arrow(self, source: Source, skip: int) -> Iterator[Portion]:
        """A file of Arrow, or a stream; a file in gzip's format or from the standard input is read whole."""
        whole = source.compressed or source.path == STDIN
        with _opened(source, seekable=True) if whole else pa.memory_map(source.path) as stream:
            try:
                file = pa.ipc.open_file(stream)
            except pa.ArrowInvalid:
                stream.seek(0)
                yield from self._batches(source, iter(pa.ipc.open_stream(stream)), skip, header=0)
            else:
                batches = (file.get_batch(i) for i in range(file.num_record_batches))
                yield from self._batches(source, batches, skip, header=0)

    def _json_lines(self, source: Source, skip: int) -> Iterator[Portion]:
        records: list[dict[str, Any]] = []
        line = 0
        for lines in self._lines(source):
            for text in lines:
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
            if self.follow or source.path == STDIN:  # whoever waits for results should not wait for more
                yield self._portion(records, source, line)
                records = []
        if records:
            yield self._portion(records, source, line)

    def _portion(self, records: list[dict[str, Any]], source: Source, line: int) -> Portion:
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

    def _lines(self, source: Source) -> Iterator[list[bytes]]:
        """Whole lines, some at a time; a source that is followed never ends."""
        with _opened(source) as stream:
            rest = b""
            while True:
                chunk = stream.read1(1 << 20) if hasattr(stream, "read1") else stream.read(1 << 20)
                if not chunk:
                    if not self.follow or source.path == STDIN:
                        break
                    clocks.sleep(PATIENCE)
                    yield []
                    continue
                *whole, rest = (rest + chunk).split(b"\n")
                if whole:
                    yield [line + b"\n" for line in whole]
            if rest.strip():
                yield [rest]


def _record(text: bytes, source: Source, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = value_text(text.decode("utf-8", "replace").strip(), 80)
        raise DataError(f"{source}, line {line}: must be a JSON object: got {shown}; {error}") from None
    if not isinstance(record, dict):
        raise DataError(f"{source}, line {line}: must be a JSON object: got {value_text(record, 80)}")
    return record


def _delimiter(source: Source, settings: InputSettings) -> str:
    tabs = source.path.removesuffix(".gz").endswith(".tsv") and settings.delimiter == ","
    return "\t" if tabs else settings.delimiter


@contextmanager
def _opened(source: Source, seekable: bool = False) -> Iterator[Any]:
    if source.path == STDIN:
        stream = sys.stdin.buffer
        yield pa.BufferReader(stream.read()) if seekable else stream
    elif source.compressed:
        with gzip.open(source.path) as stream:
            yield pa.BufferReader(stream.read()) if seekable else stream
    else:
        with Path(source.path).open("rb") as stream:
            yield stream
