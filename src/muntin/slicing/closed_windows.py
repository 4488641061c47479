"""Windows that tuples have closed: those that may still change, and the last expired ones before them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from muntin.slicing.schema import Role, Schema, Table, no_rows
from muntin.windows.tuple_driven import Cuts

Column = npt.NDArray[np.int64]
COUNT, EDGE, KEY, MOMENT, RANK, VALUE = (
    Role.COUNT, Role.EDGE, Role.KEY, Role.MOMENT, Role.RANK, Role.VALUE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClosedWindows(Table):
    """Instances of one window that are closed and not yet expired, in ranks and in time.

    `life`: for windows on a measure, the time at which the life of the key began, because the next life may
    repeat the edges; otherwise 0.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "key": KEY, "begin": RANK, "end": RANK, "start": EDGE, "stop": EDGE,
            "complete_at": EDGE, "low": VALUE, "high": VALUE, "life": MOMENT,
        },
        optional=("low", "high"),
        time="complete_at",
    )  # fmt: skip

    key: Column = field(default_factory=no_rows)
    begin: Column = field(default_factory=no_rows)
    end: Column = field(default_factory=no_rows)
    start: Column = field(default_factory=no_rows)
    stop: Column = field(default_factory=no_rows)
    complete_at: Column = field(default_factory=no_rows)
    low: Any = None
    high: Any = None
    life: Column = field(default_factory=no_rows)

    @classmethod
    def of(cls, cuts: Cuts, life: Column | None = None) -> ClosedWindows:
        """The windows that a run of tuples closed."""
        edges = (cuts.begin, cuts.end, cuts.start, cuts.stop, cuts.complete_at, cuts.low, cuts.high)
        return cls(cuts.segment, *edges, np.zeros(len(cuts), dtype=np.int64) if life is None else life)


@dataclass(frozen=True, slots=True)
class ExpiredWindows(Table):
    """Expired instances of one window: their identity (life and edges a, b), and how many share it.

    A tuple at the final time itself is not late, and may close one more instance with the same edges: the
    expired ones count before it. On a measure that does not advance, any later tuple may.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "key": KEY, "begin": RANK, "a": VALUE, "b": VALUE, "end": RANK,
            "complete_at": EDGE, "count": COUNT, "life": MOMENT,
        }
    )  # fmt: skip

    key: Column = field(default_factory=no_rows)
    begin: Column = field(default_factory=no_rows)
    a: Any = field(default_factory=no_rows)
    b: Any = field(default_factory=no_rows)
    end: Column = field(default_factory=no_rows)
    complete_at: Column = field(default_factory=no_rows)
    count: Column = field(default_factory=no_rows)
    life: Column = field(default_factory=no_rows)

    def held_keys(self, final: int) -> Column:
        # Others count only behind tuples of an open window, which keeps its key alive by itself.
        needed_keys: Column = self.key[self.complete_at == final]
        return needed_keys

    @classmethod
    def of(cls, closed_windows: ClosedWindows) -> ExpiredWindows:
        """These windows; a window type that repeats edges gives the starts of its windows."""
        a, b = (
            (closed_windows.start, closed_windows.stop)
            if closed_windows.low is None
            else (closed_windows.low, closed_windows.high)
        )
        one = np.ones(len(closed_windows), dtype=np.int64)
        return cls(
            closed_windows.key,
            closed_windows.begin,
            a,
            b,
            closed_windows.end,
            closed_windows.complete_at,
            one,
            closed_windows.life,
        )

    def last_ones(self, certain: Column) -> ExpiredWindows:
        """For each key the windows with the largest edges as one row, and the windows that may be cut again.

        Edges on a measure never decrease within a life, so only windows with the largest edges can be cut
        again. `certain` are the ranks, by key, before which no tuple changes its place.
        """
        if not len(self):
            return self
        stays = self.end < certain[self.key]
        settled, open_ones = self.take(stays), self.take(~stays)
        if not len(settled):
            return open_ones
        order = np.lexsort((settled.end, settled.b, settled.a, settled.life, settled.key))
        last = order[np.append(settled.key[order][1:] != settled.key[order][:-1], True)]
        top = np.empty(int(settled.key.max()) + 1, dtype=np.int64)
        top[settled.key[last]] = last
        largest = top[settled.key]
        same = np.ones(len(settled), dtype=np.bool_)
        for column in (settled.a, settled.b, settled.life):
            same &= column == column[largest]
        counts = np.bincount(settled.key, weights=np.where(same, settled.count, 0))
        joined = settled.take(last)
        return replace(joined, count=counts[joined.key].astype(np.int64)).join(open_ones)
