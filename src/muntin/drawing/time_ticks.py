"""Round times for the axis of a picture."""

from __future__ import annotations

import datetime as dt

__all__ = ["time_ticks"]

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
STEPS = (
    *(s * SECOND for s in (1, 2, 5, 10, 15, 30)),
    *(m * MINUTE for m in (1, 2, 5, 10, 15, 30)),
    *(h * HOUR for h in (1, 2, 3, 6, 12)),
    *(d * DAY for d in (1, 2, 7, 14, 28, 91, 364)),
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def time_ticks(low: int, high: int, most: int, timed: bool = True) -> list[tuple[int, str]]:
    """At most `most` round times from `low` to `high` with their labels, in UTC; a midnight shows its date.

    >>> time_ticks(0, 3 * HOUR, 4)
    [(0, 'Jan 1'), (3600000000, '01:00'), (7200000000, '02:00'), (10800000000, '03:00')]
    >>> time_ticks(0, 40, 4, timed=False)
    [(0, '0'), (20, '20'), (40, '40')]
    """
    span = max(high - low, 1)
    powers = (s * 10**p for p in range(20) for s in (1, 2, 5))
    # `most` ticks have most - 1 distances between them.
    fits = (step for step in (STEPS if timed else powers) if span < most * step)
    step = next(fits, 364 * DAY * -(-span // (364 * DAY * most)))
    return [(t, _label(t, step) if timed else str(t)) for t in range(-(-low // step) * step, high + 1, step)]


def _label(time: int, step: int) -> str:
    moment = EPOCH + dt.timedelta(microseconds=time)
    if step >= DAY or time % DAY == 0:
        return f"{moment:%b} {moment.day}"
    return f"{moment:%H:%M:%S}" if step < MINUTE else f"{moment:%H:%M}"
