"""Windows that tuples have closed: those that may still change, and the last ones before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.windows.base import Cuts

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOTHING: Column = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Closed:
    """Windows of one query that are closed and not yet expired, in ranks and in time."""

    key: Column
    begin: Column
    end: Column
    start: Column
    stop: Column
    due: Column
    low: Any
    high: Any
    life: Column
    """When the life of the key began, for windows on a measure: the next life has the same edges. Else 0."""

    @classmethod
    def of(cls, cuts: Cuts, life: Column | None = None) -> Closed:
        """The windows that a run of tuples closed."""
        edges = (cuts.begin, cuts.end, cuts.start, cuts.stop, cuts.due, cuts.low, cuts.high)
        return cls(cuts.segment, *edges, np.zeros(len(cuts), dtype=np.int64) if life is None else life)

    @classmethod
    def none(cls) -> Closed:
        """No windows."""
        return cls(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, None, None, NOTHING)

    def __len__(self) -> int:
        return len(self.key)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        columns = (getattr(self, f.name) for f in fields(self))
        return sum(int(column.nbytes) for column in columns if column is not None)

    def keep(self, mask: Mask) -> Closed:
        """Only these windows."""
        return self._each(lambda column: getattr(self, column)[mask])

    def join(self, other: Closed) -> Closed:
        """These windows and the others."""
        if not len(self):
            return other
        if not len(other):
            return self
        return self._each(lambda column: np.concatenate([getattr(self, column), getattr(other, column)]))

    def _each(self, change: Callable[[str], Any]) -> Closed:
        columns = {f.name: None if getattr(self, f.name) is None else change(f.name) for f in fields(self)}
        return Closed(**columns)  # type: ignore[arg-type]  # only low and high may be None, and stay so


@dataclass(slots=True)
class Past:
    """Expired windows of one query: their identity (life and edges a, b), and how many have it.

    A tuple at the final time itself is in time, and may close one more window with the same edges:
    these count before it. On a measure that stands still, any later tuple may.
    """

    key: Column
    begin: Column
    a: Any
    b: Any
    end: Column
    due: Column
    count: Column
    life: Column

    @classmethod
    def of(cls, closed: Closed) -> Past:
        """These windows; types whose windows may have the same edges tell their starts."""
        a, b = (closed.start, closed.stop) if closed.low is None else (closed.low, closed.high)
        one = np.ones(len(closed), dtype=np.int64)
        return cls(closed.key, closed.begin, a, b, closed.end, closed.due, one, closed.life)

    @classmethod
    def none(cls) -> Past:
        """No windows."""
        return cls(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)

    def __len__(self) -> int:
        return len(self.key)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(int(getattr(self, f.name).nbytes) for f in fields(self))

    def keep(self, mask: Mask | Column) -> Past:
        """Only these windows."""
        return Past(*(getattr(self, f.name)[mask] for f in fields(self)))

    def join(self, other: Past) -> Past:
        """These windows and the others."""
        if not len(self):
            return other
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Past(*(np.concatenate(pair) for pair in pairs))

    def last_ones(self, certain: Column) -> Past:
        """For each key the windows with the largest edges as one row; and those that may be cut again.

        Edges on a measure never decrease within a life, so only windows with the largest ones can be cut
        again. `certain` are the ranks, by key, before which no tuple changes its place.
        """
        if not len(self):
            return self
        stays = self.end < certain[self.key]
        settled, open_ones = self.keep(stays), self.keep(~stays)
        if not len(settled):
            return open_ones
        order = np.lexsort((settled.end, settled.b, settled.a, settled.life, settled.key))
        last = order[np.append(settled.key[order][1:] != settled.key[order][:-1], True)]
        top = np.empty(int(settled.key.max()) + 1, dtype=np.int64)
        top[settled.key[last]] = last
        mine = top[settled.key]
        same = np.ones(len(settled), dtype=np.bool_)
        for column in (settled.a, settled.b, settled.life):
            same &= column == column[mine]
        settled.count = np.where(same, settled.count, 0)
        joined = settled.keep(last)
        joined.count = np.bincount(settled.key, weights=settled.count)[joined.key].astype(np.int64)
        return joined.join(open_ones)
