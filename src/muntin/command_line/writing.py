"""Results on their way out: to a file, to the standard output, or as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from muntin.errors import DataError
from muntin.file_formats import TEXTS
from muntin.result_view import MOST, show_table
from muntin.results import Results
from muntin.results.writing import WRITERS, ResultFile, Writer, format_of

__all__ = ["Output", "opened_output", "output_format"]

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
        return _Terminal(live)
    if output == STDOUT:
        return _Flat(WRITERS[form](sys.stdout.buffer, False, ","))
    if again and form not in TEXTS and Path(output).exists():
        raise DataError(
            f"a file of {form} cannot be continued: got {output}; give another --output for the rest, "
            "or use .csv or .jsonl"
        )
    return _Flat(ResultFile(output, form, append=again))


class Output:
    """Takes the results of a run, table by table, and counts their rows."""

    rows = 0
    _writes_empty = False
    """Whether results without rows are written, too: a file without rows that others can read."""

    def write(self, results: Results | pa.Table, *, last: bool = False) -> None:
        """Take results of the embedded engine, or a table of Spark's; `last`: no others follow.

        The first rows decide the types of columns, which may not be known before.
        """
        found = results if isinstance(results, Results) else Results(results)
        if len(found) or (last and not self.rows and self._writes_empty):
            self.rows += len(found)
            self._write(found)

    def _write(self, results: Results) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left, and close the file."""
        raise NotImplementedError


class _Flat(Output):
    """Rows with plain columns, in a format of files."""

    _writes_empty = True

    def __init__(self, sink: ResultFile | Writer) -> None:
        self._sink = sink

    def _write(self, results: Results) -> None:
        self._sink.write(results.to_arrow())

    def close(self) -> None:
        self._sink.close()


class _Terminal(Output):
    """The first rows as a table that fits, and how many there are more; `live` shows tables as they come."""

    def __init__(self, live: bool) -> None:
        # Rich reads COLUMNS on a terminal without cursor addressing only where the height is given.
        self._live, self._console = live, Console(height=25)
        self._tables: list[pa.Table] = []

    def _write(self, results: Results) -> None:
        shown = sum(map(len, self._tables))
        if self._live:
            show_table(results, self._console, most=len(results))
        elif shown < MOST:
            self._tables.append(results.to_arrow(nested=True).slice(0, MOST - shown))

    def close(self) -> None:
        if self._tables:
            show_table(Results(pa.concat_tables(self._tables, promote_options="permissive")), self._console)
            if self.rows > MOST:
                more = f"... and {self.rows - MOST:,} more rows; --format csv shows all"
                self._console.print(more, highlight=False)
