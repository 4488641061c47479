"""Results on their way out: to a file, to the standard output, or as a table on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pyarrow as pa
from rich.console import Console

from muntin.errors import DataError
from muntin.file_formats import TEXTS
from muntin.result_view import MOST, show_table
from muntin.results import Results
from muntin.results.writing import WRITERS, ResultFile, Writer, format_of

__all__ = ["Output", "RoutedFile", "opened_output", "output_format"]

STDOUT = "-"


def output_format(output: str, given: str | None, inputs: Sequence[str]) -> str:
    """The format of an output: as given, by the ending, or what suits a terminal or a pipe.

    A DataError for an output that is one of the inputs, which would be lost.
    """
    if output == STDOUT:
        return given or ("table" if sys.stdout.isatty() else "csv")
    path = Path(output)
    if path.exists() and any(Path(name).exists() and path.samefile(name) for name in inputs):
        raise DataError(f"an output must not be one of the inputs: got {output}; choose another --output")
    return given or format_of(output, "rename it, or give --format")


def opened_output(output: str, form: str, *, again: bool = False, live: bool = False) -> Output:
    """An output in a format; `again` appends to a file of texts, `live` shows rows as soon as they come."""
    if form == "table":
        if output != STDOUT:
            raise DataError(f"a table is for the terminal: got --output {output}; choose another --format")
        return _Terminal(live)
    if output == STDOUT:
        return _Standard(WRITERS[form](sys.stdout.buffer, False, ","))
    return _File(_result_file(output, form, again, live))


def _result_file(path: str, form: str, again: bool, live: bool) -> ResultFile:
    if again and form not in TEXTS and Path(path).exists():
        raise DataError(
            f"a file of {form} cannot be continued: got {path}; give another file for the rest, "
            "or use .csv or .jsonl"
        )
    return ResultFile(path, form, append=again, live=live)


class Output:
    """Takes the results of a run, table by table, and counts their rows; a context manager."""

    rows = 0
    _writes_empty = False
    """Whether results without rows are written, too: a file without rows that others can read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write what is left."""

    def write(self, results: Results | pa.Table, *, last: bool = False) -> None:
        """Take results of the embedded engine, or a table of Spark's; `last`: no others follow.

        The first rows decide the types of columns, which may not be known before.
        """
        wrapped = results if isinstance(results, Results) else Results(results)
        if len(wrapped) or (last and not self.rows and self._writes_empty):
            self.rows += len(wrapped)
            self._write(wrapped)

    def _write(self, results: Results) -> None:
        raise NotImplementedError


class _Standard(Output):
    """Rows with plain columns on the standard output."""

    _writes_empty = True

    def __init__(self, sink: Writer) -> None:
        self._sink = sink

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with _reported():
            self._sink.close()

    def _write(self, results: Results) -> None:
        with _reported():
            self._sink.write(results.to_arrow())


@contextmanager
def _reported() -> Iterator[None]:
    """Report that the standard output takes no more; a reader that has ended is no mistake."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_standard_output()
        raise DataError(f"cannot write to the standard output: {error.strerror or error}") from error


def discard_standard_output() -> None:
    """Let the standard output take anything: Python writes what is left once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _File(Output):
    """Rows with plain columns in a file."""

    _writes_empty = True

    def __init__(self, file: ResultFile) -> None:
        self._file = file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.__exit__(kind)

    def write(self, results: Results | pa.Table, *, last: bool = False) -> None:
        self._file.start()  # the first step has succeeded: the query fits the input
        super().write(results, last=last)

    def _write(self, results: Results) -> None:
        self._file.write(results.to_arrow())


class RoutedFile:
    """Takes the late or the bad tuples of a run into a file; a context manager."""

    def __init__(self, path: str, form: str, *, again: bool = False, live: bool = False) -> None:
        self._path, self._form = path, form
        self._file = _result_file(path, form, again, live)
        self._schema: pa.Schema | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.__exit__(kind)

    def write(self, tuples: pa.Table, *, last: bool = False) -> None:
        """Take tuples; those that follow must fit the columns of the first, but in JSON Lines."""
        if len(tuples) or (last and self._schema is None):
            self._file.write(tuples if self._form == "jsonl" else self._aligned(tuples))

    def _aligned(self, tuples: pa.Table) -> pa.Table:
        if self._schema is None:
            self._schema = tuples.schema
        missing = [field for field in self._schema if field.name not in tuples.column_names]
        for field in missing:
            tuples = tuples.append_column(field, pa.nulls(len(tuples), field.type))
        try:
            if tuples.num_columns > len(self._schema):
                raise KeyError(*(name for name in tuples.column_names if name not in self._schema.names))
            tuples = tuples.select(self._schema.names)
            return tuples if self._form == "csv" else tuples.cast(self._schema)
        except (KeyError, pa.ArrowException) as error:
            raise DataError(
                f"tuples in a file of {self._form} must have the same columns: got {error} for {self._path}; "
                "choose a file that ends in .jsonl"
            ) from error


class _Terminal(Output):
    """The first rows as a table that fits, and how many there are more; `live` shows tables as they come."""

    def __init__(self, live: bool) -> None:
        # Rich reads COLUMNS on a terminal without cursor addressing only where the height is given.
        self._live, self._console = live, Console(height=25)
        self._tables: list[pa.Table] = []

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._tables:
            show_table(Results(pa.concat_tables(self._tables, promote_options="permissive")), self._console)
            if self.rows > MOST:
                more = f"... and {self.rows - MOST:,} more rows; --format csv shows all"
                self._console.print(more, highlight=False)

    def _write(self, results: Results) -> None:
        shown = sum(map(len, self._tables))
        if self._live:
            show_table(results, self._console, most=len(results))
        elif shown < MOST:
            self._tables.append(results.to_arrow(nested=True).slice(0, MOST - shown))
