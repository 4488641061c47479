"""Late flights and the rows of the results that they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from muntin.demo.query import ASKED
from muntin.demo.stream import Step
from muntin.result_view import STYLES

__all__ = ["CHANGED", "Change", "LateFlights", "LateStory"]

CHANGED = ("update", "retract")
KEY = ("carrier", "airport")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A row that late flights caused."""

    row: Row
    before: Row | None
    """The row that it replaces; None for a window that is new."""


@dataclass(frozen=True, slots=True)
class LateFlights:
    """The late flights of one carrier and airport in one step, and what they changed."""

    flights: list[Row]
    changes: list[Change]

    @property
    def told(self) -> str:
        """In a line: which flight, and how many rows changed."""
        first, more = self.flights[0], len(self.flights) - 1
        return (
            f"{first['carrier']} {first['airport']}-{first['dest']}, due {first['scheduled']:%b %d %H:%M}, "
            f"left {first['delay'] or 0} min late{f', and {more} more' if more else ''}: "
            f"{len(self.changes)} row{'s' if len(self.changes) > 1 else ''} changed"
        )

    @property
    def rank(self) -> tuple[bool, int, int]:
        """How well it shows what late tuples do: a single flight, many kinds of changes, many changes."""
        kinds = {change.row["kind"] for change in self.changes}
        return len(self.flights) == 1, len(kinds), len(self.changes)

    def table(self) -> Group:
        """The changed rows: updates are yellow, retractions red, windows in place of retracted ones green."""
        table = Table(box=box.SIMPLE_HEAD, padding=0)
        for name in ("window", "from, until", "flights", "mean", "worst", "result"):
            right = name in ("flights", "mean", "worst")
            table.add_column(name, no_wrap=True, justify="right" if right else "left")
        for change in self.changes:
            row, window = change.row, change.row["window"]
            same_day = window["start"].date() == window["end"].date()
            until = f"{window['end']:%H:%M}" if same_day else f"{window['end']:%d %H:%M}"
            table.add_row(
                ASKED[row["window_name"]],
                f"{window['start']:%b %d %H:%M}-{until}",
                *(_changed(change, name) for name in ("flights", "mean_delay", "worst")),
                row["kind"],
                style=STYLES.get(row["kind"], "green"),
            )
        many = "Late flights" if len(self.flights) > 1 else "A late flight"
        return Group(
            Text(f"{many}, and the windows that change", "italic"),
            Text(self.told),
            table,
            Text("update: new values; retract: withdrawn; final: the window in its place"),
            Text(),
        )


def _changed(change: Change, name: str) -> str:
    new, old = (None if row is None else row[name] for row in (change.row, change.before))
    texts = ["-" if value is None else f"{value:.0f}" for value in (old, new)]
    return texts[1] if change.before is None or texts[0] == texts[1] else "→".join(texts)


class LateStory:
    """Follows a stream for late flights, and remembers the ones that show best what late tuples do."""

    def __init__(self) -> None:
        self.newest: LateFlights | None = None
        self.best: LateFlights | None = None
        self._earlier: list[pa.Table] = []

    def add(self, step: Step) -> None:
        """Look at the rows of a step that late flights caused."""
        causes = Counter(zip(*(step.late[name].to_pylist() for name in KEY), strict=True))
        stories = [LateFlights(_of_key(step.late, key), list(self._changes(step, key))) for key in causes]
        stories = [one for one in stories if one.changes]
        if stories:
            self.newest = max(stories, key=lambda one: one.rank)
            if self.best is None or self.newest.rank > self.best.rank:
                self.best = self.newest
        self._earlier.append(step.results)

    def _changes(self, step: Step, key: tuple[str, str]) -> Iterator[Change]:
        """The changed rows of a key, and the windows in the places of retracted ones."""
        rows = _of_key(step.results, key)
        gone = [row for row in rows if row["kind"] == "retract"]
        for row in rows:
            if row["kind"] == "update":
                yield Change(row, self._before(row, rows))
            elif row["kind"] == "retract" or any(_overlap(row, old) for old in gone):
                yield Change(row, None)

    def _before(self, row: Row, rows: list[Row]) -> Row | None:
        """The row of the same window with the revision before."""
        earlier = (_of_key(results, (row["carrier"], row["airport"])) for results in reversed(self._earlier))
        for candidates in (rows, *earlier):
            for old in candidates:
                if (old["window_name"], old["window"], old["revision"]) == (
                    row["window_name"], row["window"], row["revision"] - 1,
                ):  # fmt: skip
                    return old
        return None


def _overlap(one: Row, other: Row) -> bool:
    edges, others = one["window"], other["window"]
    if one["window_name"] != other["window_name"]:
        return False
    return bool(edges["start"] < others["end"] and others["start"] < edges["end"])


def _of_key(table: pa.Table, key: tuple[str, str]) -> list[Row]:
    carrier, airport = (pc.field(name) == value for name, value in zip(KEY, key, strict=True))
    return table.filter(carrier & airport).to_pylist()  # type: ignore[no-any-return]
