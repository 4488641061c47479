"""Tables of windows with the values of their aggregates, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from muntin.slicing.schema import Rows, Table

__all__ = ["ValuedTable"]


class ValuedTable(Table):
    """A table with a field `values`: an Arrow table with a row for each window, or None."""

    __slots__ = ()

    values: pa.Table | None

    @property
    def nbytes(self) -> int:
        """Bytes of the columns and the values."""
        columns = sum(int(column.nbytes) for column in self.columns.values())
        return columns + (0 if self.values is None else int(self.values.nbytes))

    def join(self, other: Self) -> Self:
        joined = super().join(other)
        if self.values is None or other.values is None or not len(self) or not len(other):
            return joined
        values = pa.concat_tables([self.values, other.values]).combine_chunks()
        return replace(joined, values=values)  # type: ignore[type-var]  # a dataclass

    def take(self, rows: Rows) -> Self:
        columns: dict[str, Any] = {name: column[rows] for name, column in self.columns.items()}
        if self.values is None:
            return replace(self, **columns)  # type: ignore[type-var]  # a dataclass
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        at = pa.array(rows)
        taken = [column.combine_chunks().take(at) for column in self.values.columns]
        values = pa.Table.from_arrays(taken, names=self.values.column_names)
        return replace(self, **columns, values=values)  # type: ignore[type-var]  # a dataclass

    def attached(self) -> dict[str, pa.Array]:
        if self.values is None:
            return {}
        names = self.values.column_names
        return {f"value/{name}": self.values.column(name).combine_chunks() for name in names}
