"""Draw the pictures of the documentation from real runs: `python -m tools.draw_pictures`.

A test draws them again and compares them with the files, so that no picture is older than the engine.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.drawing import observe, svg
from muntin.windows.base import Window
from tools.draw_rates import chart

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
TIMES = [1, 4, 6, 9, 11, 14, 22, 24, 27, 29, 36, 38]
VALUES = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
KILOMETRES = [2, 5, 9, 11, 15, 21, 28, 30, 33, 38, 44, 47]
STREAM = {"t": TIMES, "v": VALUES, "km": KILOMETRES}
"""The stream of docs/windows.md."""
MIDNIGHT = dt.datetime(2024, 3, 30, 23)
"""In UTC: the day that follows has 23 hours in Berlin."""
HOUR = 3_600_000_000


def journey(record: w.Record) -> tuple[int, int]:
    """A window from each multiple of 5 to the next one, as in docs/windows.md."""
    stops = record["v"] % 5 == 0
    return int(stops), int(stops)


def older_than_ten(buffer: Sequence[w.Record]) -> int:
    """How many of the oldest records leave the buffer, as in docs/windows.md."""
    return sum(buffer[-1].time - record.time > 10 for record in buffer)


def all_but_three(buffer: Sequence[w.Record]) -> int:
    """How many of the oldest records leave the buffer, as in docs/windows.md."""
    return max(0, len(buffer) - 3)


def three(buffer: Sequence[w.Record]) -> bool:
    """Whether the buffer is a window, as in docs/windows.md."""
    return len(buffer) >= 3


class Visits(w.ForwardContextFree):
    """Sessions with a gap of 5, as in docs/windows.md."""

    def observe(self, state: int | None, record: w.Record) -> tuple[int | None, int, int]:
        return record.time, int(state is None), 0

    def next_moment(self, state: int | None) -> int | None:
        return None if state is None else state + 6

    def at_moment(self, state: int, moment: w.Moment) -> tuple[int | None, int, list[int]]:
        return None, 0, [state + 5]


WINDOWS: dict[str, Window] = {
    "tumbling": w.tumbling(10),
    "sliding": w.sliding(10, every=5),
    "cumulate": w.cumulate(20, step=5),
    "session": w.session(5),
    "session_of_gaps": w.session(mt.col("v")),
    "fixed_band": w.fixed_band(5, length=20),
    "landmark": w.landmark(5, every=10),
    "count": w.count(4),
    "punctuation": w.punctuation("v == 1"),
    "punctuation_pair": w.punctuation(begin="v == 1", end="v > 5"),
    "threshold": w.threshold("v > 3"),
    "delta": w.delta("v", by=3),
    "boundary": w.boundary("v", step=5),
    "until": w.until(a.sum("v"), 10),
    "slide_by_tuple": w.slide_by_tuple(10, every=3),
    "last": w.last(3, every=10),
    "measure": w.tumbling(15, measure="km"),
    "discretize": w.discretize(journey, columns=["v"]),
    "trigger": w.trigger(three, evict=older_than_ten),
    "timed_trigger": w.trigger(evict=all_but_three, every=10),
    "visits": Visits(),
}


def of_window(name: str) -> str:
    """One window type over the stream of docs/windows.md."""
    query = mt.windows(**{name: WINDOWS[name]}).aggregate(total=a.sum("v")).on("t", allowed_lateness=1_000)
    return svg(
        observe(query, STREAM), title=f"{WINDOWS[name].describe()}, over twelve tuples", extent=(-5, 50)
    )


def of_calendar() -> str:
    """The same stream, an hour per unit, over days in Berlin when summer time begins."""
    query = mt.windows(calendar=w.calendar("day", tz="Europe/Berlin")).aggregate(total=a.sum("v"))
    times = [MIDNIGHT + dt.timedelta(hours=time) for time in TIMES]
    run = observe(query.on("t", allowed_lateness="30 days"), {"t": times, "v": VALUES})
    zero = int(MIDNIGHT.replace(tzinfo=dt.UTC).timestamp()) * 1_000_000
    ticks = [(zero, "Sunday 0:00"), (zero + 23 * HOUR, "Monday 0:00"), (zero + 47 * HOUR, "Tuesday 0:00")]
    extent = (zero - 5 * HOUR, zero + 50 * HOUR)
    return svg(run, title="Days in Berlin over twelve tuples", ticks=ticks, extent=extent)


def of_shared_slices() -> str:
    """The picture of the README: three windows over the same slices, and a late tuple."""
    query = (
        mt.windows(tumbling=w.tumbling(10), sliding=w.sliding(20, every=10), session=w.session(5))
        .aggregate(total=a.sum("v"))
        .on("t", allowed_lateness=1_000)
    )
    times = [11, 14, 16, 24, 27, 29, 32, 35, 43, 46, 48]
    values = [3, 1, 4, 5, 9, 2, 6, 5, 3, 5, 8]
    run = observe(query, {"t": times, "v": values}, late={"t": [21], "v": [7]})
    title = "Three kinds of windows share one row of slices; a late tuple changes one slice and four windows"
    return svg(run, title=title, extent=(0, 60))


def of_notebook() -> str:
    """The example of docs/guides/notebooks.md."""
    query = mt.windows(ten=w.tumbling(10), visit=w.session(5)).aggregate(total=a.sum("v"))
    query = query.on("t", allowed_lateness=100)
    run = observe(query, {"t": [1, 4, 13, 17], "v": [3, 1, 4, 1]}, late={"t": [9], "v": [5]})
    return svg(run, title="Two windows, and what a late tuple changes")


PICTURES: dict[str, Callable[[], str]] = {
    "shared_slices": of_shared_slices,
    "calendar": of_calendar,
    "notebook": of_notebook,
    "rates": chart,
    **{name: (lambda name=name: of_window(name)) for name in WINDOWS},  # type: ignore[misc]  # mypy/12557
}


def drawn() -> Iterator[tuple[Path, str]]:
    """Each file with its picture."""
    for name, draw in PICTURES.items():
        yield FOLDER / f"{name}.svg", draw()


if __name__ == "__main__":
    for path, picture in drawn():
        path.write_text(picture)
