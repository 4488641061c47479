"""`muntin dashboard`: which stream is shown, and where."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from muntin.dashboard.feeds import flights_feed, of_files, of_transcripts
from muntin.dashboard.live_stream import LiveStream
from muntin.dashboard.shown_stream import ShownStream
from muntin.errors import QueryError

if TYPE_CHECKING:
    from muntin.command_line.settings import InputSettings
    from muntin.dsl import Query

__all__ = ["Place", "chosen", "show"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the page is served."""

    host: str
    port: int
    token: str | None
    browser: bool
    """Whether to open it."""


def show(
    query: Query | None,
    inputs: list[str],
    settings: InputSettings | None,
    replay: Path | None,
    place: Place,
    *,
    spark: bool,
    speed: float,
) -> None:
    """Serve the page until Ctrl-C."""
    from muntin.dashboard.server import serve  # its packages may be missing, which it says

    stream = chosen(query, inputs, settings, replay, spark=spark, speed=speed)

    def ready(address: str) -> None:
        Console().print(f"The page is at {address}\nCtrl-C ends it.", highlight=False, soft_wrap=True)
        if place.browser:
            webbrowser.open(address)

    serve(stream, place.host, place.port, place.token, ready)


def chosen(
    query: Query | None,
    inputs: list[str],
    settings: InputSettings | None,
    replay: Path | None,
    *,
    spark: bool = False,
    speed: float = 1.0,
) -> ShownStream:
    """The stream that the arguments name: files, transcripts, or the flights, here or on Spark."""
    if sum((query is not None, replay is not None, spark)) > 1:
        raise QueryError("the page shows one stream: give a query with its inputs, --replay, or --spark")
    if replay is not None:
        return LiveStream(of_transcripts(replay), speed)
    if query is not None and settings is not None:
        if not inputs:
            raise QueryError("the query needs tuples: muntin dashboard query.toml tuples.csv")
        return LiveStream([of_files(query, inputs, settings)], speed)
    if spark:
        from muntin.dashboard.spark_flights import flights_on_spark

        return flights_on_spark()
    return LiveStream([flights_feed()], speed)
