"""Extents of keys: the times between which empty windows of a key are emitted.

A window [start, end) is emitted, empty or not, when it overlaps the extent of its key: from the
first to the last tuple that was not late. A tuple in no window counts as well. So a key needs two
times, and a third one that tells which windows were emitted already.

Where silent keys are forgotten, an extent belongs to one life of a key (`muntin.slicing.key_lives`). A tuple
that arrived after the windows before it had expired has an extent for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from muntin.slicing.listing_kernels import begin_lives, spanned_windows
from muntin.slicing.schema import Role, Schema, Table, no_rows
from muntin.slicing.served import ServedWindow
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import ContextFreeWindow

__all__ = ["KeyExtents"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class KeyExtents(Table):
    """Per key the times of the first and the last tuple, and the value of `last` when windows were emitted.

    A tuple that arrived when the windows before `final` had expired counts from `final` on: windows that
    were over before it arrived stay as they are. `key`: the key of each extent, where extents belong to
    lives; None where the i-th extent is that of key i.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {"first": Role.MOMENT, "last": Role.MOMENT, "shown": Role.MOMENT, "key": Role.KEY},
        optional=("key",),
        blank={"first": INF, "last": NEG_INF, "shown": NEG_INF},
    )

    first: Column = field(default_factory=no_rows)
    last: Column = field(default_factory=no_rows)
    shown: Column = field(default_factory=no_rows)
    key: Column | None = None

    @classmethod
    def of_lives(cls) -> KeyExtents:
        """Extents of lives; there is no life yet."""
        return cls(key=no_rows())

    @property
    def known(self) -> Column:
        """The keys that have an extent; a key appears once for each of its lives."""
        return np.flatnonzero(self.last > NEG_INF) if self.key is None else self.key

    def held_keys(self, final: int) -> Column:
        return self.known

    def without_expired(self, served: ServedWindow, final: int, forget: int) -> KeyExtents:
        """Without the lives that no tuple can prolong and whose windows have expired."""
        silent = np.flatnonzero((self.last + forget <= final) & (self.last <= self.shown))
        over = silent[_window(served).last_end(self.last[silent]) <= final]
        if not len(over):
            return self
        left = np.ones(len(self.last), dtype=np.bool_)
        left[over] = False
        return self.take(left)

    def extended(
        self, served: ServedWindow, key: Column, first: Column, last: Column, final: int, forget: int | None
    ) -> KeyExtents:
        """Extended to the first and last times of tuples or slices, except late ones."""
        counts = first >= max(served.since, final)
        old = np.flatnonzero((first < final) & (first >= served.since))
        counts[old] = _window(served).last_end(first[old]) > final
        key, first, last = key[counts], np.maximum(first[counts], final), last[counts]
        if self.key is not None:
            assert forget is not None
            return self._prolonged(key, first, last, forget)
        firsts, lasts = self.first.copy(), self.last.copy()
        np.minimum.at(firsts, key, first)
        np.maximum.at(lasts, key, last)
        return replace(self, first=firsts, last=lasts)

    def _prolonged(self, key: Column, first: Column, last: Column, forget: int) -> KeyExtents:
        """Lives and new tuples that are less than `forget` apart are merged."""
        touched = np.isin(self.known, key)
        lives = self.take(touched)
        shown = np.append(lives.shown, np.full(len(first), NEG_INF))
        first, last, key = (
            np.append(lives.first, first),
            np.append(lives.last, last),
            np.append(lives.known, key),
        )
        order = np.lexsort((first, key, first > last))  # at the end those that are older than `final`
        key, first, last, shown = (column[order] for column in (key, first, last, shown))
        begins = np.ones(len(key), dtype=np.bool_)
        begin_lives(key, first, last, forget, begins)
        at = np.flatnonzero(begins)
        if not len(at):
            return self
        known = np.minimum.reduceat(np.where(shown > NEG_INF, shown, INF), at)
        known[known == INF] = NEG_INF
        joined = KeyExtents(first[at], np.maximum.reduceat(last, at), known, key[at])
        return self.take(~touched).join(joined)

    def windows(
        self, served: ServedWindow, expired: int, upto: int
    ) -> tuple[KeyExtents, Column, Column, Column]:
        """(key, start, end) of the windows that overlap an extent and end in (expired, upto].

        Also those that end before, of keys whose last tuple arrived since: they lie behind the one that
        was the last before. Returned with the extents that know about these windows.
        """
        row, done = self._behind(served, expired, upto)
        last, shown = self.last[row], self.shown[row]
        key = row if self.key is None else self.key[row]
        start, end = _around(served, np.minimum(done, last), last, upto)
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
        return replace(self, shown=self.last), key, start[which], end[which]

    def number(self, served: ServedWindow, expired: int, upto: int) -> int:
        """An upper bound of the windows of all keys that end by `upto` and were not emitted yet."""
        row, done = self._behind(served, expired, upto)
        window, last = _window(served), self.last[row]
        assert window.period is not None
        numbers = window.numbers(done, last, served.after, upto)
        # As floats: the sum of many keys may exceed 64 bits.
        if numbers is None:
            time = np.minimum(last, upto) - done.astype(np.float64)
            return int(np.maximum(time, 0.0).sum() / window.period)
        lowest, highest = numbers
        return int(np.maximum(highest - lowest + 1, 0).sum(dtype=np.float64))

    def _behind(self, served: ServedWindow, expired: int, upto: int) -> tuple[Column, Column]:
        """The extents with windows left to emit, and the time up to which their windows have ended."""
        row = np.flatnonzero(self.last > NEG_INF)
        last, shown = self.last[row], self.shown[row]
        done = np.maximum(self.first[row], np.where(last > shown, np.minimum(shown, expired), expired))
        needed = done < upto
        silent = np.flatnonzero(needed & (done > last))  # only windows around its last tuple are left
        needed[silent] = _window(served).last_end(last[silent]) > done[silent]
        return row[needed], done[needed]


def _window(served: ServedWindow) -> ContextFreeWindow:
    assert isinstance(served.window, ContextFreeWindow)
    return served.window


def _around(served: ServedWindow, low: Column, high: Column, upto: int) -> tuple[Column, Column]:
    """All windows that overlap one of these spans, in the order of their ends."""
    order = np.argsort(low)
    low, high = low[order], np.maximum.accumulate(high[order])
    apart = low[1:] > high[:-1]  # other spans overlap, and become one
    low, high = low[np.append(True, apart)[: len(low)]], high[np.append(apart, True)[: len(high)]]
    start, end = _window(served).overlapping(low, high, served.after, upto)
    within = start >= served.since
    return start[within], end[within]
