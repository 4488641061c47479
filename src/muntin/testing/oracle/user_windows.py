"""Windows that the user's code cuts, for the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from muntin.testing.oracle.tuples import Arrival, Instance, Tuples, View, still_open
from muntin.windows import Record

__all__ = ["discretize", "forward_context_aware", "forward_context_free", "trigger"]


def discretize(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Cutty's deterministic windows: the function returns how many begin with a record and end before it."""
    answers = (window.function(_record(item, rank)) for rank, item in enumerate(tuples))
    return _begins_and_ends(zip(tuples, answers, strict=True), view)


def forward_context_free(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The same, with a state that goes from record to record."""

    def answers() -> Iterator[tuple[int, int]]:
        state = window.initial_state()
        for rank, item in enumerate(tuples):
            state, begins, ends = window.observe(state, _record(item, rank))
            yield begins, ends

    return _begins_and_ends(zip(tuples, answers(), strict=True), view)


def _begins_and_ends(steps: Iterable[tuple[Arrival, tuple[int, int]]], view: View) -> list[Instance]:
    """First the oldest windows end, then new ones begin with the tuple."""
    instances: list[Instance] = []
    opened: list[list[Arrival]] = []
    for item, (begins, ends) in steps:
        instances += [
            Instance(content[0].time, item.time, item.time, tuple(content)) for content in opened[: int(ends)]
        ]
        opened = opened[int(ends) :] + [[] for _ in range(int(begins))]
        for content in opened:
            content.append(item)
    return instances + still_open([tuple(content) for content in opened], view)


def forward_context_aware(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Each record may complete windows of ranks that were seen before."""
    instances = []
    state = window.initial_state()
    for rank, item in enumerate(tuples):
        state, complete = window.observe(state, _record(item, rank))
        for begin, end in complete:
            content = tuples[begin:end]
            instances.append(Instance(content[0].time, item.time + 1, item.time + 1, content))
    return instances


def trigger(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Cutty's other style: records are buffered, and the buffer is a window whenever the trigger fires."""
    instances = []
    content: Tuples = ()
    records: list[Record] = []
    for rank, item in enumerate(tuples):
        content, records = (*content, item), [*records, _record(item, rank)]
        leaving = window.evict(records)
        content, records = content[leaving:], records[leaving:]
        if records and window.trigger(records):
            instances.append(Instance(content[0].time, item.time + 1, item.time + 1, content))
    return instances


def _record(item: Arrival, rank: int) -> Record:
    """The tuple as the user's code sees it."""
    return Record(item.row, item.time, rank)
