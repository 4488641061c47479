"""Results on their way out: CSV, JSON Lines, Parquet, Arrow, or a table on the terminal."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
from pyarrow import csv, parquet
from rich.console import Console

from muntin.errors import DataError
from muntin.result_view import MOST, show_table
from muntin.results import Results

__all__ = ["FORMATS", "STDOUT", "Writer", "opened_writer", "output_format"]

STDOUT = "-"
FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".arrow": "arrow"}
"""The format of an output by the ending of its name, before `.gz`."""


def as_results(results: Results | pa.Table) -> Results:
    """Results of the embedded engine as they are, those of Spark wrapped."""
    return results if isinstance(results, Results) else Results(results)


def output_format(output: str, given: str | None) -> str:
    """The format of an output: as given, by the ending, or what suits a terminal or a pipe."""
    if output == STDOUT:
        return given or ("table" if sys.stdout.isatty() else "csv")
    path = Path(output)
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if given is None and ending not in FORMATS:
        raise DataError(
            f"an output must end in {', '.join(FORMATS)} (texts also in .gz): got {path.name}; "
            "rename it, or give --format"
        )
    if not path.absolute().parent.is_dir():
        parent = path.absolute().parent
        raise DataError(f"the directory of an output must exist: got {output}; make it: mkdir -p {parent}")
    if path.is_dir():
        raise DataError(f"an output must be a file: got the directory {output}; add a name like results.csv")
    return given or FORMATS[ending]


class Writer(Protocol):
    """Takes the results of a run, table by table."""

    rows: int

    def write(self, results: Any) -> None:
        """Take a table of results, which may be empty."""

    def close(self) -> None:
        """Write what is left, and close the file."""


def opened_writer(output: str, form: str, *, again: bool = False, live: bool = False) -> Writer:
    """The writer of a format; `again` appends to a file of texts, `live` shows rows as soon as they come."""
    if form == "table":
        return _Terminal(live)
    if again and form in ("parquet", "arrow") and output != STDOUT and Path(output).exists():
        raise DataError(
            f"a file of {form} cannot be continued: got {output}; give another --output for the rest, "
            "or use .csv or .jsonl"
        )
    try:
        return {"csv": _Csv, "jsonl": _JsonLines, "parquet": _Parquet, "arrow": _Arrow}[form](output, again)
    except OSError as error:
        raise DataError(f"cannot write {output}: {error.strerror}; choose another --output") from error


class _File:
    """A writer into a file or the standard output."""

    def __init__(self, output: str, again: bool) -> None:
        self.rows = 0
        self._stack = ExitStack()
        self.begun = again and output != STDOUT and Path(output).exists() and Path(output).stat().st_size > 0
        mode: Literal["ab", "wb"] = "ab" if again else "wb"
        self.sink: Any = sys.stdout.buffer
        if output.lower().endswith(".gz"):
            self.sink = self._stack.enter_context(gzip.open(output, mode))  # noqa: SIM115  # closed in close()
        elif output != STDOUT:
            self.sink = self._stack.enter_context(Path(output).open(mode))  # noqa: SIM115  # as above

    def write(self, results: Any) -> None:
        table = as_results(results).to_arrow()
        if table.num_rows or not self.begun:
            self.rows += table.num_rows
            self._write(table)
            self.sink.flush()

    def _write(self, table: pa.Table) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._stack.close()


class _Csv(_File):
    def _write(self, table: pa.Table) -> None:
        if not table.num_rows:
            return  # the columns of the first rows are the header
        for i, column in enumerate(table.schema):
            if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
                texts = pa.array([_json(value) for value in table.column(i).to_pylist()], pa.string())
                table = table.set_column(i, column.name, texts)
        csv.write_csv(table, self.sink, csv.WriteOptions(include_header=not self.begun))
        self.begun = True


class _JsonLines(_File):
    def _write(self, table: pa.Table) -> None:
        text = io.StringIO()
        for row in table.to_pylist():
            text.write(json.dumps(row, default=_plain, ensure_ascii=False) + "\n")
        self.sink.write(text.getvalue().encode())


class _Parquet(_File):
    _writer: Any = None
    kind = staticmethod(parquet.ParquetWriter)

    def _write(self, table: pa.Table) -> None:
        if not table.num_rows:
            return  # its types may not be known yet
        if self._writer is None:
            self._writer = self.kind(self.sink, table.schema)
        self._writer.write_table(table.cast(self._writer.schema) if self._of(table) else table)

    def _of(self, table: pa.Table) -> bool:
        return hasattr(self._writer, "schema") and table.schema != self._writer.schema

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        super().close()


class _Arrow(_Parquet):
    kind = staticmethod(pa.ipc.new_file)


class _Terminal:
    """The first rows as a table that fits, and how many there are more; `live` shows tables as they come."""

    def __init__(self, live: bool) -> None:
        self.rows = 0
        self._live, self._console = live, Console()
        self._tables: list[pa.Table] = []

    def write(self, results: Any) -> None:
        table = as_results(results).to_arrow(nested=True)
        shown = sum(len(other) for other in self._tables)
        self.rows += table.num_rows
        if self._live and table.num_rows:
            show_table(Results(table), self._console, most=table.num_rows)
        elif table.num_rows and shown < MOST:
            self._tables.append(table.slice(0, MOST - shown))

    def close(self) -> None:
        if self._tables:
            show_table(Results(pa.concat_tables(self._tables, promote_options="permissive")), self._console)
            if self.rows > MOST:
                more = f"... and {self.rows - MOST:,} more rows; --format csv shows all"
                self._console.print(more, highlight=False)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
