"""The arguments and results of the oracle's window functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from muntin.timeline import INF

__all__ = ["Arrival", "Instance", "Tuples", "View", "closed_by_next", "ended", "runs", "still_open"]


class Arrival(NamedTuple):
    """A tuple of the stream: `seq` is its number of arrival, which orders equal times.

    `place` is its position on the measure of a window, None for windows on time.
    """

    time: int
    seq: int
    row: Mapping[str, Any]
    place: Any = None

    @property
    def position(self) -> Any:
        """Its position on the measure of a window, or its time."""
        return self.time if self.place is None else self.place


Tuples: TypeAlias = tuple[Arrival, ...]
"""The accepted tuples of one key, in (time, arrival) order."""


class Instance(NamedTuple):
    """A window instance with its content; `complete_at` is the watermark at which it is complete.

    An open window, which no tuple has ended yet, is due at INF and is shown as if it ended after its
    last tuple. `low` and `high` are its edges as ranks or on another measure.
    """

    start: int
    end: int
    complete_at: int
    content: Tuples
    low: Any = None
    high: Any = None


class View(NamedTuple):
    """The state of the stream in which windows are computed.

    `upto`: the last finite watermark, at which endless series of windows stop.
    `closing`: show open windows too, and endless series up to their first edge
    after `newest`, the newest tuple of the whole stream. `until`: when the life of the
    key ends, if it does.
    """

    upto: int
    closing: bool
    newest: int
    until: int = INF


def runs(tuples: Tuples, breaks: Callable[[list[Arrival], Arrival], bool]) -> list[Tuples]:
    """The tuples in runs: one that `breaks` the current run starts the next."""
    groups: list[list[Arrival]] = []
    for item in tuples:
        if not groups or breaks(groups[-1], item):
            groups.append([])
        groups[-1].append(item)
    return [tuple(run) for run in groups]


def ended(content: Tuples, end: int, high: Any = None) -> Instance:
    """The window from its first tuple to `end`, where it is complete."""
    return Instance(content[0].time, end, end, content, content[0].place, high)


def closed_by_next(frames: list[Tuples], view: View) -> list[Instance]:
    """Each piece ends at the first tuple of the next one; the last piece is still open."""
    pairs = zip(frames, frames[1:], strict=False)  # noqa: RUF007  # plainer than pairwise
    ended_frames = [ended(piece, following[0].time, following[0].place) for piece, following in pairs]
    return ended_frames + still_open(frames[-1:], view)


def still_open(frames: Iterable[Tuples], view: View) -> list[Instance]:
    """Windows without an end yet, which are shown only where open windows are closed."""
    shown = frames if view.closing else ()
    return [ended(piece, piece[-1].time + 1, piece[-1].place)._replace(complete_at=INF) for piece in shown]
