"""Rows with named columns, as an Arrow table has them, for people and for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, overload

import pyarrow as pa

from muntin.errors import DataError, MuntinError, QueryError, nearest, value_text
from muntin.results.text_table import TextTable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Rows:
    """A thin wrapper around an Arrow table, as `open_windows`, `slices` and `query` of an operator return it.

    It prints as a table, shows itself in a notebook, and everything that reads Arrow takes it.

    >>> rows = Rows(pa.table({"shop": ["north", "south"], "total": [3, None]}))
    >>> rows
    shop   total
    north      3
    south      -
    2 rows
    >>> rows["total"].to_pylist(), rows[0]
    ([3, None], {'shop': 'north', 'total': 3})
    """

    __slots__ = ("_given",)

    def __init__(self, table: pa.Table) -> None:
        """Wrap a table.

        Args:
            table: A pyarrow table.
        """
        self._given = table

    @property
    def _table(self) -> pa.Table:
        """The table that the rows are taken from."""
        return self._given

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches():
            yield from batch.to_pylist()

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        rows: list[dict[str, Any]] = self._table.to_pylist()
        return rows

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return self.to_arrow().schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column by name."""
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
    def __getitem__(self, item: slice) -> Self: ...

    def __getitem__(self, item: str | int | slice) -> Any:
        """A column by its name, a row by its number, or a range of rows."""
        if isinstance(item, str):
            return self.column(item)
        if isinstance(item, slice):
            begin, end, step = item.indices(self.num_rows)
            rows = range(begin, end, step)
            table = self._table.slice(begin, len(rows)) if step == 1 else self._table.take(list(rows))
            return type(self)(table)
        if not isinstance(item, int):
            raise QueryError(
                "results have columns by name, rows by number and ranges of rows: "
                f'got {value_text(item)}; write results["total"], results[0] or results[:10]'
            )
        row = item + self.num_rows if item < 0 else item
        if not 0 <= row < self.num_rows:
            raise IndexError(f"there are {self.num_rows} rows: got row {item}")
        return self._table.slice(row, 1).to_pylist()[0]

    def __eq__(self, other: object) -> bool:
        return self._table.equals(other._table) if isinstance(other, type(self)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of every mutable or large value in Python

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._table,)

    # Other tools. ------------------------------------------------------------------------------------

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def to_arrow(self) -> pa.Table:
        """The rows as a pyarrow table."""
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        try:
            return self.to_arrow().to_pandas()  # type: ignore[no-any-return]  # pyarrow has no types
        except ImportError as error:
            raise _missing("to_pandas()", "pandas") from error

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise _missing("to_polars()", "polars") from error
        return polars.DataFrame(self.to_arrow())

    def write(self, path: str | PathLike[str]) -> None:
        """Write the rows to a file: .csv, .jsonl, .parquet or .arrow; texts also compressed, as .csv.gz.

        A file that exists is replaced. In CSV, lists and other nested values are JSON texts.
        """
        from muntin.results.writing import write

        write(self.to_arrow(), path)

    def _shown(self) -> TextTable:
        """The first rows as texts."""
        return TextTable.of_rows(self._table)

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()


def _missing(call: str, package: str) -> MuntinError:
    return MuntinError(
        f"{call} needs {package}, which is not installed; install it with pip install {package}"
    )
