"""Tuples from files, part by part: CSV, JSON Lines, Parquet and Arrow IPC, also compressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.connectors.input_files import InputFile
from muntin.errors import DataError
from muntin.file_formats import TEXTS, Format

BLOCK = 4 * 2**20
"""The number of bytes of text that are read at a time; the first ones decide the types of CSV columns."""
ROWS = 131_072
"""The number of rows of a Parquet file that are read at a time."""


class Wanted(NamedTuple):
    """What is read from a file, and how."""

    columns: frozenset[str] | None
    """The columns that a query reads; None: all."""
    types: Mapping[str, pa.DataType]
    """The types that the user gives to columns."""
    delimiter: str = ","
    """Of CSV files; those that end in .tsv have tabs where it is a comma."""
    typing: str = 'schema={"amount": "float64"}'
    """How the user gives a type, for error messages."""

    def among(self, names: list[str]) -> list[str] | None:
        """Those of a file; all of them where one is missing, since the error message lists them."""
        if self.columns is None or not self.columns <= set(names):
            return None
        return [name for name in names if name in self.columns]

    def of(self, file: InputFile) -> Wanted:
        """The same of one file, with its delimiter."""
        return self._replace(delimiter=Format.of(file.path).delimiter) if self.delimiter == "," else self


def file_batches(file: InputFile, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The tuples of a file."""
    with readable(file, wanted.typing), file.opened() as stream:
        yield from READERS[file.form](stream, wanted.of(file))


@contextmanager
def readable(file: InputFile, typing: str) -> Iterator[None]:
    """Name the file in errors of Arrow and of the system."""
    try:
        yield
    except pa.ArrowException as error:
        cure = f"; if a type is wrong, give the right one: {typing}" if file.form in TEXTS else ""
        raise DataError(f"cannot read {file}: {error}{cure}") from error
    except (OSError, UnicodeError) as error:
        compression, reason = Format.of(file.path).compression, getattr(error, "strerror", None)
        if reason is None and compression:
            reason = f"{error}; rename it if it is not in the format of {compression}"
        raise DataError(f"cannot read {file}: {reason or error}") from error


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line; the last one may not, and an empty block stays one."""
    rest = b""
    for block in blocks:
        whole, end, rest = (rest + block).rpartition(b"\n")
        if end or not block:
            yield whole + end
    if rest.strip():
        yield rest


def csv_batches(stream: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The tuples of a CSV text with a header."""
    from pyarrow import csv

    yield from csv.open_csv(
        stream,
        csv.ReadOptions(block_size=BLOCK, use_threads=False),  # threads take as long for one file
        csv.ParseOptions(delimiter=wanted.delimiter),
        csv.ConvertOptions(column_types=dict(wanted.types)),
    )


def _json_lines(stream: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    from pyarrow import json

    given = pa.schema(wanted.types) if wanted.types else None
    for block in whole_lines(iter(lambda: stream.read(BLOCK), b"")):
        if block.strip():
            options = json.ReadOptions(block_size=len(block) + 1)
            table = json.read_json(pa.BufferReader(block), options, json.ParseOptions(explicit_schema=given))
            yield from table.to_batches()


def _parquet(stream: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    with parquet.ParquetFile(_seekable(stream)) as file:
        yield from file.iter_batches(ROWS, columns=wanted.among(file.schema_arrow.names))


def _arrow(stream: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The batches of a file of Arrow, or of a stream."""
    source = _seekable(stream)
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        yield from pa.ipc.open_stream(source)
        return
    for number in range(file.num_record_batches):
        yield file.get_batch(number)


def _seekable(stream: Any) -> Any:
    """The stream, or all that it has in memory."""
    return stream if stream.seekable() else pa.BufferReader(stream.read())


READERS: dict[str, Callable[[Any, Wanted], Iterator[pa.RecordBatch]]] = {
    "csv": csv_batches,
    "jsonl": _json_lines,
    "parquet": _parquet,
    "arrow": _arrow,
}
"""The functions that read a stream of bytes, by the name of its format."""
