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
    """Print the first `most` result rows; updates and retractions are coloured.

    The columns `kind` and `revision` are shown where some row is not final, or is revised.
    """
    rows = results.slice(0, most).to_pylist()
    plain = all(row["kind"] == "final" and row["revision"] == 0 for row in rows)
    names = [name for name in results.column_names if not (plain and name in ("kind", "revision"))]
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        row["window"] = _window(row["window"])
        table.add_row(*(_text(row[name]) for name in names), style=STYLES.get(row["kind"]))
    console.print(table)
    if results.num_rows > most:
        console.print(f"... and {results.num_rows - most:,} more rows")


def _window(window: dict[str, Any]) -> str:
    """The edges of a window on its own measure: time, or ranks or a column where it has them."""
    for name, low in window.items():
        if name.startswith("start_") and low is not None:
            measure = name.removeprefix("start_")
            return f"{measure} {low} - {window['end_' + measure]}"
    start, end = window["start"], window["end"]
    if not isinstance(start, dt.datetime):
        return f"{start} - {end}"
    one_day = start.date() == end.date()
    return f"{start:%Y-%m-%d} {_clock(start)} - {'' if one_day else f'{end:%Y-%m-%d} '}{_clock(end)}"


def _clock(time: dt.datetime) -> str:
    return f"{time:%H:%M:%S.%f}".removesuffix(".000000")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
