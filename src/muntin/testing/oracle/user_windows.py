"""Windows that the user's code cuts, for the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from muntin.testing.oracle.tuples import Instance, Tuples, View, ended, still_open
from muntin.windows import Record

__all__ = ["discretize", "forward_context_aware", "forward_context_free", "trigger"]


def discretize(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Cutty's deterministic windows: the function returns how many begin with a record and end before it."""
    return _begins_and_ends(tuples, map(window.function, _records(tuples)), view)


def forward_context_free(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The same, with a state that goes from record to record."""

    def answers() -> Iterator[tuple[int, int]]:
        state = window.initial_state()
        for record in _records(tuples):
            state, begins, ends = window.observe(state, record)
            yield begins, ends

    return _begins_and_ends(tuples, answers(), view)


def _begins_and_ends(tuples: Tuples, answers: Iterable[tuple[int, int]], view: View) -> list[Instance]:
    """First the oldest windows end, then new ones begin with the tuple."""
    instances: list[Instance] = []
    opened: list[Tuples] = []
    for item, (begins, ends) in zip(tuples, answers, strict=True):
        instances += [ended(content, item.time) for content in opened[: int(ends)]]
        opened = [(*content, item) for content in opened[int(ends) :] + [()] * int(begins)]
    return instances + still_open(opened, view)


def forward_context_aware(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Each record may complete windows of ranks that were seen before."""
    instances = []
    state = window.initial_state()
    for record in _records(tuples):
        state, complete = window.observe(state, record)
        instances += [ended(tuples[begin:end], record.time + 1) for begin, end in complete]
    return instances


def trigger(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Cutty's other style: records are buffered, and the buffer is a window whenever the trigger fires."""
    instances = []
    buffer: list[Record] = []
    for record in _records(tuples):
        buffer.append(record)
        buffer = buffer[window.evict(buffer) :]
        if buffer and window.trigger(buffer):
            instances.append(ended(tuples[buffer[0].rank : record.rank + 1], record.time + 1))
    return instances


def _records(tuples: Tuples) -> list[Record]:
    """The tuples as the user's code sees them."""
    return [Record(item.row, item.time, rank) for rank, item in enumerate(tuples)]
