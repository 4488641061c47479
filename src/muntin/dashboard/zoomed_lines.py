"""Results as lines at several zoom levels: windows with the aggregate m4 over the results of the query.

m4 is the first, last, least and greatest value. A line through these has the same pixels as a line through
all values.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pyarrow.compute as pc

from muntin import aggregates as a
from muntin import windows as w
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

    A result counts at the end of its window, with the value that it had when it was first emitted.

    >>> lines = ZoomedLines(width=10, aggregate="total")
    >>> rows = {"window_name": ["ten", "ten"], "window_end": [10, 20], "total": [4, 7], "kind": ["final"] * 2}
    >>> lines.add(pa.table(rows))
    >>> [(line.name, len(line.columns)) for line in lines.of_level(0, ["ten"])]
    [('ten', 2)]
    """

    def __init__(self, width: int, aggregate: str) -> None:
        self.widths = tuple(width * factor for factor in ZOOM)
        self.aggregate = aggregate
        self._query = self._m4(self.widths)
        self._operator = self._query.operator(watermark_lag=self.widths[-1])
        self._columns: dict[tuple[str, str], deque[Column]] = {}

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
        rows = results.filter(
            pc.and_(pc.equal(results["kind"], "final"), pc.is_valid(results[self.aggregate]))
        )
        values = pc.cast(rows[self.aggregate], pa.float64(), safe=False)
        tuples = pa.table({"at": units(rows["window_end"]), "line": rows["window_name"], "value": values})
        tuples = tuples.filter(pc.is_finite(tuples["value"]))
        if tuples.num_rows:
            self._remember(self._operator.process(tuples).to_arrow())

    def of_level(self, level: int, names: list[str]) -> list[Line]:
        """The lines of these windows at a level, with the columns that are not complete yet."""
        shown = self._read(self._operator.open_windows().to_arrow(), "level")
        lines = []
        for number, name in enumerate(names):
            key = (f"level{level}", name)
            columns = [*self._columns.get(key, ()), *shown.get(key, ())]
            if columns:
                lines.append(Line(name, number, sorted(columns, key=lambda column: column.start)))
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
