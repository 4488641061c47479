"""What a page remembers of a stream, in bounded memory: tuples, results, counters."""

from __future__ import annotations

import time as clocks
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from muntin.dashboard.recent_rows import RecentRows
from muntin.dashboard.times import units

__all__ = ["ARRIVED_AT", "History", "Key", "Sample", "identities", "of_key"]

Key = tuple[object, ...]

MOST_TUPLES, MOST_RESULTS, MOST_SAMPLES, MOST_KEYS = 20_000, 5_000, 120, 500
PAUSE = 0.5
"""Seconds between two samples."""
ARRIVED_AT = "watermark at arrival"
"""The name of a column that `take` adds to those of the tuples."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters at a moment, since the sample before it where they are rates."""

    at: float
    """In seconds of a monotonic clock."""
    tuples: int
    results: int
    counters: Mapping[str, int]
    tuples_per_second: float = 0.0
    results_per_second: float = 0.0
    combines_per_tuple: float = 0.0
    late: int = 0


class History:
    """The newest tuples with the watermark at their arrival, the newest results, samples, and the keys.

    >>> history = History("t", ["shop"])
    >>> history.take(pa.table({"t": [5, 9], "shop": ["a", "b"]}), watermark=7)
    >>> history.newest, history.keys
    (9, [('a',), ('b',)])
    """

    def __init__(self, time: str, keys: Sequence[str]) -> None:
        self.time, self.key_names = time, list(keys)
        self.tuples, self.results = RecentRows(MOST_TUPLES), RecentRows(MOST_RESULTS)
        self.samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)
        self.newest: int | None = None
        self.timed = True
        self.taken = self.given = self.late = 0
        """Tuples, results, and the tuples among these that were behind the watermark."""
        self.rows_by_window: dict[str, int] = {}
        self._keys: dict[Key, None] = {}

    @property
    def keys(self) -> list[Key]:
        """The keys that were seen, at most 500; `()` without key columns."""
        return list(self._keys)

    def take(self, tuples: pa.Table, watermark: int) -> None:
        """Remember tuples that arrived at this watermark."""
        times = units(tuples[self.time])
        newest = pc.max(times).as_py()
        if newest is not None:
            self.newest = newest if self.newest is None else max(self.newest, newest)
        self.timed = not pa.types.is_integer(tuples[self.time].type)
        self.taken += tuples.num_rows
        self.late += pc.sum(pc.less(times, watermark)).as_py() or 0
        self.know_keys(tuples.select(self.key_names))
        at = pa.array([watermark] * tuples.num_rows, pa.int64())
        self.tuples.append(tuples.append_column(ARRIVED_AT, at))

    def know_keys(self, table: pa.Table) -> None:
        """Remember the keys in the key columns of a table."""
        rows = table.to_pylist() if self.key_names and len(self._keys) < MOST_KEYS else []
        for row in rows if self.key_names else [{}]:
            if len(self._keys) < MOST_KEYS:
                self._keys.setdefault(tuple(row.values()))

    def give(self, results: pa.Table) -> None:
        """Remember results, with flat columns."""
        self.given += results.num_rows
        for name in results["window_name"].to_pylist():
            self.rows_by_window[name] = self.rows_by_window.get(name, 0) + 1
        self.results.append(results)

    def sample_is_old(self) -> bool:
        """Whether it is time for the next sample."""
        return not self.samples or clocks.monotonic() - self.samples[-1].at >= PAUSE

    def sample(self, counters: Mapping[str, int]) -> None:
        """Remember these counters, and the rates since the sample before."""
        now = clocks.monotonic()
        if not self.samples:
            self.samples.append(Sample(now, self.taken, self.given, counters))
            return
        before = self.samples[-1]
        seconds, tuples = max(now - before.at, 1e-3), self.taken - before.tuples
        combines = _combines(counters) - _combines(before.counters)
        self.samples.append(
            Sample(
                now,
                self.taken,
                self.given,
                counters,
                tuples / seconds,
                (self.given - before.results) / seconds,
                combines / tuples if tuples else before.combines_per_tuple,
                self.late,
            )
        )

    def tuples_of(self, key: Key, since: int) -> pa.Table | None:
        """The tuples of a key from a time on, with the columns `at`, its time, and `late`."""
        table = self.tuples.table()
        if table is None:
            return None
        times = units(table[self.time])
        table = table.append_column("at", times).filter(pc.greater_equal(times, since))
        mine = of_key(table, self.key_names, key)
        return mine.append_column("late", pc.less(mine["at"], mine[ARRIVED_AT]))


def of_key(table: pa.Table, names: Sequence[str], key: Key) -> pa.Table:
    """The rows of a key.

    >>> of_key(pa.table({"k": ["a", None], "v": [1, 2]}), ["k"], (None,))["v"].to_pylist()
    [2]
    """
    for name, value in zip(names, key, strict=True):
        column = table[name]
        same = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))
        table = table.filter(same)
    return table


def identities(table: pa.Table) -> list[tuple[object, ...]]:
    """What identifies the window of each row: its name and edges, or its edges on another measure.

    >>> identities(pa.table({"window_name": ["a"], "window_start": [0], "window_end": [9], "n": [1]}))
    [('a', 0, 9)]
    """
    marks = [n for n in table.column_names if n.startswith("window_start_") or n == "window_ordinal"]
    names, edges = table["window_name"].to_pylist(), [units(table[f"window_{e}"]) for e in ("start", "end")]
    rows = table.select(marks).to_pylist() if marks else [{}] * table.num_rows
    times = zip(*(column.to_pylist() for column in edges), strict=True)
    # Windows on ranks or another measure keep their identity there while their times move; an open
    # window whose end is not known yet begins where its result will.
    return [
        (name, *([(mark, v) for mark, v in row.items() if v is not None] or pair))
        for name, row, pair in zip(names, rows, times, strict=True)
    ]


def _combines(counters: Mapping[str, int]) -> int:
    return counters.get("update_combines", 0) + counters.get("merge_combines", 0)
