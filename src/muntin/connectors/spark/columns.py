"""Columns that a query names by what computes them: Spark adds them to its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from muntin.expressions.foreign import ColumnName
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["with_columns"]


def with_columns(query: QuerySpec, frame: DataFrame) -> DataFrame:
    """The input with the columns that the query writes as Spark columns; those that it has stay."""
    wanted = {str(name): name.source for name in _read(query) if isinstance(name, ColumnName)}
    new = {name: source for name, source in wanted.items() if name not in frame.columns}
    return frame.withColumns(new) if new else frame


def _read(query: QuerySpec) -> Iterator[str]:
    yield query.time
    yield from query.keys
    for _, aggregate in query.aggregates:
        yield from (name for expr in aggregate.reads for name in expr.columns)
    for _, window in query.windows:
        yield from (name for expr in window.inputs() for name in expr.columns)
