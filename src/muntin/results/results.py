"""`mt.Results`: the windows that a call emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from muntin.errors import DataError, MuntinError, nearest
from muntin.results.flat_table import flat, latest_rows
from muntin.results.text_table import TextTable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes


class Results:
    """The windows that a call emitted, one row each: a thin wrapper around an Arrow table.

    As a table it has plain columns: the keys, `window_name`, `window_start`, `window_end` (and edges on
    ranks or measures, such as `window_start_rank`, where a window of the query has them), the aggregates,
    `kind` and `revision`. All that takes Arrow takes it: `pa.table(results)`, `pl.DataFrame(results)`,
    DuckDB. As rows, with `to_pylist()` or in a loop, it has dictionaries in which `window` is a
    dictionary of the edges.

    The results of a small step make their table when something reads rows or columns. Until then they
    hold a matrix of at most 1,024 rows, 48 bytes each and 8 to 16 per sum, count or extreme, and the keys.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t")
    >>> results = query.run({"t": [1, 2, 13], "k": ["a", "b", "a"], "v": [1, 2, 4]})
    >>> results
    k  window_name  window_start  window_end  total
    a  ten                     0          10      1
    b  ten                     0          10      2
    a  ten                    10          20      4
    3 rows
    >>> results["total"].to_pylist(), len(results)
    ([1, 2, 4], 3)
    >>> for row in results:
    ...     print(row["k"], row["window"]["start"], row["total"])
    a 0 1
    b 0 2
    a 10 4
    """

    __slots__ = ("_flat", "_rows", "_source")

    def __init__(self, source: pa.Table | Callable[[], pa.Table], rows: int | None = None) -> None:
        """Wrap a table of the engine, or a function that makes one.

        Args:
            source: A table with the struct `window`, or a function without arguments that makes one; it
                is called once, by the first access to the rows.
            rows: The number of rows, where it is known before the table is made.
        """
        self._source = source
        self._rows = rows
        self._flat: pa.Table | None = None

    @classmethod
    def concat(cls, parts: Iterable[Results]) -> Results:
        """The rows of several results of one query, in this order.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> op = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
        >>> parts = [op.process({"t": [1, 12]}), op.advance(10), op.finish()]
        >>> mt.Results.concat(parts)["n"].to_pylist()
        [1, 1]
        """
        return cls(joined([part._table for part in parts]))

    @property
    def _table(self) -> pa.Table:
        """The table with the struct `window`."""
        if not isinstance(self._source, pa.Table):
            self._source = self._source()
        return self._source

    # Rows and columns. -------------------------------------------------------------------------------

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._table.num_rows if self._rows is None else self._rows

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches():
            yield from batch.to_pylist()

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, in which `window` is a dictionary of the edges."""
        rows: list[dict[str, Any]] = self._table.to_pylist()
        return rows

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the plain columns."""
        return self.to_arrow().schema

    @property
    def column_names(self) -> list[str]:
        """The names of the plain columns."""
        return list(self.schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column by name; `window` is the one of structs of edges."""
        if name == "window":
            return self._table.column(name)
        try:
            return self.to_arrow().column(name)
        except KeyError:
            known = self.column_names
            raise DataError(
                f'there is no column "{name}" in the results ({", ".join(known)}).{nearest(name, known)}'
            ) from None

    @overload
    def __getitem__(self, item: str) -> pa.ChunkedArray: ...
    @overload
    def __getitem__(self, item: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, item: slice) -> Results: ...

    def __getitem__(self, item: str | int | slice) -> Any:
        """A column by its name, a row by its number, or a range of rows."""
        if isinstance(item, str):
            return self.column(item)
        if isinstance(item, slice):
            begin, end, step = item.indices(self.num_rows)
            rows = range(begin, end, step)
            return Results(self._table.slice(begin, len(rows)) if step == 1 else self._table.take(list(rows)))
        row = item + self.num_rows if item < 0 else item
        if not 0 <= row < self.num_rows:
            raise IndexError(f"there are {self.num_rows} rows: got row {item}")
        return self._table.slice(row, 1).to_pylist()[0]

    def __eq__(self, other: object) -> bool:
        return self._table.equals(other._table) if isinstance(other, Results) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of every mutable or large value in Python

    def __reduce__(self) -> tuple[Any, ...]:
        return Results, (self._table,)

    # Other tools. ------------------------------------------------------------------------------------

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def to_arrow(self, *, nested: bool = False) -> pa.Table:
        """The results as a pyarrow table.

        Args:
            nested: With one column `window`, a struct of the edges, as results have it on Spark.
        """
        if nested:
            return self._table
        if self._flat is None:
            self._flat = flat(self._table)
        return self._flat

    def to_pandas(self) -> pd.DataFrame:
        """The results as a pandas DataFrame."""
        try:
            return self.to_arrow().to_pandas()  # type: ignore[no-any-return]  # pyarrow has no types
        except ImportError as error:
            raise _missing("to_pandas()", "pandas") from error

    def to_polars(self) -> pl.DataFrame:
        """The results as a polars DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise _missing("to_polars()", "polars") from error
        return polars.DataFrame(self.to_arrow())

    def write(self, path: str | PathLike[str]) -> None:
        """Write the results to a file: .csv, .jsonl, .parquet or .arrow; texts also compressed, as .csv.gz.

        A file that exists is replaced. In CSV, lists and other nested values are JSON texts.
        """
        from muntin.results.writing import write

        write(self.to_arrow(), path)

    # What the rows say. ------------------------------------------------------------------------------

    def latest(self) -> Results:
        """One row for each key and window: the newest revision, without windows that were retracted.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(visit=w.session(5)).aggregate(n=a.count()).on("t", allowed_lateness=50)
        >>> op = query.operator()
        >>> parts = [op.process({"t": [1, 20]}), op.advance(10), op.process({"t": [4]}), op.finish()]
        >>> mt.Results.concat(parts)
        window_name  window_start  window_end  n  kind     revision
        visit                   1           6  1  final           0
        visit                   1           6  1  retract         1
        visit                   1           9  2  final           0
        visit                  20          25  1  final           0
        4 rows
        >>> mt.Results.concat(parts).latest()
        window_name  window_start  window_end  n
        visit                   1           9  2
        visit                  20          25  1
        2 rows
        """
        return Results(latest_rows(self._table))

    def plot(self, column: str | None = None) -> list[Axes]:
        """Draw an aggregate over time with matplotlib: the first one of numbers, or the named one.

        Each name of a window has axes of its own, and each key a line in them. Windows that differ in
        length, such as sessions, are bars from their start to their end. Only the `latest()` rows are
        drawn. Needs the extra `plot`.
        """
        from muntin.results.plotting import plot

        return plot(self.latest()._table, column)

    def __repr__(self) -> str:
        return TextTable.of(self._table).text()

    def _repr_html_(self) -> str:
        return TextTable.of(self._table).html()


def joined(tables: list[pa.Table]) -> pa.Table:
    """The rows of tables of one query; before its first value the type of a column may not be known."""
    if len(tables) == 1:
        return tables[0]
    full = [table for table in tables if table.num_rows]
    if full:
        return pa.concat_tables(full, promote_options="permissive")
    if not tables:
        raise DataError("there are no results to join: give at least one")
    return tables[-1]


def _missing(call: str, package: str) -> MuntinError:
    return MuntinError(
        f"{call} needs {package}, which is not installed; install it with pip install {package}"
    )
