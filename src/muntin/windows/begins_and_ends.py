"""Windows that begin and end with the tuples that the user's code names [cutty §3.2]."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.base import Context, Ints
from muntin.windows.moments import NO_MOMENT, KeyWalk, Moment, edge_times
from muntin.windows.records import (
    MOST_WINDOWS,
    Record,
    SeesRecords,
    cuts_of_user_code,
    guarded,
    records_of,
    too_many,
)
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, Tuples

Edges: TypeAlias = "int | Sequence[int]"
"""A number of edges at the present record or moment, or the times of the edges."""


class BeginsAndEnds(SeesRecords):
    """Base of windows for which user code counts, per record, the windows that begin and end with it.

    The context of a key is [state, open windows as [rank, time] oldest first, ranks
    seen, time of the last tuple, first rank], and where there are moments, the last one.
    """

    __slots__ = ()

    context: ClassVar[Context] = Context.FORWARD_FREE

    @abstractmethod
    def observe(self, state: Any, record: Record) -> tuple[Any, Edges, Edges]:
        """The new state, the windows that begin with this record, and those that end before it.

        The oldest open windows end first, and ends come before begins. Both are numbers, or lists of
        times: a window starts at the record or before it, and ends at the record or before it, but not
        before the last record that it contains.
        """

    def at_moment(self, state: Any, moment: Moment) -> tuple[Any, Edges, Edges]:
        """The same for the moment of `next_moment`, when the watermark reaches it."""
        return state, 0, 0

    def _user_function(self) -> str:
        """The name of the user's function, for messages."""
        return "observe"

    def initial(self, n: int) -> Contexts:
        contexts = np.empty(n, object)
        for i in range(n):
            contexts[i] = [self.initial_state(), [], 0, 0, -1, *([NO_MOMENT] if self.timed else [])]
        return contexts

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows: list[tuple[int, ...]] = []
        opened: set[tuple[int, int]] = set()
        record_at = records_of(tuples)
        offsets, ranks = tuples.offsets.tolist(), tuples.rank.tolist()
        for segment in range(len(contexts)):
            # A copy: the user's code may change its state in place, and a caller may keep the old one.
            walk = _Walk(self, tuples, ending, segment, copy.deepcopy(contexts[segment]))
            for i in range(offsets[segment], offsets[segment + 1]):
                if walk.base < 0:
                    walk.base = walk.seen = ranks[i]
                walk.to_record(record_at(i, walk.base))
            walk.to_end()
            contexts[segment] = walk.context()
            opened |= walk.opened
            rows += walk.rows
            if ending.closing:
                rows += walk.still_open()
        return cuts_of_user_code(rows, opened)

    def open_until(self, contexts: Contexts) -> int:
        if not self.timed:
            return NEG_INF
        moments = [self.next_moment(context[0]) for context in contexts if context[1]]
        return max((moment for moment in moments if moment is not None), default=NEG_INF)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        begins = [context[1][0][0] if context[1] else INF for context in contexts]
        return np.minimum(np.array(begins, np.int64), seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        pairs = [(i, begin) for i, context in enumerate(contexts) for begin, _ in context[1]]
        keys, ranks = np.array(pairs, np.int64).reshape(-1, 2).T
        return keys, ranks


class _Walk(KeyWalk[BeginsAndEnds]):
    """The open windows of a key: `begun` as [rank, time], `rows` of those that ended, `opened` begins."""

    __slots__ = ("begun", "last", "opened", "rows")

    def __init__(
        self, window: BeginsAndEnds, tuples: Tuples, ending: Ending, segment: int, context: list[Any]
    ) -> None:
        super().__init__(window, tuples, ending, segment)
        self.state, self.begun, self.seen, self.last, self.base, *reached = context
        self.reached = reached[0] if reached else NO_MOMENT
        self.rows: list[tuple[int, ...]] = []
        self.opened: set[tuple[int, int]] = set()

    def context(self) -> list[Any]:
        reached = [self.reached] if self.window.timed else []
        return [self.state, self.begun, self.seen, self.last, self.base, *reached]

    def meet(self, now: Record | Moment) -> Any:
        window, state = self.window, self.state
        function = "at_moment" if isinstance(now, Moment) else window._user_function()

        def call() -> tuple[Any, Any, Any]:
            answer = window.at_moment(state, now) if isinstance(now, Moment) else window.observe(state, now)
            after, begins, ends = answer
            return after, begins, ends

        after, begins, ends = guarded(window, function, now, call)
        rank = self.base + now.rank
        last = self.last if rank > self.base else now.time
        starts = edge_times(begins, window, "windows that begin", -LIMIT, now, MOST_WINDOWS + 1)
        stops = edge_times(ends, window, "windows that end", last, now, len(self.begun))
        if len(self.begun) - len(stops) + len(starts) > MOST_WINDOWS:
            raise too_many(window, function, now)
        for (begin, start), stop in zip(self.begun, stops, strict=False):
            if begin < rank:  # else it began at a moment, and has no tuple
                self.rows.append((self.segment, begin, rank, start, stop, now.time))
        self.begun = self.begun[len(stops) :] + [[rank, start] for start in starts]
        if starts:
            self.opened.add((self.segment, rank))
        if isinstance(now, Record):
            self.last = now.time
        return after

    def still_open(self) -> list[tuple[int, ...]]:
        """The windows that are open, as if they ended after the last tuple."""
        stop = self.last + 1
        return [
            (self.segment, begin, self.seen, start, stop, INF)
            for begin, start in self.begun
            if begin < self.seen
        ]
