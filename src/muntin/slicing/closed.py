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

    @classmethod
    def of(cls, cuts: Cuts) -> Closed:
        """The windows that a run of tuples closed."""
        return cls(cuts.segment, cuts.begin, cuts.end, cuts.start, cuts.stop, cuts.due, cuts.low, cuts.high)

    @classmethod
    def none(cls) -> Closed:
        """No windows."""
        return cls(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, None, None)

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
        return self._each(lambda column: np.concatenate([getattr(self, column), getattr(other, column)]))

    def _each(self, change: Callable[[str], Any]) -> Closed:
        columns = {f.name: None if getattr(self, f.name) is None else change(f.name) for f in fields(self)}
        return Closed(**columns)  # type: ignore[arg-type]  # only low and high may be None, and stay so


@dataclass(slots=True)
class Past:
    """Windows of one query that expired: the edges (a, b) that they are known by, and how many there are.

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

    @classmethod
    def of(cls, closed: Closed) -> Past:
        """These windows; types whose windows may have the same edges tell their starts."""
        a, b = (closed.start, closed.stop) if closed.low is None else (closed.low, closed.high)
        one = np.ones(len(closed), dtype=np.int64)
        return cls(closed.key, closed.begin, a, b, closed.end, closed.due, one)

    @classmethod
    def none(cls) -> Past:
        """No windows."""
        return cls(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)

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
        """For each key the windows with the largest edges; those whose tuples are certain as one row.

        On a measure edges never go back, so no other ones can come again. `certain` are the ranks,
        by key, before which no tuple changes its place.
        """
        if not len(self):
            return self
        order = np.lexsort((self.end, self.b, self.a, self.key))
        last = np.append(self.key[order][1:] != self.key[order][:-1], True)
        top = np.empty(int(self.key.max()) + 1, dtype=np.int64)
        top[self.key[order[last]]] = order[last]
        mine = top[self.key]
        found = self.keep((self.a == self.a[mine]) & (self.b == self.b[mine]))
        fixed = found.end < certain[found.key]
        settled = found.keep(fixed)
        keys, place = np.unique(settled.key, return_inverse=True)
        one = np.zeros(len(keys), dtype=np.int64)
        one[place] = np.arange(len(settled))
        joined = settled.keep(one)
        joined.count = np.bincount(place, weights=settled.count, minlength=len(keys)).astype(np.int64)
        return joined.join(found.keep(~fixed))
