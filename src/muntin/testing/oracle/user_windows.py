"""Windows that the user's code cuts, for the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muntin.testing.oracle.tuples import Instance, Tuples, View, ended, still_open
from muntin.timeline import NEG_INF
from muntin.windows import Record
from muntin.windows.moments import Moment

__all__ = ["discretize", "forward_context_aware", "forward_context_free", "timed_trigger", "trigger"]


def discretize(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Cutty's deterministic windows: the function returns how many begin with a record and end before it."""
    return _begins_and_ends(window, lambda state, record: (state, *window.function(record)), tuples, view)


def forward_context_free(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The same, with a state that goes from record to record."""
    return _begins_and_ends(window, window.observe, tuples, view)


def _begins_and_ends(window: Any, observe: Any, tuples: Tuples, view: View) -> list[Instance]:
    """First the oldest windows end, then new ones begin with the tuple."""
    instances: list[Instance] = []
    opened: list[tuple[int, Tuples]] = []

    def times(edges: Any, now: int) -> list[int]:
        return list(edges) if isinstance(edges, Iterable) else [now] * int(edges)

    def meet(state: Any, now: Any, item: Tuples) -> Any:
        nonlocal opened
        after, begins, ends = (observe if item else window.at_moment)(state, now)
        stops = times(ends, now.time)
        for (start, content), stop in zip(opened, stops, strict=False):
            if content:
                instances.append(Instance(start, stop, now.time, content))
        opened = opened[len(stops) :] + [(start, ()) for start in times(begins, now.time)]
        opened = [(start, content + item) for start, content in opened]
        return after

    _in_time(window, meet, tuples, view)
    contents = [(start, content) for start, content in opened if content]
    left = still_open([content for _, content in contents], view)
    return instances + [one._replace(start=start) for one, (start, _) in zip(left, contents, strict=False)]


def forward_context_aware(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Each record, and each moment, may complete windows of ranks that were seen before."""
    instances = []

    def meet(state: Any, now: Any, item: Tuples) -> Any:
        after, complete = (window.observe if item else window.at_moment)(state, now)
        for begin, end, *edges in complete:
            content = tuples[begin:end]
            complete_at = now.time + len(item)  # behind the record, or at the moment
            behind = tuples[end : now.rank + len(item)]
            start, stop = edges or (content[0].time, behind[0].time if behind else complete_at)
            instances.append(Instance(start, stop, complete_at, content))
        return after

    _in_time(window, meet, tuples, view)
    return instances


def _in_time(window: Any, meet: Any, tuples: Tuples, view: View) -> None:
    """Meet each record, and each moment before the records at that time.

    After the last record come the moments up to the watermark; where open windows are shown, also those up to
    the first one after the newest tuple.
    """
    state, reached = window.initial_state(), NEG_INF
    for rank in range(len(tuples) + 1):
        item = tuples[rank : rank + 1]
        while rank and (time := window.next_moment(state)) is not None:
            shown = time <= view.upto or (view.closing and reached <= view.newest)
            if not (time <= item[0].time if item else shown and time <= view.until):
                break
            state, reached = meet(state, Moment(time, rank), ()), time
        if item:
            state = meet(state, _records(tuples)[rank], item)


class _Buffer(list[Record]):
    """A plain list of records, with the time of the record or the edge at which it is looked at."""

    time = 0


def trigger(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Cutty's other style: records are buffered, and the buffer is a window whenever the trigger fires."""
    instances = []
    buffer = _Buffer()
    for record in _records(tuples):
        buffer.append(record)
        buffer.time = record.time
        del buffer[: window.evict(buffer)]
        if buffer and window.trigger(buffer):
            content = tuples[buffer[0].rank : record.rank + (not window.exclusive)]
            if content:
                stop = record.time if window.exclusive else record.time + 1
                instances.append(ended(content, stop)._replace(complete_at=record.time + 1))
    return instances


def timed_trigger(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The buffer at every edge in time after the first tuple, unless the trigger refuses."""
    instances = []
    buffer = _Buffer()
    records = _records(tuples)
    edge = window.offset + (tuples[0].time - window.offset) // window.every * window.every + window.every
    while edge <= view.upto or (view.closing and edge - window.every <= view.newest):
        if edge > view.until and edge - window.every > tuples[-1].time:
            break
        for record in records:
            if edge - window.every <= record.time < edge:
                buffer.append(record)
                buffer.time = record.time
                del buffer[: window.evict(buffer)]
        buffer.time = edge
        if buffer:
            del buffer[: window.evict(buffer)]
        if buffer and (window.trigger is None or window.trigger(buffer)):
            content = tuples[buffer[0].rank : buffer[-1].rank + 1]
            instances.append(ended(content, edge))
        edge += window.every
    return instances


def _records(tuples: Tuples) -> list[Record]:
    """The tuples as the user's code sees them."""
    return [Record(item.row, item.time, rank) for rank, item in enumerate(tuples)]
