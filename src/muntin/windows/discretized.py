"""Windows that begin and end with tuples, as the user's code says [cutty §3.2].

The context of a key is [state, open windows as [rank, time] oldest first, ranks
seen, time of the last tuple, first rank].
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from muntin.errors import UserCodeError
from muntin.timeline import INF
from muntin.windows.base import Ints
from muntin.windows.found import cuts_of_user_code
from muntin.windows.records import MOST_WINDOWS, Record, guarded, natural, records_of, skip_or_raise, too_many
from muntin.windows.tuple_driven import Contexts, Cuts, Tuples

__all__ = ["begins_and_ends", "fresh_contexts", "oldest_begins", "open_windows"]


def fresh_contexts(n: int, initial_state: Callable[[], Any]) -> Contexts:
    """Contexts of n keys that have no tuple yet."""
    contexts = np.empty(n, object)
    for i in range(n):
        contexts[i] = [initial_state(), [], 0, 0, -1]
    return contexts


def begins_and_ends(
    window: str,
    what: str,
    observe: Callable[[Any, Record], tuple[Any, int, int]],
    contexts: Contexts,
    tuples: Tuples,
    closing: bool,
) -> Cuts:
    """Ask `observe` about each tuple: the oldest windows end before it, then new ones begin with it."""
    rows: list[tuple[int, ...]] = []
    opened: set[tuple[int, int]] = set()
    record_at = records_of(tuples)
    offsets, times, ranks = tuples.offsets.tolist(), tuples.time.tolist(), tuples.rank.tolist()

    def asked(state: Any, record: Record) -> tuple[Any, int, int]:
        # Code that fails may have changed its state before.
        before = state if tuples.failed is None else copy.deepcopy(state)
        try:
            state, begins, ends = guarded(window, what, record, lambda: _three(observe(state, record)))
            begins = natural(begins, window, "the number of windows that begin", record)
            return state, begins, natural(ends, window, "the number of windows that end", record)
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
                raise too_many(window, what, record_at(i, base))
            rows += [(segment, begin, rank, start, time, time) for begin, start in begun[:ends]]
            begun = begun[ends:] + [[rank, time] for _ in range(begins)]
            if begins:
                opened.add((segment, rank))
            seen, last = rank + 1, time
        contexts[segment] = [state, begun, seen, last, base]
        if closing:
            rows += [(segment, begin, seen, start, last + 1, INF) for begin, start in begun]
    return cuts_of_user_code(rows, opened)


def _three(answer: Any) -> tuple[Any, Any, Any]:
    state, begins, ends = answer
    return state, begins, ends


def oldest_begins(contexts: Contexts, seen: Ints) -> Ints:
    """Per key the rank at which the oldest open window began, or `seen`."""
    begins = [context[1][0][0] if context[1] else INF for context in contexts]
    return np.minimum(np.array(begins, np.int64), seen)


def open_windows(contexts: Contexts) -> tuple[Ints, Ints]:
    """(number of the key, rank) of the begins of all open windows."""
    pairs = [(i, begin) for i, context in enumerate(contexts) for begin, _ in context[1]]
    keys, ranks = np.array(pairs, np.int64).reshape(-1, 2).T
    return keys, ranks
