"""Empty windows: which of them lie between the first and the last tuple of a key.

A window [start, end) comes out, empty or not, when it overlaps the extent of its key: from the
first to the last tuple that came in time. A tuple in no window counts as well. So a key needs two
times to be remembered, and one more to tell what has come out already.

Where silent keys are forgotten, an extent belongs to one life of a key (`muntin.slicing.lives`). A tuple
that arrived after the windows before it had expired has an extent for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from muntin.slicing.listing_kernels import begin_lives, spanned_windows
from muntin.slicing.live import LiveQuery
from muntin.slicing.schema import Role, Schema, Table, no_rows
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import ContextFreeWindow

__all__ = ["Extent"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def _unknown(size: int, value: int) -> Column:
    return np.full(size, value, dtype=np.int64)


@dataclass(slots=True)
class Extent(Table):
    """Per key the times of the first and the last tuple, and what `last` was when windows came out.

    A tuple that came when the windows before `final` had expired counts from `final` on: it says
    nothing about windows that were over before it came. `key`: the key of each extent, where extents belong
    to lives; None where the i-th extent is that of key i.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {"first": Role.MOMENT, "last": Role.MOMENT, "shown": Role.MOMENT, "key": Role.KEY}, optional=("key",)
    )

    first: Column = field(default_factory=no_rows)
    last: Column = field(default_factory=no_rows)
    shown: Column = field(default_factory=no_rows)
    key: Column | None = None

    @classmethod
    def of_lives(cls) -> Extent:
        """Extents of lives; there is no life yet."""
        return cls(key=no_rows())

    @property
    def known(self) -> Column:
        """The keys that have an extent; a key appears once for each of its lives."""
        return np.flatnonzero(self.last > NEG_INF) if self.key is None else self.key

    def grow(self, keys: int) -> None:
        """Make room for new keys."""
        new = keys - len(self.first)
        if self.key is None and new > 0:
            self.first = np.concatenate([self.first, _unknown(new, INF)])
            self.last = np.concatenate([self.last, _unknown(new, NEG_INF)])
            self.shown = np.concatenate([self.shown, _unknown(new, NEG_INF)])

    def keep(self, keys: Column, ids: Column) -> None:
        """Forget all other keys; `ids` are the new numbers of all."""
        if self.key is not None:  # a key with a life is always kept
            self.key = ids[self.key]
            return
        self._take(keys)

    def _take(self, rows: Column | Mask) -> None:
        self.first, self.last, self.shown = self.first[rows], self.last[rows], self.shown[rows]
        if self.key is not None:
            self.key = self.key[rows]

    def forget(self, query: LiveQuery, final: int, forget: int) -> None:
        """Drop the lives that no tuple can prolong and whose windows have expired."""
        window = query.window
        assert isinstance(window, ContextFreeWindow)
        silent = np.flatnonzero((self.last + forget <= final) & (self.last <= self.shown))
        over = silent[window.last_end(self.last[silent]) <= final]
        if len(over):
            left = np.ones(len(self.last), dtype=np.bool_)
            left[over] = False
            self._take(left)

    def note(
        self, query: LiveQuery, key: Column, first: Column, last: Column, final: int, forget: int | None
    ) -> None:
        """Extend the extents to the first and last times of tuples or slices, except late ones."""
        window = query.window
        assert isinstance(window, ContextFreeWindow)
        counts = first >= max(query.since, final)
        old = np.flatnonzero((first < final) & (first >= query.since))
        counts[old] = window.last_end(first[old]) > final
        key, first, last = key[counts], np.maximum(first[counts], final), last[counts]
        if self.key is not None:
            assert forget is not None
            self._prolong(key, first, last, forget)
            return
        self.first, self.last = self.first.copy(), self.last.copy()
        np.minimum.at(self.first, key, first)
        np.maximum.at(self.last, key, last)

    def _prolong(self, key: Column, first: Column, last: Column, forget: int) -> None:
        """Merge lives and new tuples that are less than `forget` apart."""
        assert self.key is not None
        touched = np.isin(self.key, key)
        others = [column[~touched] for column in (self.key, self.first, self.last, self.shown)]
        shown = np.concatenate([self.shown[touched], _unknown(len(first), NEG_INF)])
        first = np.concatenate([self.first[touched], first])
        last = np.concatenate([self.last[touched], last])
        key = np.concatenate([self.key[touched], key])
        order = np.lexsort((first, key, first > last))  # at the end those that are older than `final`
        key, first, last, shown = (column[order] for column in (key, first, last, shown))
        begins = np.ones(len(key), dtype=np.bool_)
        begin_lives(key, first, last, forget, begins)
        at = np.flatnonzero(begins)
        if len(at):
            known = np.minimum.reduceat(np.where(shown > NEG_INF, shown, INF), at)
            known[known == INF] = NEG_INF
            joined = (key[at], first[at], np.maximum.reduceat(last, at), known)
            pairs = zip(others, joined, strict=True)
            self.key, self.first, self.last, self.shown = (np.concatenate(pair) for pair in pairs)

    def windows(self, query: LiveQuery, expired: int, upto: int) -> tuple[Column, Column, Column]:
        """(key, start, end) of the windows that overlap an extent and end in (expired, upto].

        Also those that end before, of keys whose last tuple came since: they lie behind the one that
        was the last before.
        """
        row, done = self._behind(query, expired, upto)
        last, shown = self.last[row], self.shown[row]
        key = row if self.key is None else self.key[row]
        self.shown = self.last
        start, end = _around(query, np.minimum(done, last), last, upto)
        least = np.minimum.accumulate(start[::-1])[::-1]  # no later window starts before
        arguments = (start, end, least, done, last, shown, expired)
        out = np.empty((2, len(row) + 1024), dtype=np.int64)
        count = spanned_windows(*arguments, out)
        if count > out.shape[1]:
            out = np.empty((2, count), dtype=np.int64)
            spanned_windows(*arguments, out)
        place, which = out[:, :count]
        key = key[place]
        if self.key is not None:  # a window may overlap several lives of a key
            _, one = np.unique(key * len(start) + which, return_index=True)
            key, which = key[one], which[one]
        return key, start[which], end[which]

    def number(self, query: LiveQuery, expired: int, upto: int) -> int:
        """An upper bound of the windows of all keys that end by `upto` and were not emitted yet."""
        row, done = self._behind(query, expired, upto)
        window, last = query.window, self.last[row]
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
        """The extents with windows left to emit, and the time up to which their windows have ended."""
        window = query.window
        assert isinstance(window, ContextFreeWindow)
        row = np.flatnonzero(self.last > NEG_INF)
        last, shown = self.last[row], self.shown[row]
        done = np.maximum(self.first[row], np.where(last > shown, np.minimum(shown, expired), expired))
        needed = done < upto
        silent = np.flatnonzero(needed & (done > last))  # only windows around its last tuple are left
        needed[silent] = window.last_end(last[silent]) > done[silent]
        return row[needed], done[needed]


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
