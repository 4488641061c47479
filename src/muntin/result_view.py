"""Results as a table on the terminal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

STYLES = {"update": "yellow", "retract": "red", "early": "dim"}
MOST = 40


def show_table(results: pa.Table, console: Console, title: str | None = None, most: int = MOST) -> None:
    """Print result rows, the first `most` of them; updates and retractions stand out."""
    flat = results.flatten()
    names = [name.removeprefix("window.") for name in flat.column_names]
    table = Table(*names, title=title, title_justify="left")
    for row in flat.slice(0, most).to_pylist():
        table.add_row(*(_text(v) for v in row.values()), style=STYLES.get(row.get("kind", "")))
    console.print(table)
    if results.num_rows > most:
        console.print(f"... and {results.num_rows - most:,} more rows")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
