"""What a page shows: a query and the steps of its stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin import aggregates as a
from muntin import windows as w
from muntin.demo import flights as data
from muntin.dsl import Query, windows
from muntin.errors import QueryError
from muntin.testing.transcript_files import Step, Transcript, load_transcripts
from muntin.timeline import Micros

if TYPE_CHECKING:
    from muntin.command_line.settings import InputSettings

__all__ = ["Feed", "flights_feed", "flights_query", "of_batches", "of_files", "of_transcripts"]

MINUTE, YEAR = 60_000_000, 365 * 86_400_000_000
ARRIVALS = 5 * MINUTE
"""The flights of five minutes arrive in one step."""
TUPLES_OF_A_STEP = 20


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream that can be played: a query, and steps as in a transcript."""

    title: str
    query: Query
    steps: Callable[[], Iterable[Step]]
    """The steps from the first one on; it is called again for a restart."""
    rate: float
    """Steps per second at speed 1."""
    about: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of `query.operator`."""
    outline: tuple[str, ...] = ()
    """A line of text for each step, where there are few."""
    plays: bool = True
    """Whether it plays as soon as the page is served."""


def flights_query() -> Query:
    """The flights from an airport: five windows of different kinds over one row of slices."""
    return (
        windows(
            hour=w.tumbling("1 hour"),
            smooth=w.sliding("6 hours", every="2 hours"),
            rush=w.session("20 minutes"),
            fifty=w.count(50),
            jam=w.threshold("delay > 45", min_count=3),
        )
        .aggregate(
            flights=a.count(),
            mean_delay=a.mean("delay"),
            p90=a.quantile("delay", 0.9),
            worst=a.max("delay"),
            worst_to=a.arg_max("dest", by="delay"),
        )
        .by("airport")
        .on("scheduled", allowed_lateness="2 hours")
    )


def flights_feed() -> Feed:
    """The flights that left New York in 2013, one hour per second, year after year."""
    flights = data.load()
    delay = pc.fill_null(flights["delay"], 0).to_numpy()
    arrival = flights["scheduled"].cast(pa.int64()).to_numpy() + delay * MINUTE
    bounds = np.flatnonzero(np.diff(arrival // ARRIVALS, prepend=-1))
    ranges = list(zip(bounds.tolist(), [*bounds[1:].tolist(), len(flights)], strict=True))

    def steps() -> Iterator[Step]:
        year = 0
        while True:  # so that a page can be open for hours
            shifted = _later(flights, year * YEAR)
            for begin, end in ranges:
                yield Step("input", shifted.slice(begin, end - begin))
            year += 1

    return Feed(
        "Flights from New York",
        flights_query(),
        steps,
        rate=12,
        about="Event time is the scheduled departure; a flight arrives in the stream when it departs.",
        options={"watermark_lag": "45 minutes"},
    )


def _later(flights: pa.Table, shift: int) -> pa.Table:
    at = flights.column_names.index("scheduled")
    times = pc.add(flights["scheduled"].cast(pa.int64()), shift).cast(flights["scheduled"].type)
    return flights.set_column(at, "scheduled", times)


def of_batches(
    title: str, query: Query, batches: Callable[[], Iterable[Any]], rate: float, **options: Any
) -> Feed:
    """A stream of your own: each item is a step, anything that `op.process` takes in tables or batches.

    >>> import muntin as mt
    >>> from muntin.dashboard.live_stream import LiveStream
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    >>> parts = [{"t": [1, 4]}, {"t": [12]}]
    >>> stream = LiveStream([of_batches("mine", query, lambda: parts, rate=2, watermark_lag=0)])
    >>> for _ in range(2):
    ...     stream.step()
    >>> stream.history.results.table()["n"].to_pylist()
    [2]

    Args:
        title: What the page calls it.
        query: What it computes.
        batches: Returns the items from the first one on; it is called again for a restart.
        rate: Items per second at speed 1.
        options: The options of `query.operator`, such as `watermark_lag`.
    """
    return Feed(title, query, lambda: (Step("input", batch) for batch in batches()), rate, options=options)


def of_files(query: Query, inputs: list[str], settings: InputSettings) -> Feed:
    """The tuples of files, as `muntin run` reads them, 20 in a step; the end of the files ends the stream."""
    from muntin.command_line.inputs import sources
    from muntin.command_line.reading import Reader
    from muntin.command_line.times import TimeReader
    from muntin.slicing.binding import kind_of_time

    input_files = sources(inputs)
    kind = kind_of_time(query, [window for _, window in query.windows], None)
    times = TimeReader(query.time, kind, settings.time_format, settings.time_unit, query.bad == "fail")
    reader = Reader(settings, times, None, False)

    def steps() -> Iterator[Step]:
        for source in input_files:
            for portion in reader.chunks(source, 0):
                if portion.watermark is not None:
                    yield Step("watermark", portion.watermark)
                tuples = portion.tuples
                for start in range(0, len(tuples), TUPLES_OF_A_STEP):
                    stop = start + TUPLES_OF_A_STEP
                    yield Step(
                        "input",
                        tuples[start:stop]
                        if isinstance(tuples, list)
                        else tuples.slice(start, TUPLES_OF_A_STEP),
                    )
        yield Step("finish", None)

    options = {
        "watermark_lag": settings.watermark_lag,
        "in_order": settings.in_order,
        "schema": settings.types,
    }
    return Feed(", ".join(str(source) for source in input_files), query, steps, rate=10, options=options)


def of_transcripts(path: str | Path) -> list[Feed]:
    """The transcripts of a file, a tuple in a step, so that a late one is seen alone."""
    try:
        transcripts = load_transcripts(path)
    except ModuleNotFoundError as error:
        raise QueryError('a replay needs PyYAML: pip install "muntin[testing]"') from error
    except OSError as error:
        raise QueryError(
            f"cannot read {path}: {error.strerror or error}; give a file of transcripts"
        ) from error
    feeds = [_of_transcript(one) for one in transcripts if one.query is not None]
    if not feeds:
        raise QueryError(f"a replay needs a transcript with a query: got {path}, which has none")
    return feeds


def _of_transcript(transcript: Transcript) -> Feed:
    timed = pa.types.is_timestamp(transcript.schema.field(transcript.query.time).type)
    steps = tuple(one for step in transcript.steps for one in _single(step, transcript.schema, timed))
    return Feed(
        transcript.name,
        transcript.query,
        lambda: iter(steps),
        rate=1,
        about=transcript.about,
        options={"schema": transcript.schema},
        outline=tuple(_outlined(step) for step in steps),
        plays=False,
    )


def _single(step: Step, schema: pa.Schema, timed: bool) -> Iterator[Step]:
    """A step for each tuple; the last of them has the expected rows."""
    if step.action == "watermark":
        yield replace(step, value=Micros(step.value) if timed else step.value)
    elif step.action == "input" and step.error is None:
        for row in step.value[:-1]:
            yield Step("input", _batch([row], schema))
        yield replace(step, value=_batch(step.value[-1:], schema))
    elif step.action == "input":
        yield replace(step, value=_batch(step.value, schema))
    else:
        yield step


def _batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=schema)


def _outlined(step: Step) -> str:
    if step.action == "input":
        rows = step.value.to_pylist()
        return "; ".join(", ".join(f"{name} {_short(value)}" for name, value in row.items()) for row in rows)
    if step.action == "watermark":
        return f"watermark {step.value}"
    if step.action == "finish":
        return "the stream ends"
    names = list(step.value) if isinstance(step.value, Mapping) else [step.value]
    return f"{step.action} {', '.join(map(str, names))}"


def _short(value: object) -> str:
    return value.isoformat(" ") if hasattr(value, "isoformat") else str(value)
