"""A live page that shows how a stream is sliced: `muntin dashboard`, or `serve` from a program.

The page needs the extra `dashboard`. It reads the engine through public calls only: `op.slices()`,
`op.open_windows()`, `op.stats()`, `query.explain()`, and on Spark `query.stats()` and `mt.spark.state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muntin.dashboard.feeds import Feed, flights_feed, of_batches, of_files, of_transcripts
    from muntin.dashboard.live_stream import LiveStream
    from muntin.dashboard.server import serve
    from muntin.dashboard.spark_stream import SparkStream, Watched

__all__ = [
    "Feed", "LiveStream", "SparkStream", "Watched", "flights_feed", "of_batches", "of_files",
    "of_transcripts", "serve",
]  # fmt: skip

_HOMES = {
    "serve": "server", "LiveStream": "live_stream", "SparkStream": "spark_stream", "Watched": "spark_stream",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Starlette is imported when a page is served, not by what reads `muntin.dashboard.feeds`.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'feeds')}"), name)
