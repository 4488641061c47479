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

from muntin.errors import DataError, QueryError, value_text
from muntin.expressions import Expr, as_expr
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.base import Context, ContextFreeWindow, Ints, Window
from muntin.windows.begins_and_ends import BeginsAndEnds
from muntin.windows.context_checks import KeyPositions
from muntin.windows.moments import NO_MOMENT, KeyWalk, Moment
from muntin.windows.records import (
    MOST_WINDOWS,
    Record,
    SeesRecords,
    cuts_of_user_code,
    guarded,
    limited,
    records_of,
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
        if issubclass(cls, SeesRecords):
            cls.timed = cls.next_moment is not SeesRecords.next_moment
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
        given = []
        edge = self._next(max(lo, -LIMIT) - 1)
        while edge <= hi:
            given.append(edge)
            edge = self._next(edge)
        return np.array(given, np.int64)

    def starts(self, lo: int, hi: int) -> Ints:
        edges = self.edges(lo, hi).tolist()
        return np.array([e for e in edges if any(start == e for start, _ in self._at(e))], np.int64)

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        given: set[tuple[int, int]] = set()
        i = 0
        while i < len(last):
            edge, edges = int(first[i]), 0
            while edge <= last[i]:
                given.update((end, start) for start, end in self._at(edge) if after < end <= upto)
                if len(given) > MOST_WINDOWS * max(1, len(last) // 1_000):
                    raise too_many(self, "containing", edge)
                edge = self._next(edge)
                edges += 1
                if edges > MOST_EDGES:
                    raise self._too_many(int(first[i]), int(last[i]))
            i = int(np.searchsorted(last, min(edge, INF)))  # spans before it lie in no other windows
        ends, starts = np.array(sorted(given), np.int64).reshape(-1, 2).T
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

        given = guarded(self, "containing", time, call)
        for start, end in given:
            self._require_edges(start, end, time)
            if not start <= time < end:
                raise wrong(self, f"containing must give windows around {time}: got [{start}, {end})")
            if max(-start, end) > LIMIT + LONGEST:
                rule = f"containing must give times within +-2**62: got [{start}, {end}) for {time}"
                raise wrong(self, f"{rule}; let a window without end grow, as landmark does")
        return given


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

    With `next_moment` and `at_moment`, windows also begin and end in time, when the watermark
    reaches a moment; a list of times in place of a number gives the edges:

    >>> class Visit(ForwardContextFree):
    ...     '''A session: it ends 5 after its last tuple.'''
    ...
    ...     def observe(self, state, record):
    ...         return record.time, int(state is None), 0
    ...
    ...     def next_moment(self, state):
    ...         return None if state is None else state + 6
    ...
    ...     def at_moment(self, state, moment):
    ...         return None, 0, [state + 5]
    >>> window = Visit()
    >>> window.cut(window.initial(1), Tuples.of([1, 4, 20]), upto=22).intervals()
    [(1, 9)]
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
    def observe(self, state: Any, record: Record) -> tuple[Any, Iterable[tuple[int, ...]]]:
        """The new state, and the windows (begin, end) in ranks that this record completes.

        (begin, end, start, stop) also gives the edges in time, around the times of its tuples.
        """

    def at_moment(self, state: Any, moment: Moment) -> tuple[Any, Iterable[tuple[int, ...]]]:
        """The same for a moment that `next_moment` named, when the watermark reaches it."""
        return state, []

    def keep_rank(self, state: Any, rank: int) -> int:
        """The smallest rank at which a window may begin that the record `rank` or a later one completes.

        Tuples before it are forgotten; without an own method all are kept for ever.
        """
        return 0

    def initial(self, n: int) -> Contexts:
        contexts = np.empty(n, object)
        for i in range(n):
            contexts[i] = [self.initial_state(), -1, 0, *([NO_MOMENT] if self.timed else [])]
        return contexts

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows: list[tuple[int, ...]] = []
        record_at = records_of(tuples)
        offsets, ranks = tuples.offsets.tolist(), tuples.rank.tolist()
        times = tuples.time.tolist()
        for segment in range(len(contexts)):
            lo, hi = offsets[segment], offsets[segment + 1]
            if lo == hi:
                continue
            walk = _Walk(self, tuples, ending, segment, copy.deepcopy(contexts[segment]))
            walk.look_back(ranks[lo], times[lo:hi])
            for i in range(lo + walk.seen - ranks[lo], hi):
                walk.to_record(record_at(i, walk.base))
            walk.to_end()
            contexts[segment] = walk.context()
            rows += walk.rows
        return cuts_of_user_code(rows)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        first_stored = []
        for (state, base, next_rank, *_), until in zip(contexts, seen.tolist(), strict=True):
            if base < 0:
                first_stored.append(until)
                continue
            rank = next_rank - base
            given = guarded(self, "keep_rank", rank, bound(self.keep_rank, state, rank))
            first = whole(given, self, "the rank that keep_rank gives", str(rank))
            first_stored.append(min(base + max(first, 0), until))
        return np.array(first_stored, np.int64)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        if not TupleDriven.contexts_fit(self, contexts, positions):
            return False
        bounds = zip(contexts, positions.first_stored.tolist(), positions.rank.tolist(), strict=True)
        return all(
            base < 0 or max(base, first_stored) <= seen <= rank
            for (_, base, seen, *_), first_stored, rank in bounds
        )


class _Walk(KeyWalk[ForwardContextAware]):
    """The stored tuples of a key, from the rank `oldest` on, and `rows` of complete windows."""

    __slots__ = ("oldest", "rows", "times")

    def __init__(
        self, window: ForwardContextAware, tuples: Tuples, ending: Ending, segment: int, context: list[Any]
    ) -> None:
        super().__init__(window, tuples, ending, segment)
        self.state, self.base, self.seen, *reached = context
        self.reached = reached[0] if reached else NO_MOMENT
        self.rows: list[tuple[int, ...]] = []

    def look_back(self, oldest: int, times: list[int]) -> None:
        """Start with these tuples, the first of which has the rank `oldest`."""
        if self.base < 0:
            self.base = self.seen = oldest
        self.oldest, self.times = oldest, times

    def context(self) -> list[Any]:
        return [self.state, self.base, self.seen, *([self.reached] if self.window.timed else [])]

    def meet(self, now: Record | Moment) -> Any:
        window, state = self.window, self.state
        function = "at_moment" if isinstance(now, Moment) else "observe"

        def call() -> tuple[Any, list[tuple[int, ...]]]:
            answer = window.at_moment(state, now) if isinstance(now, Moment) else window.observe(state, now)
            after, given = answer
            windows = limited(given, window, function, now)
            return after, [tuple(self._whole(edge, now) for edge in edges) for edges in windows]

        after, given = guarded(window, function, now, call)
        self.rows += [self._row(edges, now) for edges in given]
        return after

    def _whole(self, edge: Any, now: Record | Moment) -> int:
        return whole(edge, self.window, "a rank or a time that observe gives", value_text(now, 400))

    def _row(self, edges: tuple[int, ...], now: Record | Moment) -> tuple[int, ...]:
        """The window that user code returned, with its edges in time.

        It ends at the time of the first tuple after it where that was seen, else with the record or at the
        moment.
        """
        if len(edges) not in (2, 4):
            rule = (
                "observe and at_moment must return windows as (begin, end), or as (begin, end, start, stop)"
            )
            raise wrong(self.window, f"{rule}: got {edges} for {now!r}")
        begin, end, *given = edges
        is_record = isinstance(now, Record)
        seen = now.rank + is_record
        if not 0 <= begin < end <= seen:
            raise wrong(
                self.window,
                f"windows must have ranks of records that were seen: got [{begin}, {end}) for {now!r}",
            )
        zero = self.base - self.oldest
        if begin + zero < 0:
            got = f"observe gave [{begin}, {end}) for {now!r}, and only ranks from {-zero} on are stored"
            raise wrong(self.window, f"keep_rank dropped a rank that a window needs: {got}")
        complete_at = now.time + is_record  # a window that a record completes is complete just after it
        first, last = self.times[begin + zero], self.times[end - 1 + zero]
        start, stop = given or (first, self.times[end + zero] if end < seen else complete_at)
        if not (-LIMIT <= start <= first and last <= stop <= complete_at):
            bounds = f"start at {first} or before, and end from {last} to {complete_at}"
            raise wrong(self.window, f"the window of the ranks [{begin}, {end}) must {bounds}: got {given}")
        return self.segment, self.base + begin, self.base + end, start, stop, complete_at
