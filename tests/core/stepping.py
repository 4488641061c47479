"""A small stream of times, step by step: for tests of when windows are emitted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.windows.base import Window


def query(*, windows: dict[str, Window] | None = None, **on: Any) -> Any:
    return mt.windows(**(windows or {"x": w.tumbling(10)})).aggregate(n=a.count()).on("t", **on)


def brief(table: pa.Table) -> list[tuple[Any, ...]]:
    """(query, start, end, n, kind, revision) of each row; kind and revision only where not final 0."""
    rows = []
    for row in table.to_pylist():
        told = () if (row["kind"], row["revision"]) == ("final", 0) else (row["kind"], row["revision"])
        rows.append((row["window_name"], row["window"]["start"], row["window"]["end"], row["n"], *told))
    return rows


def feed(op: Operator, *times: int | None) -> list[tuple[Any, ...]]:
    return brief(op.process({"t": pa.array(times, pa.int64())}))
