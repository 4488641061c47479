"""The queries P1 to P5 of `muntin bench peers`, as polars and DuckDB express them.

Each function takes the tuples as an Arrow table (`at`, `value` and, where there are keys, `key`) in the
order of arrival, and gives one row per window with its result in `total`. Where an engine has no such
window, it is what one would write by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from muntin.bench.streams import SECOND

__all__ = ["LENGTHS", "duckdb_queries", "polars_queries"]

LENGTHS = (1, 2, 3, 5, 6, 8, 10, 12, 15, 20)
"""Seconds of the ten tumbling windows of P3."""

PeerQueries = dict[str, Callable[[Any], Any]]


def polars_queries(keys: list[str]) -> PeerQueries:
    """From a polars DataFrame to an Arrow table."""
    import polars as pl

    at, value = pl.col("at"), pl.col("value")

    def tumbling(data: Any, seconds: int, result: Any) -> Any:
        return data.lazy().group_by(*keys, at.dt.truncate(f"{seconds}s")).agg(result.alias("total"))

    def sliding(data: Any) -> Any:
        windows = (
            data.lazy()
            .sort("at")
            .group_by_dynamic("at", every="1s", period="60s", offset="-59s", group_by=keys or None)
        )
        return windows.agg(value.sum().alias("total"))

    def sessions(data: Any) -> Any:
        opens = at.diff() > pl.duration(seconds=1)
        opens = (opens.over(keys) if keys else opens).fill_null(True)
        visits = data.lazy().sort(*keys, "at").with_columns(opens.cum_sum().alias("visit"))
        return visits.group_by(*keys, "visit").agg(value.sum().alias("total"))

    return {
        "P1": lambda data: tumbling(data, 10, value.sum()).collect().to_arrow(),
        "P2": lambda data: sliding(data).collect().to_arrow(),
        "P3": lambda data: pl.concat(
            pl.collect_all([tumbling(data, seconds, value.sum()) for seconds in LENGTHS])
        ).to_arrow(),
        "P4": lambda data: sessions(data).collect().to_arrow(),
        "P5": lambda data: tumbling(data, 10, value.median()).collect().to_arrow(),
    }


def duckdb_queries(keys: list[str]) -> PeerQueries:
    """From a connection with the table `tuples` to an Arrow table; `us` is the time in microseconds."""
    by = "".join(f"{key}, " for key in keys)
    partition = f"partition by {keys[0]}" if keys else ""

    def tumbling(seconds: int, result: str) -> str:
        return f"select {by} us // {seconds * SECOND} w, {result} total from tuples group by {by} w"

    sliding = f"""
        select {by} w, sum(value) total
        from (select {by} unnest(range(us // {SECOND} - 59, us // {SECOND} + 1)) w, value from tuples)
        group by {by} w
    """
    sessions = f"""
        with opened as (
            select {by} us, value,
                coalesce(us - lag(us) over ({partition} order by us) > {SECOND}, true)::int opens
            from tuples
        ), visits as (
            select {by} value, sum(opens) over ({partition} order by us rows unbounded preceding) visit
            from opened
        )
        select {by} visit, sum(value) total from visits group by {by} visit
    """
    ten = " union all ".join(f"({tumbling(seconds, 'sum(value)')})" for seconds in LENGTHS)
    queries = {
        "P1": tumbling(10, "sum(value)"),
        "P2": sliding,
        "P3": ten,
        "P4": sessions,
        "P5": tumbling(10, "median(value)"),
    }
    return {name: _ask(text) for name, text in queries.items()}


def _ask(text: str) -> Callable[[Any], pa.Table]:
    return lambda connection: connection.sql(text).to_arrow_table()
