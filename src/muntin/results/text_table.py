"""Results as a table of texts: for the terminal, for `repr` and for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from muntin.display import html_small, html_table
from muntin.results.flat_table import Columns, flat

MOST_ROWS = 20
"""The most rows that `repr` and notebooks show."""
_MOST_CHARACTERS = 40
_ZERO_FRACTION = re.compile(r"\.0+(?=Z|[+-]\d{4}|$)")


class TextTable(NamedTuple):
    """The first rows of results as texts."""

    headings: list[str]
    right: list[bool]
    """Whether each column is aligned to the right."""
    rows: list[list[str]]
    kinds: list[str]
    """The kind of each row, also where no column shows it."""
    hidden: int
    """The number of further rows."""
    leading: int
    """The number of the first columns, which say what a row is: keys, name and edges of the window."""

    @classmethod
    def of(cls, table: pa.Table, most: int = MOST_ROWS) -> TextTable:
        """The first rows of a table with the struct `window`.

        Edges on ranks or a measure are one column, as `[0, 10)`, where a row has them. `kind` is
        left out where all rows are final, `revision` where all are 0.
        """
        shown = flat(table.slice(0, most))
        columns = Columns.of(table.schema)
        unusual = [name for name in ("kind", "revision") if _differs(table[name])]
        right: dict[str, bool] = {}
        cells: dict[str, list[str]] = {}
        for name in [*columns.keys, "window_name", *columns.edges[:2], *columns.aggregates, *unusual]:
            if name in columns.aggregates[:1]:
                cells |= _other_edges(shown, columns.edges[2:])
            cells[name], right[name] = _texts(shown[name]), _is_number(shown.schema.field(name).type)
        return cls(
            list(cells),
            [right.get(name, True) for name in cells],
            [list(row) for row in zip(*cells.values(), strict=True)],
            shown["kind"].to_pylist(),
            table.num_rows - shown.num_rows,
            len(columns.keys) + 1 + len(columns.edges[:2]),
        )

    @classmethod
    def of_rows(cls, table: pa.Table, most: int = MOST_ROWS) -> TextTable:
        """The first rows of any table; edges on ranks or a measure are one column, as of results."""
        shown = table.slice(0, most)
        names = shown.column_names
        edges = [
            name for name in names if name.startswith(("window_start_", "window_end_", "window_ordinal"))
        ]
        right: dict[str, bool] = {}
        cells: dict[str, list[str]] = {}
        for name in names:
            if name in edges:
                cells |= _other_edges(shown, edges)
            else:
                cells[name], right[name] = _texts(shown[name]), _is_number(shown.schema.field(name).type)
        rows = [list(row) for row in zip(*cells.values(), strict=True)]
        aligned = [right.get(name, True) for name in cells]
        return cls(list(cells), aligned, rows, [""] * len(rows), table.num_rows - shown.num_rows, leading=1)

    def lines(self) -> list[str]:
        """The headings and the rows, one line each, in columns."""
        widths = self._widths()
        return [
            "  ".join(
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(row, widths, self.right, strict=True)
            ).rstrip()
            for row in (self.headings, *self.rows)
        ]

    def within(self, width: int) -> list[TextTable]:
        """The table, or tables with a part of its columns each, at most this wide where that is possible.

        The ends of windows are without their dates where these are those of the starts.
        """
        if self._width(range(len(self.headings))) <= width:
            return [self]
        table = self._with_short_ends()
        leading = list(range(self.leading))
        blocks = [leading]
        for column in range(self.leading, len(self.headings)):
            if len(blocks[-1]) > self.leading and table._width([*blocks[-1], column]) > width:
                blocks.append(leading)
            blocks[-1] = [*blocks[-1], column]
        return [table._select(part) for part in blocks]

    def _widths(self) -> list[int]:
        return [max(map(len, column)) for column in zip(self.headings, *self.rows, strict=True)]

    def _width(self, columns: Iterable[int]) -> int:
        widths = self._widths()
        return sum(widths[column] + 2 for column in columns) - 2

    def _with_short_ends(self) -> TextTable:
        if "window_start" not in self.headings:
            return self
        start, end = (self.headings.index(name) for name in ("window_start", "window_end"))
        if not all(" " in row[end] and row[end].split()[0] == row[start].split()[0] for row in self.rows):
            return self
        return self._replace(
            rows=[[*row[:end], row[end].partition(" ")[2], *row[end + 1 :]] for row in self.rows]
        )

    def _select(self, columns: list[int]) -> TextTable:
        return self._replace(
            headings=[self.headings[column] for column in columns],
            right=[self.right[column] for column in columns],
            rows=[[row[column] for column in columns] for row in self.rows],
        )

    @property
    def remark(self) -> str:
        """The number of rows, and how many of them are not shown."""
        total = len(self.rows) + self.hidden
        rows = "1 row" if total == 1 else f"{total:,} rows"
        return f"{rows}, the first {len(self.rows)} shown" if self.hidden else rows

    def text(self) -> str:
        """The table as plain text."""
        return "\n".join([*self.lines(), self.remark])

    def html(self) -> str:
        """The table for a notebook."""
        return html_table(self.headings, self.right, self.rows) + html_small(self.remark)


def _other_edges(shown: pa.Table, edges: list[str]) -> dict[str, list[str]]:
    """Edges on ranks and measures, and ordinals, by a heading; none where no row has them."""
    cells = {}
    for start in [name for name in edges if name.startswith("window_start_")]:
        measure = start.removeprefix("window_start_")
        pairs = list(zip(_texts(shown[start]), _texts(shown[f"window_end_{measure}"]), strict=True))
        if any(pair != ("-", "-") for pair in pairs):
            cells[f"window {measure}"] = [f"[{low}, {high})" if low != "-" else "-" for low, high in pairs]
    if edges and edges[-1] == "window_ordinal" and _differs(shown[edges[-1]]):
        cells["window ordinal"] = _texts(shown[edges[-1]])
    return cells


def _differs(column: pa.ChunkedArray) -> bool:
    """Whether some value of a column is not the usual one: "final" of kinds, 0 of numbers."""
    if pa.types.is_string(column.type):
        return bool(pc.any(pc.not_equal(column, "final")).as_py())
    return bool(pc.any(pc.not_equal(column, 0)).as_py())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _texts(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_timestamp(column.type):
        texts = column.cast(pa.string()).to_pylist()
        return [_text(None if text is None else _ZERO_FRACTION.sub("", text)) for text in texts]
    return [_text(value) for value in column.to_pylist()]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    # A line break inside a value would break the table.
    text = " ".join(text.split("\n"))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
