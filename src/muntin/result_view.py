"""Results as a table on the terminal."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

STYLES = {"update": "yellow", "retract": "red", "early": "dim"}
MOST = 40


def show_table(results: pa.Table, console: Console, title: str | None = None, most: int = MOST) -> None:
    """Print the first `most` result rows; updates and retractions are coloured."""
    rows = results.slice(0, most).to_pylist()
    one_day = len({edge.date() for edge in _edges(rows)}) <= 1
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in results.column_names:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        row["window"] = _window(row["window"], one_day)
        table.add_row(*(_text(v) for v in row.values()), style=STYLES.get(row["kind"]))
    console.print(table)
    if results.num_rows > most:
        console.print(f"... and {results.num_rows - most:,} more rows")


def _edges(rows: list[dict[str, Any]]) -> list[dt.datetime]:
    edges = [row["window"][side] for row in rows for side in ("start", "end")]
    return [edge for edge in edges if isinstance(edge, dt.datetime)]


def _window(window: dict[str, Any], one_day: bool) -> str:
    """The edges of a window on its own measure: time, or ranks or a column where it has them."""
    for name, low in window.items():
        if name.startswith("start_") and low is not None:
            measure = name.removeprefix("start_")
            return f"{measure} {low} - {window['end_' + measure]}"
    return f"{_edge(window['start'], one_day)} - {_edge(window['end'], one_day)}"


def _edge(value: Any, one_day: bool) -> str:
    if not isinstance(value, dt.datetime):
        return str(value)
    clock = f"{value:%H:%M:%S.%f}".removesuffix(".000000")
    return clock if one_day else f"{value:%Y-%m-%d} {clock}"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
