"""The rows of one named window that `emit=mt.on_change()` shows: what a reader would not know otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muntin.testing.rows import Row, same_value
from muntin.timeline import INF

__all__ = ["Changes"]


@dataclass
class _Known:
    """The latest row of a window, when it is due, and the values that the reader saw of it, if any."""

    row: Row
    complete_at: int
    seen: Any = None
    over: int | None = None
    """The step before which it became final, if it has: it is never emitted again."""


class Changes:
    """Simulates a reader that gives a window without a row the values of the last row before it.

    A row is shown if that reader would otherwise have wrong values of some window. Each step compares all
    windows since the start.
    """

    def __init__(self, forget: int | None) -> None:
        self._forget = forget
        self._steps = 0
        self._windows: dict[Any, dict[Any, _Known]] = {}

    def compute(self, names: list[str]) -> None:
        """These are the aggregates from now on; what is new was null so far."""
        for windows in self._windows.values():
            for one in windows.values():
                one.row = one.row._replace(aggregates={name: one.row.aggregates.get(name) for name in names})
                one.seen = None if one.seen is None else {name: one.seen.get(name) for name in names}

    def filtered(self, rows: Iterable[tuple[Any, Row, int]], final: int) -> list[Row]:
        """What is shown in a step in which the windows with these identities have these rows.

        Each comes with the time at which its window is due. Those due before `final` are over.
        """
        shown: list[Row] = []
        self._steps += 1
        for windows in self._windows.values():
            for one in windows.values():
                if one.over is None and one.complete_at < final:
                    one.over = self._steps
        for identity, row, complete_at in rows:
            windows = self._windows.setdefault(row.keys, {})
            if row.kind == "retract":
                gone = windows.pop(identity, None)
                if gone is not None and gone.seen is not None:
                    shown.append(row)
            elif identity in windows:
                windows[identity].row, windows[identity].complete_at = row, complete_at
            else:
                windows[identity] = _Known(row, complete_at)
        for windows in self._windows.values():
            shown += self._unknown(list(windows.values()))
        return shown

    def _unknown(self, windows: list[_Known]) -> list[Row]:
        """The rows of those windows of a key of which the reader has wrong values, or none."""
        # A window that completes after others that end later follows them.
        windows.sort(key=lambda one: (one.over or INF, one.row.end, one.row.start, *_edges(one.row)))
        shown: list[Row] = []
        carried: dict[str, Any] | None = None
        before: Row | None = None
        for one in windows:
            if before is not None and self._forget is not None and one.row.end - before.end >= self._forget:
                carried = None  # after this silence the key counts as new
            believed = carried if one.seen is None else one.seen
            actual = dict(one.row.aggregates)
            if one.over is None and (believed is None or not same_value(believed, actual, 0.0)):
                shown.append(one.row)
                one.seen = actual
            carried, before = actual, one.row
        return shown


def _edges(row: Row) -> tuple[Any, ...]:
    return (row.start, row.end, row.ordinal) if row.low is None else (row.low, row.high, row.ordinal)
