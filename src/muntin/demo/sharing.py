"""What sharing slices saves, counted: ten queries with a window each against the one of the demonstration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from muntin.dsl import Query

__all__ = ["Work", "each_alone", "table"]


@dataclass(frozen=True, slots=True)
class Work:
    """Counted work of one query, or of several together."""

    tuples: int
    lifts: int
    """Tuples that join a partial aggregate of a slice."""
    merges: int
    """Partial aggregates of slices that are combined into windows."""

    def __add__(self, other: Work) -> Work:
        return Work(self.tuples + other.tuples, self.lifts + other.lifts, self.merges + other.merges)

    @property
    def combines(self) -> int:
        """Both kinds together."""
        return self.lifts + self.merges


def each_alone(query: Query, steps: Iterable[tuple[pa.Table, dt.datetime | None]]) -> Work:
    """The work of a query for each window by itself, over the same tuples and watermarks, without Spark."""
    operators = [replace(query, windows=(window,)).operator() for window in query.windows]
    for tuples, watermark in steps:
        for operator in operators:
            operator.process(tuples)
            if watermark is not None:
                operator.advance(watermark)
    counts = [operator.stats() for operator in operators]
    return sum((Work(s.tuples, s.update_combines, s.merge_combines) for s in counts), Work(0, 0, 0))


def table(alone: Work, shared: Work, windows: int, joined: int) -> Group:
    """Both in figures; `joined`: the number of flights in each window, over all windows."""
    comparison = Table(box=box.SIMPLE_HEAD, padding=0)
    for heading in ("", f"{windows} queries", "this query", "ratio"):
        comparison.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    rows = {
        "flights read": (alone.tuples, shared.tuples),
        "combines: flights into slices": (alone.lifts, shared.lifts),
        "combines: slices into windows": (alone.merges, shared.merges),
        "combines of both kinds": (alone.combines, shared.combines),
    }
    for words, (many, one) in rows.items():
        style = "bold" if words.endswith("kinds") else None
        comparison.add_row(words, f"{many:,}", f"{one:,}", f"{many / one:.1f}" if one else "", style=style)
    partials, holding = shared.lifts / shared.tuples, joined / shared.tuples
    return Group(
        Text(f"What sharing saved: this query, and {windows} queries with one window each", "italic"),
        comparison,
        f"The aggregates share {partials:.0f} partial aggregates, so a flight that joins a slice is counted "
        f"as {partials:.0f} combines. Without slices it would join each of the {holding:.0f} windows that "
        f"hold it: {joined * partials:,.0f} combines.",
    )
