"""Recalculate from scratch: the oracle of the stores, plain enough to be seen to be right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from muntin.stores.monoids import Monoid, named


class Recalculate:
    """A list of entries in order of time; every answer combines them anew.

    ``ties=True`` keeps entries of one time apart, as the in-order Lite stores do.

    >>> window = Recalculate("sum")
    >>> window.insert_many([3, 1, 3], [1.0, 2.0, 4.0])
    >>> window.query(), window.query_range(0, 3), len(window)
    (7.0, 2.0, 2)
    """

    def __init__(self, monoid: str | Monoid, *, dtype: str = "float64", ties: bool = False) -> None:
        self.monoid = named(monoid, dtype) if isinstance(monoid, str) else monoid
        self.ties = ties
        self.combines = 0
        self._entries: list[tuple[Any, Any]] = []

    def insert(self, t: Any, v: Any) -> None:
        """Put the value after all entries up to its time: O(n)."""
        p = self.monoid.python.lift(v)
        older = [entry for entry in self._entries if entry[0] <= t]
        younger = [entry for entry in self._entries if entry[0] > t]
        if older and older[-1][0] == t and not self.ties:
            p = self._combine(older.pop()[1], p)
        self._entries = [*older, (t, p), *younger]

    def insert_many(self, ts: Iterable[Any], vs: Iterable[Any]) -> None:
        """One after the other."""
        for t, v in zip(ts, vs, strict=True):
            self.insert(t, v)

    def evict(self, t: Any = None) -> None:
        """Remove the oldest entry, or everything at time ``t``, which may be nothing."""
        if t is None:
            del self._entries[0]
        else:
            self._entries = [entry for entry in self._entries if entry[0] != t]

    def evict_before(self, t: Any) -> int:
        """Remove every entry before ``t``; how many."""
        before = len(self._entries)
        self._entries = [entry for entry in self._entries if entry[0] >= t]
        return before - len(self._entries)

    def query(self) -> Any:
        """Combine all entries: n - 1 combines."""
        return self._fold(self._entries)

    def query_range(self, a: Any, b: Any) -> Any:
        """Combine the entries with ``a <= time < b``."""
        return self._fold([entry for entry in self._entries if a <= entry[0] < b])

    def times(self) -> list[Any]:
        """The times of the entries, oldest first."""
        return [t for t, _ in self._entries]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def check_invariants(self) -> None:
        """Entries are in order."""
        assert self.times() == sorted(self.times())

    def _fold(self, entries: list[tuple[Any, Any]]) -> Any:
        if not entries:
            return self.monoid.empty
        total = entries[0][1]
        for _, p in entries[1:]:
            total = self._combine(total, p)
        return self.monoid.lower(total)

    def _combine(self, p: Any, q: Any) -> Any:
        self.combines += 1
        return self.monoid.python.combine(p, q)
