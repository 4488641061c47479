"""The state of a stream as DataFrames: `mt.spark.state`.

The driver reads the heads of the key groups and the query. Slices, windows and tuples are computed by the
workers when a DataFrame is used: each restores the operator of a key group and looks at it as `op.slices()`
and `op.open_windows()` look at an embedded one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark import state_tables
from muntin.connectors.spark.arrow_types import to_arrow
from muntin.connectors.spark.checkpoints import BODY, PATH, Place
from muntin.connectors.spark.group_state import SMALL_PARTS, blank_operator, head_values, restore, size_of
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.result_rows import in_types
from muntin.connectors.spark.stream_stats import time_of
from muntin.connectors.spark.workers import message_first
from muntin.display import html_of_lines, named_lines
from muntin.planning.plan import Explanation, explain
from muntin.query import QuerySpec
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.snapshot import current_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StreamState", "state_at"]

Look = Callable[[SlicingOperator, int], pa.Table]
"""Computes a table from the operator of a key group and the number of the group."""


@dataclass(frozen=True, repr=False)
class StreamState:
    """The state of a streaming query after a micro-batch; printing it shows the query and how far it is.

    The methods give DataFrames, which read the checkpoint when they are used. `mt.spark.state` makes it.

    >>> import muntin as mt
    >>> state = mt.spark.state(spark, "/checkpoints/shops")  # doctest: +SKIP
    >>> state.slices().where("slice_count > 1000").count()  # doctest: +SKIP
    3
    >>> state.watermark, state.batch, state.batches  # doctest: +SKIP
    (datetime.datetime(2026, 3, 1, 0, 4, 5, tzinfo=datetime.timezone.utc), 6, range(0, 7))
    """

    place: Place
    query: QuerySpec
    """The query with the windows that were served then; it prints as Python."""
    watermark: dt.datetime | None
    newest: dt.datetime | None
    """The time of the newest tuple."""
    groups_of_stream: int
    """The number of key groups of the stream; those without tuples have no state."""
    heads: dict[int, bytes]
    """The head of each key group that has state."""
    given: QuerySpec | None
    """The query of the caller."""
    blank: tuple[SlicingOperator, ...]
    """Operators without tuples: one for each set of windows that key groups serve."""

    @property
    def batch(self) -> int:
        """The number of the micro-batch."""
        return self.place.batch

    @property
    def batches(self) -> range:
        """The numbers of the micro-batches whose state can be read."""
        return self.place.batches

    @property
    def plan(self) -> Explanation:
        """The plan of the query, and the reason for each decision; print it."""
        return explain(self.query, verbose=True)

    def slices(self) -> DataFrame:
        """The slices that a window still needs, with the value of each aggregate over the slice alone.

        The columns are those of `op.slices()`.
        """
        return self._seen_by(lambda operator, _: state_tables.slices(operator))

    def open_windows(self) -> DataFrame:
        """The windows that contain a tuple and are not complete, with the value of each aggregate so far.

        The columns are those of `op.open_windows()`.
        """
        return self._seen_by(lambda operator, _: state_tables.open_windows(operator))

    def tuples(self) -> DataFrame:
        """The tuples that windows still need one by one: the key, the time, and the columns that are read.

        Queries of periodic windows and sessions alone keep none.
        """
        return self._seen_by(lambda operator, _: state_tables.kept_tuples(operator))

    def groups(self) -> DataFrame:
        """For each key group the numbers of keys, slices, open windows and kept tuples, and its bytes."""
        heads = self.heads
        return self._seen_by(
            lambda operator, group: state_tables.sizes(operator, group, size_of(heads[group]))
        )

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """What is printed: names and texts."""
        windows = [f"{name} = {window.describe()}" for name, window in self.query.windows]
        aggregates = [f"{name} = {aggregate.describe()}" for name, aggregate in self.query.aggregates]
        return (
            ("checkpoint", self.place.checkpoint),
            ("micro-batch", f"{self.batch}; {self.batches[0]} to {self.batches[-1]} can be read"),
            ("watermark", str(self.watermark or "none yet")),
            ("newest tuple", str(self.newest or "none yet")),
            ("time column", self.query.time),
            ("key columns", ", ".join(self.query.keys) or "none"),
            ("windows", "\n".join(windows)),
            ("aggregates", "\n".join(aggregates)),
            ("key groups", f"{len(self.heads)} of {self.groups_of_stream} have state"),
        )

    def __str__(self) -> str:
        return named_lines(self.summary)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_of_lines(self.summary)

    def _seen_by(self, look: Look) -> DataFrame:
        """The rows that `look` gives for the operators of all key groups."""
        heads, given = self.heads, self.given
        some = next(iter(heads))
        columns = from_arrow_schema(
            pa.unify_schemas([look(operator, some).schema for operator in self.blank])
        )
        schema = to_arrow(columns, "UTC")

        def rows(parts: pa.Table) -> pa.Table:
            group = parts.column(GROUP)[0].as_py()
            with message_first():
                table = look(restore(heads[group], _bodies(parts), given), group)
            arrays = {name: table.column(name).combine_chunks() for name in table.column_names}
            return pa.Table.from_arrays(in_types(arrays, schema, len(table)), schema=schema)

        return self.place.parts().groupBy(GROUP).applyInArrow(rows, columns)


def state_at(place: Place, query: QuerySpec | None = None) -> StreamState:
    """The state in a place; `query` is needed where a file cannot hold it."""
    heads = place.heads()
    values = {group: head_values(head) for group, head in heads.items()}
    headers = {group: one["header"] for group, one in values.items()}
    small: dict[int, dict[str, bytes]] = {group: {} for group in heads}
    for row in place.parts().where(f.col(PATH).isin(*SMALL_PARTS)).collect():
        small[row[GROUP]][row[PATH]] = bytes(row[BODY])
    blank = {tuple(bodies.values()): blank_operator(bodies, query) for bodies in small.values()}
    # A group that has had no step since the windows changed has the old ones.
    latest = max(headers, key=lambda group: (headers[group]["newest"], headers[group]["watermark"]))
    return StreamState(
        place,
        current_spec(blank[tuple(small[latest].values())]),
        time_of(min(header["watermark"] for header in headers.values())),
        time_of(max(header["newest"] for header in headers.values())),
        max(one["groups"] for one in values.values()),
        heads,
        query,
        tuple(blank.values()),
    )


def _bodies(parts: pa.Table) -> dict[str, bytes]:
    return dict(zip(parts.column(PATH).to_pylist(), parts.column(BODY).to_pylist(), strict=True))
