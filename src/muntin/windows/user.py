"""The three interfaces for windows of the user's own [scotty §4.4, §5.4.2].

Write a subclass of the one whose context the windows need:

- `ContextFree`: all edges are known without looking at tuples;
- `ForwardContextFree`: each tuple determines at once which windows begin or end with it;
- `ForwardContextAware`: a tuple may reveal a window that began before it.

The last two see a tuple as a `Record`.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable
from functools import partial as bound
from typing import Any, ClassVar

import numpy as np

from muntin.errors import DataError, QueryError, UserCodeError, value_text
from muntin.expressions import Expr, as_expr
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.base import Context, ContextFreeWindow, Ints, Window
from muntin.windows.begins_and_ends import BeginsAndEnds
from muntin.windows.context_checks import KeyPositions
from muntin.windows.records import (
    MOST_WINDOWS,
    Record,
    SeesRecords,
    cuts_of_user_code,
    guarded,
    limited,
    records_of,
    skip_or_raise,
    too_many,
    whole,
    wrong,
)
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import LONGEST

MOST_EDGES = 1_000_000
"""Bounds the edges that one step asks `next_edge` for, where empty windows are emitted."""


class _UserDefined(Window):
    """Base of the three interfaces."""

    columns: ClassVar[tuple[str, ...]] = ()
    """The columns that `observe` reads; without them it reads all."""

    def __init_subclass__(cls) -> None:
        if getattr(cls, "emit_empty", False) and not issubclass(cls, ContextFreeWindow):
            raise QueryError(
                f"emit_empty must be left out of {cls.__name__}: got True; only subclasses of ContextFree "
                "know where windows without a tuple lie"
            )

    def describe(self) -> str:
        return type(self).__name__ + (", also empty" if getattr(self, "emit_empty", False) else "")

    def parameters(self) -> dict[str, object]:
        raise QueryError(f"{type(self).__name__} is a class of its own, which no constructor makes")

    def inputs(self) -> tuple[Expr, ...]:
        return tuple(as_expr(name) for name in self.columns)


class ContextFree(_UserDefined, ContextFreeWindow):
    """Windows at places known beforehand, whatever the tuples are.

    >>> class Shifts(ContextFree):
    ...     '''Two shifts a day, of unequal length: from 0 to 10 and from 10 to 24.'''
    ...
    ...     def next_edge(self, time):
    ...         day, hour = divmod(time, 24)
    ...         return 24 * day + (10 if hour < 10 else 24)
    ...
    ...     def containing(self, time):
    ...         day, hour = divmod(time, 24)
    ...         return [(24 * day, 24 * day + 10) if hour < 10 else (24 * day + 10, 24 * day + 24)]
    >>> Shifts().edges(0, 30).tolist()
    [0, 10, 24]
    >>> starts, ends = Shifts().windows(np.array([3, 11, 12]), after=0, upto=100)
    >>> starts.tolist(), ends.tolist()
    ([0, 10], [10, 24])
    """

    emit_empty: bool = False
    """True also emits windows without a tuple, between the first and the last tuple of a key."""

    @property
    def interpreted(self) -> bool:
        return True

    @abstractmethod
    def next_edge(self, time: int) -> int:
        """The first edge (start or end of a window) strictly after `time`, however far if there is none."""

    @abstractmethod
    def containing(self, time: int) -> Iterable[tuple[int, int]]:
        """(start, end) of every window with start <= time < end."""

    def edges(self, lo: int, hi: int) -> Ints:
        found = []
        edge = self._next(max(lo, -LIMIT) - 1)
        while edge <= hi:
            found.append(edge)
            edge = self._next(edge)
        return np.array(found, np.int64)

    def starts(self, lo: int, hi: int) -> Ints:
        edges = self.edges(lo, hi).tolist()
        return np.array([e for e in edges if any(start == e for start, _ in self._at(e))], np.int64)

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        found: set[tuple[int, int]] = set()
        i = 0
        while i < len(last):
            edge, edges = int(first[i]), 0
            while edge <= last[i]:
                found.update((end, start) for start, end in self._at(edge) if after < end <= upto)
                if len(found) > MOST_WINDOWS * max(1, len(last) // 1_000):
                    raise too_many(self, "containing", edge)
                edge = self._next(edge)
                edges += 1
                if edges > MOST_EDGES:
                    raise self._too_many(int(first[i]), int(last[i]))
            i = int(np.searchsorted(last, min(edge, INF)))  # spans before it lie in no other windows
        ends, starts = np.array(sorted(found), np.int64).reshape(-1, 2).T
        return starts, ends

    def last_end(self, times: Ints) -> Ints:
        distinct, place = np.unique(times, return_inverse=True)
        ends = np.empty(len(distinct), np.int64)
        lo = 0
        while lo < len(distinct):
            time = int(distinct[lo])
            hi = int(np.searchsorted(distinct, min(self._next(time), INF)))
            ends[lo:hi] = max((end for _, end in self._at(time)), default=NEG_INF)
            lo = hi
        return ends[place]

    def first_start(self, after: int) -> int:
        if abs(after) >= LIMIT:
            return NEG_INF if after < 0 else INF
        # Without a window around `after`, the next one starts at the next edge or later.
        return min((start for start, _ in self._at(after)), default=self._next(after))

    def _too_many(self, first: int, last: int) -> DataError:
        return DataError(
            f"{self.describe()}: windows with emit_empty must not be more than {MOST_EDGES:,} at once: got "
            f"tuples from {first} to {last}. Has one of them a wrong time? If not, advance the watermark "
            "in smaller steps"
        )

    def _next(self, time: int) -> int:
        edge = guarded(self, "next_edge", time, lambda: self._edge(self.next_edge(time), time))
        if edge <= time:
            raise wrong(self, f"next_edge must be after the time: got {edge} for {time}")
        return edge

    def _require_edges(self, start: int, end: int, time: int) -> None:
        """Slices are cut where `next_edge` says: a window with another edge would get tuples of others."""
        for name, edge in (("start", start), ("end", end)):
            if (known := self._next(edge - 1)) != edge:
                rule = "containing must give edges that next_edge gives as well"
                got = f"got [{start}, {end}) for {time}, and next_edge({edge - 1}) is {known}"
                raise wrong(self, f"{rule}: {got}; let next_edge give the {name} {edge}, too")

    def _edge(self, edge: Any, time: int) -> int:
        return whole(edge, self, "an edge", str(time))

    def _at(self, time: int) -> list[tuple[int, int]]:
        def call() -> list[tuple[int, int]]:
            windows = limited(self.containing(time), self, "containing", time)
            return [(self._edge(start, time), self._edge(end, time)) for start, end in windows]

        found = guarded(self, "containing", time, call)
        for start, end in found:
            self._require_edges(start, end, time)
            if not start <= time < end:
                raise wrong(self, f"containing must give windows around {time}: got [{start}, {end})")
            if max(-start, end) > LIMIT + LONGEST:
                rule = f"containing must give times within +-2**62: got [{start}, {end}) for {time}"
                raise wrong(self, f"{rule}; let a window without end grow, as landmark does")
        return found


class ForwardContextFree(_UserDefined, BeginsAndEnds):
    """Windows whose begins and ends each tuple determines, together with the tuples before it.

    The state is made of plain values, which a snapshot can store: numbers, texts,
    bytes, dates, and tuples, lists, sets, dicts of them.

    >>> class Shopping(ForwardContextFree):
    ...     '''From entering the shop to leaving it; the tuple of leaving is outside.'''
    ...
    ...     columns = ("event",)
    ...
    ...     def observe(self, state, record):
    ...         return state, int(record["event"] == "enter"), int(record["event"] == "leave")
    >>> window = Shopping()
    >>> tuples = Tuples.of([1, 4, 6, 9], event=["enter", "look", "leave", "enter"])
    >>> window.cut(window.initial(1), tuples, upto=9).intervals()
    [(1, 6)]
    """


class ForwardContextAware(_UserDefined, SeesRecords):
    """Windows that a tuple may reveal after they began.

    >>> class Peaks(ForwardContextAware):
    ...     '''Each new highest value, with the two tuples before it.'''
    ...
    ...     columns = ("height",)
    ...
    ...     def observe(self, state, record):
    ...         if state is not None and record["height"] <= state:
    ...             return state, []
    ...         return record["height"], [(max(0, record.rank - 2), record.rank + 1)]
    ...
    ...     def keep_rank(self, state, rank):
    ...         return max(0, rank - 2)
    >>> window = Peaks()
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 4, 6, 9], height=[5, 3, 4, 8]), upto=9)
    >>> cuts.intervals(), cuts.begin.tolist()
    ([(1, 2), (4, 10)], [0, 1])
    """

    context: ClassVar[Context] = Context.FORWARD_AWARE

    @abstractmethod
    def observe(self, state: Any, record: Record) -> tuple[Any, Iterable[tuple[int, int]]]:
        """The new state, and the windows [begin rank, end rank) that this record completes."""

    def keep_rank(self, state: Any, rank: int) -> int:
        """The smallest rank at which a window may begin that the record `rank` or a later one completes.

        Tuples before it are forgotten; without an own method all are kept for ever.
        """
        return 0

    def initial(self, n: int) -> Contexts:
        contexts = np.empty(n, object)
        for i in range(n):
            contexts[i] = [self.initial_state(), -1, 0]
        return contexts

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows: list[tuple[int, ...]] = []
        record_at = records_of(tuples)
        offsets, times, ranks = tuples.offsets.tolist(), tuples.time.tolist(), tuples.rank.tolist()
        for segment in range(len(contexts)):
            lo, hi = offsets[segment], offsets[segment + 1]
            if lo == hi:
                continue
            state, base, seen = copy.deepcopy(contexts[segment])
            base, seen = (ranks[lo], ranks[lo]) if base < 0 else (base, seen)
            for i in range(lo + seen - ranks[lo], hi):
                record = record_at(i, base)
                before = state if tuples.failed is None else copy.deepcopy(state)
                try:
                    state, found = self._observed(state, record, ranks[lo] - base)
                except UserCodeError as error:
                    skip_or_raise(tuples, error)
                    state, found = before, []
                for begin, end in found:
                    start, stop = times[lo + base + begin - ranks[lo]], record.time + 1
                    rows.append((segment, base + begin, base + end, start, stop, stop))
                seen = ranks[i] + 1
            contexts[segment] = [state, base, seen]
        return cuts_of_user_code(rows)

    def _observed(self, state: Any, record: Record, oldest: int) -> tuple[Any, list[tuple[int, int]]]:
        """The new state and the windows; ranks from `oldest` on were kept."""

        def call() -> tuple[Any, list[tuple[int, int]]]:
            after, found = self.observe(state, record)
            windows = limited(found, self, "observe", record)
            return after, [(self._whole(begin, record), self._whole(end, record)) for begin, end in windows]

        state, found = guarded(self, "observe", record, call)
        for begin, end in found:
            self._check(begin, end, oldest, record)
        return state, found

    def _whole(self, rank: Any, record: Record) -> int:
        return whole(rank, self, "a rank that observe gives", value_text(record, 400))

    def _check(self, begin: int, end: int, oldest: int, record: Record) -> None:
        if not 0 <= begin < end <= record.rank + 1:
            raise wrong(self, f"observe must give seen ranks: got [{begin}, {end}) for {record!r}")
        if begin < oldest:
            got = f"observe gave [{begin}, {end}) for {record!r}, and only ranks from {oldest} on were kept"
            raise wrong(self, f"keep_rank let go of a rank that a window needs: {got}")

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        kept = []
        for (state, base, next_rank), until in zip(contexts, seen.tolist(), strict=True):
            if base < 0:
                kept.append(until)
                continue
            rank = next_rank - base
            found = guarded(self, "keep_rank", rank, bound(self.keep_rank, state, rank))
            first = whole(found, self, "the rank that keep_rank gives", str(rank))
            kept.append(min(base + max(first, 0), until))
        return np.array(kept, np.int64)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        if not TupleDriven.contexts_fit(self, contexts, positions):
            return False
        bounds = zip(contexts, positions.kept.tolist(), positions.rank.tolist(), strict=True)
        return all(base < 0 or max(base, kept) <= seen <= rank for (_, base, seen), kept, rank in bounds)
