"""The query in the state of a key group: what the program asks for, and the windows that are served.

It is a table of one value, in a part of its own, which is written only when the windows change.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from muntin.connectors.spark.migration import asked_for, served_by, windows_of
from muntin.errors import QueryError, SnapshotError
from muntin.query import FREE_POLICIES, QuerySpec
from muntin.query.files import load_state_query, to_toml
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.checks import Role, check_value
from muntin.slicing.snapshots.snapshot import served_windows

__all__ = ["LATE_COUNTS", "WINDOWS", "described", "served_query", "take_queries"]

WINDOWS, LATE_COUNTS = "windows", "late_counts"
"""The tables with QUERIES as JSON, and with the number of late tuples of each window."""
QUERIES: dict[str, type | Role] = {"asked": dict, "served": list, "windows": list}
"""The program's query and the windows that are served, in a part of their own. Its `text` is the query as
TOML, or null where a file cannot hold it; states of older versions have none."""


def described(operator: SlicingOperator, query: QuerySpec, asked: dict[str, Any]) -> pa.Table:
    """QUERIES as one value; `asked` is the program's query as plain values."""
    queries = {
        "asked": asked,
        "served": served_by(operator),
        "windows": [window[:-1] for window in served_windows(operator)],
        "text": _text(query),
    }
    return pa.table({"queries": pa.array([json.dumps(queries).encode()])})


def _text(query: QuerySpec) -> str | None:
    """The query as TOML, where a file can hold it, without the policies that may change at any time."""
    try:
        defaults: dict[str, Any] = {
            name: QuerySpec.__dataclass_fields__[name].default for name in FREE_POLICIES
        }
        return to_toml(replace(query, **defaults))
    except QueryError:  # it has Python functions
        return None


def take_queries(tables: dict[str, pa.Table]) -> dict[str, Any]:
    """QUERIES with the late tuples of each window, taken out of the tables."""
    ((text,),) = tables.pop(WINDOWS).columns
    queries = json.loads(text.as_py())
    check_value("queries", queries, dict)
    for name, kind in QUERIES.items():
        check_value(name, queries[name], kind)
    windows = queries["windows"]
    for window in windows:
        check_value("a window", window, list)
    late = (
        tables.pop(LATE_COUNTS).column("count").to_pylist() if LATE_COUNTS in tables else [0] * len(windows)
    )
    queries["windows"] = [[*window, count] for window, count in zip(windows, late, strict=True)]
    return dict(queries)


def served_query(
    queries: dict[str, Any], query: QuerySpec | None, asked: dict[str, Any] | None = None
) -> QuerySpec:
    """The query with the windows that are served; `asked` is it as plain values, where they are known."""
    if query is None:
        text = queries.get("text")
        if text is None:
            raise SnapshotError(
                "the state does not hold its query, which has Python functions or is of an older version of "
                "Muntin; pass the query of the program: mt.spark.state(spark, checkpoint, query=query)"
            )
        check_value("text", text, str)
        query = load_state_query(text, "the query of the state")
    return windows_of(queries["asked"], queries["served"], query, asked or asked_for(query))
