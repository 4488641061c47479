"""Windows that begin and end with the tuples that the user's code names [cutty §3.2]."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from muntin.errors import UserCodeError
from muntin.timeline import INF
from muntin.windows.base import Context, Ints
from muntin.windows.records import (
    MOST_WINDOWS,
    Record,
    SeesRecords,
    cuts_of_user_code,
    guarded,
    natural,
    records_of,
    skip_or_raise,
    too_many,
)
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, Tuples


class BeginsAndEnds(SeesRecords):
    """Base of windows for which user code counts, per record, the windows that begin and end with it.

    The context of a key is [state, open windows as [rank, time] oldest first, ranks
    seen, time of the last tuple, first rank].
    """

    __slots__ = ()

    context: ClassVar[Context] = Context.FORWARD_FREE

    @abstractmethod
    def observe(self, state: Any, record: Record) -> tuple[Any, int, int]:
        """The new state, the number of windows that begin with this record, the number that end before it.

        The oldest open windows end first, and ends come before begins.
        """

    def _user_function(self) -> str:
        """The name of the user's function, for messages."""
        return "observe"

    def initial(self, n: int) -> Contexts:
        contexts = np.empty(n, object)
        for i in range(n):
            contexts[i] = [self.initial_state(), [], 0, 0, -1]
        return contexts

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        function = self._user_function()
        rows: list[tuple[int, ...]] = []
        opened: set[tuple[int, int]] = set()
        record_at = records_of(tuples)
        offsets, times, ranks = tuples.offsets.tolist(), tuples.time.tolist(), tuples.rank.tolist()

        def asked(state: Any, record: Record) -> tuple[Any, int, int]:
            def call() -> tuple[Any, Any, Any]:
                after, begins, ends = self.observe(state, record)
                return after, begins, ends

            # Code that fails may have changed its state before.
            before = state if tuples.failed is None else copy.deepcopy(state)
            try:
                after, begins, ends = guarded(self, function, record, call)
                begins = natural(begins, self, "the number of windows that begin", record)
                return after, begins, natural(ends, self, "the number of windows that end", record)
            except UserCodeError as error:
                skip_or_raise(tuples, error)
                return before, 0, 0

        for segment in range(len(contexts)):
            # A copy: the user's code may change its state in place, and a caller may keep the old one.
            state, begun, seen, last, base = copy.deepcopy(contexts[segment])
            for i in range(offsets[segment], offsets[segment + 1]):
                time, rank = times[i], ranks[i]
                base = rank if base < 0 else base
                state, begins, ends = asked(state, record_at(i, base))
                if len(begun) - ends + begins > MOST_WINDOWS:
                    raise too_many(self, function, record_at(i, base))
                rows += [(segment, begin, rank, start, time, time) for begin, start in begun[:ends]]
                begun = begun[ends:] + [[rank, time] for _ in range(begins)]
                if begins:
                    opened.add((segment, rank))
                seen, last = rank + 1, time
            contexts[segment] = [state, begun, seen, last, base]
            if ending.closing:
                rows += [(segment, begin, seen, start, last + 1, INF) for begin, start in begun]
        return cuts_of_user_code(rows, opened)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        begins = [context[1][0][0] if context[1] else INF for context in contexts]
        return np.minimum(np.array(begins, np.int64), seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        pairs = [(i, begin) for i, context in enumerate(contexts) for begin, _ in context[1]]
        keys, ranks = np.array(pairs, np.int64).reshape(-1, 2).T
        return keys, ranks
