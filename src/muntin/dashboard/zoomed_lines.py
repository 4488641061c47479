"""Results as lines at several zoom levels: windows with the aggregate m4 over the results of the query.

m4 is the first, last, least and greatest value. A line through these has the same pixels as a line through
all values.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from muntin import aggregates as a
from muntin import windows as w
from muntin.dashboard.history import identities
from muntin.dashboard.times import units
from muntin.drawing.line_picture import Column, Line
from muntin.dsl import Query, windows
from muntin.query import QuerySpec

__all__ = ["LEVELS", "ZOOM", "ZoomedLines", "finest_width", "numeric"]

ZOOM = (1, 6, 24)
"""The widths of the columns of each level, in those of the finest."""
LEVELS = len(ZOOM)
COLUMNS = 200
"""The most columns of a line: a few megabytes with ten windows and three levels."""
MOST_LINES = 64
MOST_CHANGEABLE = 2_000
"""Results that wait because a late tuple may change them; the oldest of more are taken as they are."""


def numeric(table: pa.Table, names: list[str]) -> list[str]:
    """The columns that a line can show."""
    shown = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return [n for n in names if n in table.column_names and any(is_(table[n].type) for is_ in shown)]


def finest_width(query: QuerySpec, timed: bool) -> int:
    """The shortest length or gap of the windows on time, else a second or one unit."""
    lengths = [int(s) for _, one in query.windows if one.measure is None for s in one.spans() if s > 0]
    return min(lengths, default=1_000_000 if timed else 1)


class ZoomedLines:
    """The lines of one key and one aggregate, from the results of its windows.

    A result counts at the end of its window, with its newest value: one that may still change waits beside
    the M4 windows until it cannot.

    >>> lines = ZoomedLines(width=10, aggregate="total", lateness=20)
    >>> rows = {"window_name": ["ten"] * 3, "window_start": [0, 10, 0], "window_end": [10, 20, 10]}
    >>> lines.add(pa.table(rows | {"total": [4, 7, 5], "kind": ["final", "final", "update"]}))
    >>> [(line.name, [column.last for column in line.columns]) for line in lines.of_level(0, ["ten"])]
    [('ten', [5.0, 7.0])]
    """

    def __init__(self, width: int, aggregate: str, lateness: int = 0) -> None:
        self.widths = tuple(width * factor for factor in ZOOM)
        self.aggregate = aggregate
        self._lateness = lateness
        self._query = self._m4(self.widths)
        self._operator = self._query.operator(watermark_lag=self.widths[-1])
        self._columns: dict[tuple[str, str], deque[Column]] = {}
        self._changeable: dict[tuple[object, ...], tuple[int, str, float]] = {}
        self._newest: int | None = None

    @staticmethod
    def _m4(widths: tuple[int, ...]) -> Query:
        levels = {f"level{number}": w.tumbling(width) for number, width in enumerate(widths)}
        return (
            windows(**levels).aggregate(value=a.m4("value")).by("line").on("at", forget_keys_after=widths[-1])
        )

    def add(self, results: pa.Table) -> None:
        """Take results of the key in: flat columns, as `Results.to_arrow` gives them."""
        if self.aggregate not in results.column_names:
            return  # it was added later
        ends = units(results["window_end"])
        values = pc.cast(results[self.aggregate], pa.float64(), safe=False)
        rows = zip(
            identities(results), results["kind"].to_pylist(), ends.to_pylist(),
            results["window_name"].to_pylist(), values.to_pylist(), strict=True,
        )  # fmt: skip
        for identity, kind, end, name, value in rows:
            if kind == "retract" or value is None or not math.isfinite(value):
                self._changeable.pop(identity, None)
            elif kind != "early":
                self._changeable[identity] = (end, name, value)
                self._newest = end if self._newest is None else max(self._newest, end)
        self._settle()

    def _settle(self) -> None:
        """Give the results that change no more to the M4 windows, and the oldest where too many wait."""
        if self._newest is None:
            return
        ordered = sorted(self._changeable.items(), key=lambda item: item[1])
        surplus = len(ordered) - MOST_CHANGEABLE
        settled = [
            item
            for n, item in enumerate(ordered)
            if item[1][0] + self._lateness <= self._newest or n < surplus
        ]
        for identity, _ in settled:
            del self._changeable[identity]
        if settled:
            self._remember(self._operator.process(_tuples(row for _, row in settled)).to_arrow())

    def of_level(self, level: int, names: list[str]) -> list[Line]:
        """The lines of these windows at a level, with the columns that are not complete yet."""
        prefix = f"level{level}"
        tables = [self._operator.open_windows().to_arrow()]
        if self._changeable:
            tables.append(self._query.run(_tuples(sorted(self._changeable.values()))).to_arrow())
        open_columns = [self._read(table, prefix) for table in tables]
        lines = []
        for number, name in enumerate(names):
            key = (prefix, name)
            columns: dict[int, Column] = {}
            for column in (
                *self._columns.get(key, ()),
                *(c for one in open_columns for c in one.get(key, ())),
            ):
                before = columns.get(column.start)
                columns[column.start] = column if before is None else before.followed_by(column)
            if columns:
                lines.append(Line(name, number, [columns[start] for start in sorted(columns)]))
        return lines

    @property
    def columns(self) -> int:
        """The number of columns in memory."""
        return sum(map(len, self._columns.values()))

    def _remember(self, complete: pa.Table) -> None:
        for key, columns in self._read(complete, "level").items():
            if key not in self._columns:
                while len(self._columns) >= MOST_LINES * LEVELS:
                    del self._columns[next(iter(self._columns))]
                self._columns[key] = deque(maxlen=COLUMNS)
            self._columns[key].extend(columns)

    @staticmethod
    def _read(table: pa.Table, prefix: str) -> dict[tuple[str, str], list[Column]]:
        by_line: dict[tuple[str, str], list[Column]] = {}
        for row in table.to_pylist():
            value = row["value"]
            if value is not None and row["window_name"].startswith(prefix):
                column = Column(
                    row["window_start"], row["window_end"],
                    value["first"], value["min"], value["max"], value["last"],
                )  # fmt: skip
                by_line.setdefault((row["window_name"], row["line"]), []).append(column)
        return by_line


def _tuples(rows: Iterable[tuple[int, str, float]]) -> pa.Table:
    ends, names, values = zip(*rows, strict=True)
    return pa.table(
        {"at": pa.array(ends, pa.int64()), "line": names, "value": pa.array(values, pa.float64())}
    )
