"""`mt.Results`: the windows that a call emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.results.flat_table import flat, latest_rows
from muntin.results.rows import Rows
from muntin.results.text_table import TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Results(Rows):
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

    __slots__ = ("_flat", "_make_flat", "_rows", "_source")

    def __init__(
        self,
        source: pa.Table | Callable[[], pa.Table],
        rows: int | None = None,
        make_flat: Callable[[], pa.Table | None] | None = None,
    ) -> None:
        """Wrap a table of the engine, or a function that makes one.

        Args:
            source: A table with the struct `window`, or a function without arguments that makes one; it
                is called once, by the first access to the rows.
            rows: The number of rows, where it is known before the table is made.
            make_flat: A function that makes the table with plain columns, or returns None where it is to
                be made of the other one.
        """
        self._source: pa.Table | Callable[[], pa.Table] = source
        self._rows = rows
        self._make_flat = make_flat
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
            self._source, self._make_flat = self._source(), None
        return self._source

    # Rows and columns. -------------------------------------------------------------------------------

    @property
    def num_rows(self) -> int:
        return self._table.num_rows if self._rows is None else self._rows

    def column(self, name: str) -> pa.ChunkedArray:
        """A column by name; `window` is the one of structs of edges."""
        return self._table.column(name) if name == "window" else super().column(name)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, in which `window` is a dictionary of the edges."""
        return super().to_pylist()

    def to_arrow(self, *, nested: bool = False) -> pa.Table:
        """The results as a pyarrow table.

        Args:
            nested: With one column `window`, a struct of the edges, as results have it on Spark.
        """
        if nested:
            return self._table
        if self._flat is None and self._make_flat is not None:
            self._flat = self._make_flat()
        if self._flat is None:
            self._flat = flat(self._table)
        return self._flat

    def _shown(self) -> TextTable:
        return TextTable.of(self._table)

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
