"""Empty windows: which of them lie between the first and the last tuple of a key.

A window [start, end) comes out, empty or not, when it overlaps the extent of its key: from the
first to the last tuple that came in time. A tuple in no window counts as well. So a key needs two
times to be remembered, and one more to tell what has come out already.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from muntin.slicing.listing_kernels import spanned_windows
from muntin.slicing.live import LiveQuery
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import ContextFreeWindow

__all__ = ["Extent"]

Column = npt.NDArray[np.int64]


def _unknown(size: int, value: int) -> Column:
    return np.full(size, value, dtype=np.int64)


@dataclass(slots=True)
class Extent:
    """Per key the times of the first and the last tuple, and what `last` was when windows came out.

    A tuple that came when the windows before `final` had expired counts from `final` on: it says
    nothing about windows that were over before it came.
    """

    first: Column = field(default_factory=lambda: _unknown(0, INF))
    last: Column = field(default_factory=lambda: _unknown(0, NEG_INF))
    shown: Column = field(default_factory=lambda: _unknown(0, NEG_INF))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.first.nbytes + self.last.nbytes + self.shown.nbytes

    def grow(self, keys: int) -> None:
        """Make room for new keys."""
        new = keys - len(self.first)
        if new > 0:
            self.first = np.concatenate([self.first, _unknown(new, INF)])
            self.last = np.concatenate([self.last, _unknown(new, NEG_INF)])
            self.shown = np.concatenate([self.shown, _unknown(new, NEG_INF)])

    def keep(self, keys: Column) -> None:
        """Forget all other keys."""
        self.first, self.last, self.shown = self.first[keys], self.last[keys], self.shown[keys]

    def note(self, query: LiveQuery, key: Column, first: Column, last: Column, final: int) -> None:
        """Take in the first and last times of tuples or slices, but for those that are too late."""
        window = query.window
        assert isinstance(window, ContextFreeWindow)
        counts = first >= max(query.since, final)
        old = np.flatnonzero((first < final) & (first >= query.since))
        counts[old] = window.last_end(first[old]) > final
        key, first, last = key[counts], first[counts], last[counts]
        self.first, self.last = self.first.copy(), self.last.copy()
        np.minimum.at(self.first, key, np.maximum(first, final))
        np.maximum.at(self.last, key, last)

    def windows(self, query: LiveQuery, expired: int, upto: int) -> tuple[Column, Column, Column]:
        """(key, start, end) of the windows that overlap an extent and end in (expired, upto].

        Also those that end before, of keys whose last tuple came since: they lie behind the one that
        was the last before.
        """
        key, done = self._behind(query, expired, upto)
        last, shown = self.last[key], self.shown[key]
        self.shown = self.last
        start, end = _around(query, np.minimum(done, last), last, upto)
        least = np.minimum.accumulate(start[::-1])[::-1]  # no later window starts before
        arguments = (start, end, least, done, last, shown, expired)
        out = np.empty((2, len(key) + 1024), dtype=np.int64)
        count = spanned_windows(*arguments, out)
        if count > out.shape[1]:
            out = np.empty((2, count), dtype=np.int64)
            spanned_windows(*arguments, out)
        place, which = out[:, :count]
        return key[place], start[which], end[which]

    def number(self, query: LiveQuery, expired: int, upto: int) -> int:
        """How many windows of all keys have not come out and end by `upto`, at most."""
        key, done = self._behind(query, expired, upto)
        window, last = query.window, self.last[key]
        assert isinstance(window, ContextFreeWindow)
        assert window.period is not None
        numbers = window.numbers(done, last, query.after, upto)
        # As floats: the sum of many keys may exceed 64 bits.
        if numbers is None:
            time = np.minimum(last, upto) - done.astype(np.float64)
            return int(np.maximum(time, 0.0).sum() / window.period)
        lowest, highest = numbers
        return int(np.maximum(highest - lowest + 1, 0).sum(dtype=np.float64))

    def _behind(self, query: LiveQuery, expired: int, upto: int) -> tuple[Column, Column]:
        """Keys that windows may have to come out for, and the time up to which theirs have ended."""
        window = query.window
        assert isinstance(window, ContextFreeWindow)
        key = np.flatnonzero(self.last > NEG_INF)
        last, shown = self.last[key], self.shown[key]
        done = np.maximum(self.first[key], np.where(last > shown, np.minimum(shown, expired), expired))
        needed = done < upto
        silent = np.flatnonzero(needed & (done > last))  # only windows around its last tuple are left
        needed[silent] = window.last_end(last[silent]) > done[silent]
        return key[needed], done[needed]


def _around(query: LiveQuery, low: Column, high: Column, upto: int) -> tuple[Column, Column]:
    """All windows that overlap one of these spans, in the order of their ends."""
    window = query.window
    assert isinstance(window, ContextFreeWindow)
    order = np.argsort(low)
    low, high = low[order], np.maximum.accumulate(high[order])
    apart = low[1:] > high[:-1]  # other spans overlap, and become one
    low, high = low[np.append(True, apart)[: len(low)]], high[np.append(apart, True)[: len(high)]]
    start, end = window.overlapping(low, high, query.after, upto)
    served = start >= query.since
    return start[served], end[served]
