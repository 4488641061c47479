"""The arguments and results of the oracle's window functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from muntin.timeline import INF

__all__ = ["Arrival", "Instance", "Tuples", "View", "closed_by_next", "runs", "still_open"]


class Arrival(NamedTuple):
    """A tuple of the stream: `seq` is its number of arrival, which orders equal times."""

    time: int
    seq: int
    row: Mapping[str, Any]


class Instance(NamedTuple):
    """A window instance with its content; `due` is the watermark at which it is complete.

    `open` marks a window that no tuple has ended yet and that is shown as if it
    ended after its last one. `low` and `high` are its edges as ranks or on another
    measure.
    """

    start: int
    end: int
    due: int
    content: tuple[Arrival, ...]
    low: Any = None
    high: Any = None
    open: bool = False


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


Tuples: TypeAlias = tuple[Arrival, ...]
"""The accepted tuples of one key, in (time, arrival) order."""


def runs(tuples: Tuples, breaks: Callable[[list[Arrival], Arrival], bool]) -> list[Tuples]:
    """The tuples in runs: one that `breaks` the current run starts the next."""
    groups: list[list[Arrival]] = []
    for item in tuples:
        if not groups or breaks(groups[-1], item):
            groups.append([])
        groups[-1].append(item)
    return [tuple(run) for run in groups]


def closed_by_next(pieces: list[Tuples], view: View) -> list[Instance]:
    """Each piece ends at the first tuple of the next one; the last piece is still open."""
    instances = []
    for piece, following in zip(pieces, pieces[1:], strict=False):  # noqa: RUF007  # plainer than pairwise
        end = following[0].time
        instances.append(Instance(piece[0].time, end, end, piece))
    return instances + still_open(pieces[-1:], view)


def still_open(pieces: Iterable[Tuples], view: View) -> list[Instance]:
    """Windows without an end yet, which are shown only where open windows are closed."""
    if not view.closing:
        return []
    return [
        Instance(piece[0].time, piece[-1].time + 1, piece[-1].time + 1, piece, open=True) for piece in pieces
    ]
