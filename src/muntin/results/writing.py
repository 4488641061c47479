"""Results into files: CSV, JSON Lines, Parquet, Arrow IPC; the first two also compressed."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from muntin.call_errors import path_text
from muntin.errors import DataError
from muntin.file_formats import COMPRESSIONS, ENDINGS, TEXTS, Format

_ROWS = 65_536
"""The number of rows that are Python objects at a time while JSON Lines are written."""


def write(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write a flat table in the format of the ending of the path: replaces a file that exists."""
    text = path_text(path, 'write takes the path of a file, like "windows.csv"')
    with ResultFile(text, format_of(text)) as file:
        file.write(table)


def format_of(path: str, cure: str = "rename it") -> str:
    """The name of the format of a file of results; `cure` is the advice for an ending that names none."""
    form, _, compression = Format.of(path)
    if form is None or (compression and form not in TEXTS):
        usual = [f".{name}" for name in WRITERS]
        others = [ending for ending in ENDINGS if ending not in usual]
        raise DataError(
            f"results are written to files that end in {', '.join(usual)} (or {', '.join(others)}; "
            f"texts also in {', '.join(COMPRESSIONS)}): got {Path(path).name}; {cure}"
        )
    return form


class ResultFile:
    """A file that takes flat tables, one after the other, as a context manager.

    It is written beside its path and takes its place at the end, so that an error leaves an earlier file
    as it was. `append` writes behind the lines of a file, which an error shortens again. With `live`,
    readers see each table at once: the first one replaces an earlier file.
    """

    def __init__(self, path: str, form: str, *, append: bool = False, live: bool = False) -> None:
        self._path, self._form, self._open = Path(path), form, ExitStack()
        self._writer: Writer | None = None
        self._append, self._length = append and self._path.is_file(), 0
        if self._append:
            self._length = self._path.stat().st_size
        # A pipe or a device cannot be replaced.
        special = self._path.exists() and not self._path.is_file()
        special |= self._path.absolute().is_relative_to("/dev")
        self._written = self._path
        if not (append or live or special):
            target = self._path.resolve()  # a link stays a link
            self._written = target.with_name(f"{target.name}.new")
        if not live:
            self.start()
        elif not self._path.parent.is_dir():
            with self._writable():
                raise FileNotFoundError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._complete()
        else:
            self._give_up()

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table; all tables have the columns of the first."""
        writer = self.start()
        with self._writable():
            writer.write(table)

    def start(self) -> Writer:
        """Open the file, if it is not open; with `live` this replaces an earlier one."""
        if self._writer is None:
            _, delimiter, compression = Format.of(str(self._path))
            with self._writable():
                begun = self._append and _has_bytes(str(self._path), compression)
                mode = "ab" if self._append else "wb"
                sink = self._open.enter_context(pa.OSFile(str(self._written), mode))
                if compression is not None:
                    sink = self._open.enter_context(pa.CompressedOutputStream(sink, compression))
            self._writer = WRITERS[self._form](sink, begun, delimiter)
            self._open.callback(self._writer.close)
        return self._writer

    def _complete(self) -> None:
        self.start()
        with self._writable():
            self._open.close()
            if self._written != self._path:
                self._written.replace(self._path.resolve())

    def _give_up(self) -> None:
        """Leave what was there before."""
        with suppress(OSError, pa.ArrowException):
            self._open.close()
        if self._append:
            os.truncate(self._path, self._length)
        elif self._written != self._path:
            self._written.unlink(missing_ok=True)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """Name the file in errors of the system."""
        path = self._path
        try:
            yield
        except FileNotFoundError as error:
            raise DataError(f"cannot write {path}: there is no directory {path.parent}; create it") from error
        except OSError as error:
            raise DataError(f"cannot write {path}: {error}; choose another path") from error


def _has_bytes(path: str, compression: str | None) -> bool:
    """Whether a file has contents; a compressed one without any is not empty."""
    with pa.input_stream(path, compression=compression) as stream:
        return bool(stream.read(1))


class Writer:
    """Writes tables to a stream of bytes in one format; a stream that is `begun` has a header already."""

    def __init__(self, sink: Any, begun: bool = False, delimiter: str = ",") -> None:
        self._sink, self._begun, self._delimiter = sink, begun, delimiter

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table, and hand them to the system."""
        self._write(table)
        self._begun = True
        self._sink.flush()

    def _write(self, table: pa.Table) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write the end of the format; the stream stays open."""


class _Csv(Writer):
    def _write(self, table: pa.Table) -> None:
        from pyarrow import csv

        for i, field in enumerate(table.schema):
            if not _has_csv_form(field.type):
                texts = [None if v is None else _text(v) for v in table.column(i).to_pylist()]
                table = table.set_column(i, field.name, pa.array(texts, pa.string()))
        options = csv.WriteOptions(include_header=not self._begun, delimiter=self._delimiter)
        csv.write_csv(table, self._sink, options)


class _JsonLines(Writer):
    def _write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=_ROWS):
            lines = (json.dumps(_plain(row), ensure_ascii=False) for row in batch.to_pylist())
            self._sink.write("".join(f"{line}\n" for line in lines).encode())


class _Arrow(Writer):
    _format: Any = None
    _schema: pa.Schema

    def _write(self, table: pa.Table) -> None:
        if self._format is None:
            self._schema, self._format = table.schema, self._started(table.schema)
        self._format.write_table(table.cast(self._schema))

    def _started(self, schema: pa.Schema) -> Any:
        return pa.ipc.new_file(self._sink, schema)

    def close(self) -> None:
        if self._format is not None:
            self._format.close()


class _Parquet(_Arrow):
    def _started(self, schema: pa.Schema) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(self._sink, schema)


WRITERS: dict[str, Callable[[Any, bool, str], Writer]] = {
    "csv": _Csv,
    "jsonl": _JsonLines,
    "parquet": _Parquet,
    "arrow": _Arrow,
}
"""The writers, by the names of their formats."""


def _has_csv_form(kind: pa.DataType) -> bool:
    """Whether Arrow writes values of this type to CSV, as texts that it can read back."""
    return bool(
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    ) and not (pa.types.is_duration(kind) or pa.types.is_interval(kind))


def _text(value: Any) -> str:
    """A value as text: the JSON of a list or dictionary."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """The value as JSON has it: times as ISO texts, decimals and NaN as texts, bytes as hexadecimal text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
