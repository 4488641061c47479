"""Tuples from files, part by part: CSV, JSON Lines, Parquet and Arrow IPC, also compressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from muntin.connectors.input_files import InputFile
from muntin.connectors.misspelt import similar
from muntin.errors import DataError, value_text
from muntin.file_formats import TEXTS, Format

BLOCK = 4 * 2**20
"""The number of bytes of text that are read at a time; the first ones decide the types of CSV columns."""
ROWS = 131_072
"""The number of rows of a Parquet file that are read at a time."""


Tuples: TypeAlias = "pa.RecordBatch | list[dict[str, Any]]"


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


def file_batches(file: InputFile, wanted: Wanted) -> Iterator[Tuples]:
    """The tuples of a file."""
    with readable(file, wanted.typing), file.opened() as stream:
        yield from READERS[file.form](stream, wanted.of(file))


@contextmanager
def readable(file: InputFile, typing: str) -> Iterator[None]:
    """Name the file in errors of Arrow and of the system."""
    try:
        yield
    except pa.ArrowException as error:
        typed = file.form in TEXTS and "must be a JSON object" not in str(error)
        cure = f"; if a type is wrong, give the right one: {typing}" if typed else ""
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


def _json_lines(stream: Any, wanted: Wanted) -> Iterator[Tuples]:
    from pyarrow import json

    given = pa.schema(wanted.types) if wanted.types else None
    lines, known = 0, frozenset[str]()
    for block in whole_lines(iter(lambda: stream.read(BLOCK), b"")):
        if block.strip():
            options = json.ReadOptions(block_size=len(block) + 1, use_threads=False)
            try:
                table = json.read_json(
                    pa.BufferReader(block), options, json.ParseOptions(explicit_schema=given)
                )
            except pa.ArrowInvalid as error:
                raise _wrong_line(block, lines, error) from error
            yield from _with_misspelt(table, wanted.columns, known)
            known |= frozenset(table.column_names)
        lines += block.count(b"\n")


def _wrong_line(block: bytes, before: int, error: pa.ArrowInvalid) -> pa.ArrowInvalid:
    """The error with the number of the line in the file: Arrow counts the lines of the block from 0."""
    from json import loads

    for number, line in enumerate(block.splitlines(), before + 1):
        try:
            if line.strip() and not isinstance(loads(line), dict):
                raise ValueError("it is not")
        except (ValueError, RecursionError) as wrong:
            shown = value_text(line.decode("utf-8", "replace"), 80)
            return pa.ArrowInvalid(f"line {number} must be a JSON object: got {shown}; {wrong}")
    return pa.ArrowInvalid(
        re.sub(r"in row (\d+)", lambda match_: f"in line {before + 1 + int(match_[1])}", str(error))
    )


def _with_misspelt(table: pa.Table, reads: frozenset[str] | None, known: frozenset[str]) -> Iterator[Tuples]:
    """The tuples; as records where some lack a column and have a misspelt field, which only records show."""
    read = reads or frozenset()
    new = [name for name in table.column_names if name not in read | known]
    for column, field in ((column, field) for column in sorted(read) for field in new):
        if column not in table.column_names or not similar(column, field):
            continue
        both = pc.and_(table[column].is_valid(), table[field].is_valid())
        if not pc.any(both).as_py():
            rows = table.to_pylist()
            for row in rows:
                for name in (column, field):
                    if row[name] is None:
                        del row[name]
            yield rows
            return
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


READERS: dict[str, Callable[[Any, Wanted], Iterator[Tuples]]] = {
    "csv": csv_batches,
    "jsonl": _json_lines,
    "parquet": _parquet,
    "arrow": _arrow,
}
"""The functions that read a stream of bytes, by the name of its format."""
