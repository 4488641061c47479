"""Windows that the user's code cuts, for the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from muntin.testing.oracle.tuples import Arrival, Found, Tuples, View, still_open
from muntin.windows import Record

__all__ = ["discretize", "forward_context_aware", "forward_context_free", "trigger"]


def discretize(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """Cutty's deterministic windows: the function tells how many begin with a record and end before it."""
    answers = (window.function(_record(item, rank)) for rank, item in enumerate(tuples))
    return _begins_and_ends(zip(tuples, answers, strict=True), view)


def forward_context_free(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """The same, with a state that goes from record to record."""

    def answers() -> Iterator[tuple[int, int]]:
        state = window.initial_state()
        for rank, item in enumerate(tuples):
            state, begins, ends = window.observe(state, _record(item, rank))
            yield begins, ends

    return _begins_and_ends(zip(tuples, answers(), strict=True), view)


def _begins_and_ends(steps: Iterable[tuple[Arrival, tuple[int, int]]], view: View) -> list[Found]:
    """First the oldest windows end, then new ones begin with the tuple."""
    found: list[Found] = []
    opened: list[list[Arrival]] = []
    for item, (begins, ends) in steps:
        found += [
            Found(content[0].time, item.time, item.time, tuple(content)) for content in opened[: int(ends)]
        ]
        opened = opened[int(ends) :] + [[] for _ in range(int(begins))]
        for content in opened:
            content.append(item)
    return found + still_open([tuple(content) for content in opened], view)


def forward_context_aware(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """Each record may complete windows of ranks that were seen before."""
    found = []
    state = window.initial_state()
    for rank, item in enumerate(tuples):
        state, complete = window.observe(state, _record(item, rank))
        for begin, end in complete:
            content = tuples[begin:end]
            found.append(Found(content[0].time, item.time + 1, item.time + 1, content))
    return found


def trigger(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """Cutty's other style: records wait in a buffer, which is a window whenever the trigger says so."""
    found = []
    content: Tuples = ()
    records: list[Record] = []
    for rank, item in enumerate(tuples):
        content, records = (*content, item), [*records, _record(item, rank)]
        leaving = window.evict(records)
        content, records = content[leaving:], records[leaving:]
        if records and window.trigger(records):
            found.append(Found(content[0].time, item.time + 1, item.time + 1, content))
    return found


def _record(item: Arrival, rank: int) -> Record:
    """The tuple as the user's code sees it."""
    return Record(item.row, item.time, rank)
