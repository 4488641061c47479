"""Tuples kept in order of time, in arrays with room for more."""

from __future__ import annotations

import numpy as np

from benchmarks.baselines.technique import NONE, Ints


class KeptTuples:
    """Tuples by time and arrival.

    Adding n tuples in order costs O(n + m), where m tuples that are kept are younger than the first of
    them; making room is O(1) amortised.

    >>> kept = KeptTuples()
    >>> kept.add(np.array([1, 4]), np.array([10, 40]))
    >>> kept.add(np.array([3, 5]), np.array([30, 50]))
    >>> kept.evict(2)
    >>> kept.time.tolist(), kept.value.tolist(), kept.evicted
    ([3, 4, 5], [30, 40, 50], 1)
    """

    def __init__(self) -> None:
        self.evicted = 0
        self._times, self._values = NONE, NONE
        self._begin = self._end = 0

    @property
    def time(self) -> Ints:
        """Their times."""
        return self._times[self._begin : self._end]

    @property
    def value(self) -> Ints:
        """Their values."""
        return self._values[self._begin : self._end]

    def add(self, time: Ints, value: Ints) -> None:
        """Take in tuples that are in order among themselves."""
        from benchmarks.baselines.technique_kernels import merge_tuples

        self._make_room(len(time))
        at = self._begin + int(np.searchsorted(self.time, time[0], side="right"))
        younger = self._times[at : self._end].copy(), self._values[at : self._end].copy()
        merge_tuples(*younger, time, value, self._times[at:], self._values[at:])
        self._end += len(time)

    def evict(self, before: int) -> None:
        """Forget the tuples before this time."""
        gone = int(np.searchsorted(self.time, before))
        self._begin += gone
        self.evicted += gone

    def _make_room(self, more: int) -> None:
        live = self._end - self._begin
        if self._end + more <= len(self._times):
            return
        size = max(2 * live + more, 1024)
        for name, column in (("_times", self.time), ("_values", self.value)):
            roomy = np.empty(size, np.int64)
            roomy[:live] = column
            setattr(self, name, roomy)
        self._begin, self._end = 0, live
