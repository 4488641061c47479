"""Evenly spaced edges, over arrays of times."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import numpy as np

from muntin.timeline import INF, NEG_INF
from muntin.windows.base import ContextFreeWindow, Ints

Layout: TypeAlias = tuple[int, int, int, int, int]
"""(offset, period, together, first_end, step): the edges of evenly spaced windows.

Window k starts at offset + k // together * period and ends at first_end + k * step: `together` windows
start together. With one at a time, the step is the period.
"""


class EvenlySpaced(ContextFreeWindow):
    """Windows with evenly spaced starts and ends, numbered in the order of their ends."""

    __slots__ = ()

    @abstractmethod
    def layout(self) -> Layout:
        """Where window k starts and ends."""

    @property
    def period(self) -> int:
        return self.layout()[4]

    def edges(self, lo: int, hi: int) -> Ints:
        offset, period, _, first_end, step = self.layout()
        ends = multiples(first_end, step, lo, hi)
        if (first_end - offset) % step == 0 == period % step:
            return ends
        return np.union1d(self.starts(lo, hi), ends)

    def starts(self, lo: int, hi: int) -> Ints:
        offset, period, _, _, _ = self.layout()
        return multiples(offset, period, lo, hi)

    def numbers(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        offset, period, together, first_end, step = self.layout()
        lowest = np.maximum((first - first_end) // step + 1, clamp((after - first_end) // step + 1))
        highest = (last - offset) // period
        if together > 1:
            highest = (highest + 1) * together - 1
        return lowest, np.minimum(highest, clamp((upto - first_end) // step))

    def numbered(self, number: Ints) -> tuple[Ints, Ints]:
        """Starts and ends of the windows with these numbers."""
        offset, period, together, first_end, step = self.layout()
        if together > 1:
            return number // together * period + offset, number * step + first_end
        starts = number * period + offset
        return starts, starts + (first_end - offset)

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        return self.numbered(unseen_ranges(*self.numbers(first, last, after, upto)))

    def last_end(self, times: Ints) -> Ints:
        offset, period, together, first_end, step = self.layout()
        into = (times - offset) % period
        reach = first_end - offset + (together - 1) * step  # of the windows that start together
        ends = times - into + reach
        return ends if reach >= period else np.where(into < reach, ends, NEG_INF)

    def first_start(self, after: int) -> int:
        offset, period, together, first_end, step = self.layout()
        return clamp(((after - first_end) // step + 1) // together * period + offset)


def clamp(value: int) -> int:
    """A time inside the range of int64."""
    return min(max(value, NEG_INF), INF)


def multiples(offset: int, step: int, lo: int, hi: int) -> Ints:
    """All offset + k * step in [lo, hi], k any integer.

    >>> multiples(1, 10, -12, 12).tolist()
    [-9, 1, 11]
    """
    first = lo + (offset - lo) % step
    count = max(0, (hi - first) // step + 1)
    return first + step * np.arange(count, dtype=np.int64)


def integer_ranges(first: Ints, last: Ints) -> Ints:
    """The integers first[0]..last[0], first[1]..last[1], ... in sequence; both ends inclusive.

    >>> integer_ranges(np.array([1, 7, 9]), np.array([3, 6, 9])).tolist()
    [1, 2, 3, 9]
    """
    counts = np.maximum(last - first + 1, 0)
    stops = np.cumsum(counts)
    total = int(stops[-1]) if len(stops) else 0
    return np.repeat(first - (stops - counts), counts) + np.arange(total, dtype=np.int64)


def unseen_ranges(first: Ints, last: Ints) -> Ints:
    """The union of integer ranges whose ends never decrease: each integer once, in order.

    >>> unseen_ranges(np.array([1, 2, 8]), np.array([3, 4, 9])).tolist()
    [1, 2, 3, 4, 8, 9]
    """
    first = first.copy()
    np.maximum(first[1:], last[:-1] + 1, out=first[1:])
    return integer_ranges(first, last)


def count_unseen(first: Ints, last: Ints, begins: Ints) -> int:
    """The number of integers that `unseen_ranges` gives, starting over at the positions `begins`.

    >>> count_unseen(np.array([1, 2, 2]), np.array([3, 4, 4]), begins=np.array([2]))
    7
    """
    unseen = first.copy()
    np.maximum(first[1:], last[:-1] + 1, out=unseen[1:])
    unseen[begins] = first[begins]
    # As floats: the sum may exceed 64 bits.
    return int(np.maximum(last - unseen + 1, 0).sum(dtype=np.float64))
