"""Moments in time at which the user's code begins and ends windows, without a record.

A moment is reached by the watermark: every record before it has been observed, none at or after it.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from muntin.errors import UserCodeError
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.records import (
    MOST_WINDOWS,
    Record,
    SeesRecords,
    guarded,
    limited,
    natural,
    skip_or_raise,
    whole,
    wrong,
)
from muntin.windows.tuple_driven import Ending, Tuples

NO_MOMENT = -LIMIT
"""In a context: no moment was reached yet."""

_W = TypeVar("_W", bound=SeesRecords)


class Moment(NamedTuple):
    """A point in time that the watermark has reached, and the number of records of the key before it.

    >>> Moment(time=60, rank=3)
    Moment(time=60, rank=3)
    """

    time: int
    rank: int


class KeyWalk(ABC, Generic[_W]):
    """Passes the records and moments of one key to user code; a subclass notes the windows that they make.

    `reached` is its last moment. At the end of a stream, and where open windows are shown, moments up to the
    first one after the newest tuple are reached as well.
    """

    __slots__ = (
        "base", "limit", "newest", "reached", "seen", "segment", "state", "tuples", "window",
    )  # fmt: skip

    def __init__(self, window: _W, tuples: Tuples, ending: Ending, segment: int) -> None:
        self.window, self.tuples, self.segment = window, tuples, segment
        self.limit, self.newest = ending.upto, NEG_INF
        if ending.closing or ending.upto == INF:
            self.limit = NEG_INF if ending.upto == INF else ending.upto
            latest = int(tuples.time.max(initial=NEG_INF))
            self.newest = latest if ending.newest is None else ending.newest
        self.state: Any = None
        self.base, self.seen, self.reached = -1, 0, NO_MOMENT

    @abstractmethod
    def meet(self, now: Record | Moment) -> Any:
        """Note the windows of a record or a moment; returns the state after it."""

    def to_record(self, record: Record) -> None:
        """Go over the moments up to a record, then to the record itself."""
        if self.seen > self.base:
            self._go(record.time)
        self._try(record)
        self.seen = self.base + record.rank + 1

    def to_end(self) -> None:
        """Go over the moments that the watermark reaches without a record."""
        if self.base >= 0 and self.seen > self.base:
            self._go(None)

    def _go(self, before: int | None) -> None:
        if not self.window.timed:
            return
        passed = 0
        while (time := self._next()) is not None and self._is_reached(time, before):
            if not self._try(Moment(time, self.seen - self.base)):
                return  # its error was noted; the next call comes here again
            self.reached, passed = time, passed + 1
            if passed > MOST_WINDOWS:
                rule = f"next_moment must not name more than {MOST_WINDOWS:,} moments in one step"
                raise wrong(self.window, f"{rule}: got more, up to {time}; advance in smaller steps")

    def _is_reached(self, time: int, before: int | None) -> bool:
        if before is not None:
            return time <= before
        until = INF if self.tuples.until is None else int(self.tuples.until[self.segment])
        return time <= until and (time <= self.limit or self.reached <= self.newest)

    def _next(self) -> int | None:
        window, state = self.window, self.state
        time = guarded(window, "next_moment", state, lambda: window.next_moment(state))
        if time is None:
            return None
        time = whole(time, window, "the time that next_moment gives", repr(state))
        if not self.reached < time <= LIMIT:
            rule = f"next_moment must give a time after the last moment ({self.reached}), below 2**62"
            raise wrong(window, f"{rule}: got {time} for the state {state!r}")
        return time

    def _try(self, now: Record | Moment) -> bool:
        """Whether the user's code did not fail; where errors are skipped, it then changes nothing."""
        before = self.state if self.tuples.failed is None else copy.deepcopy(self.state)
        try:
            self.state = self.meet(now)
        except UserCodeError as error:
            skip_or_raise(self.tuples, error)
            self.state = before
            return False
        return True


def edge_times(
    value: Any, window: SeesRecords, what: str, earliest: int, now: Record | Moment, most: int
) -> list[int]:
    """The time of each edge, where user code gives their number at a record or moment, or their times.

    Of a number no more than `most` count.
    """
    if not isinstance(value, Iterable):
        return [now.time] * min(natural(value, window, f"the number of {what}", now), most)
    given = limited(value, window, f"the times of {what}", now)
    times = [whole(time, window, f"the time of {what}", repr(now)) for time in given]
    if any(not earliest <= time <= now.time for time in times):
        bounds = f"up to {now.time}" if earliest == -LIMIT else f"from {earliest} to {now.time}"
        raise wrong(window, f"times of {what} must lie {bounds}: got {times} for {now!r}")
    return times
