"""`Query`, the result of `mt.windows(...)`: build, run, explain, save."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from muntin.call_errors import checked_call, path_text
from muntin.display import html_folded, html_table
from muntin.errors import QueryError
from muntin.query import QuerySpec
from muntin.timeline import SpanLike
from muntin.windows.base import Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.connectors.embedded import Operator
    from muntin.connectors.spark.query_changes import Controlled
    from muntin.connectors.spark.stream_stats import StreamStats
    from muntin.planning.plan import Explanation
    from muntin.results import Results


@dataclass(frozen=True, repr=False)
class Query(QuerySpec):
    """A frozen, reusable query; `mt.windows(...)` starts one.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("amount")).by("shop").on("at")
    >>> query.keys
    ('shop',)
    """

    # The engine is imported where it is used: writing a query must stay cheap to import.

    if not TYPE_CHECKING:  # else type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            from muntin import foreign_names

            known = [one for one in dir(type(self)) if not one.startswith("_")]
            raise foreign_names.unknown("a query", name, known, foreign_names.QUERY, ".")

    @checked_call()
    def run(self, source: object, *, schema: object = None, threads: int = 1) -> Results:
        """The windows of a whole table, file or other source, whose end closes every window.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
        >>> query.run({"t": [1, 2, 13], "k": ["a", "b", "a"]}, threads=2)["n"].to_pylist()
        [1, 1, 1]

        Args:
            source: An Arrow table or batch, a pandas or polars DataFrame, a dict of
                columns or a list of dicts. Or a source that is read part by part, so that it may be
                larger than memory: the path of a file (.csv, .jsonl, .parquet, .arrow; also .gz),
                of a directory or a pattern like "2026-*.csv"; a list of paths; a pyarrow dataset
                or RecordBatchReader; an iterator of tables, batches, records or paths. Slices stay in memory
                until the end, tuples only where a window depends on their order.
            schema: The types of columns, as in `operator`.
            threads: The number of threads. The results are the same, bit for bit and in the
                same order, in several chunks. Threads share the time of the tuples, or
                their keys. A query with Python code of your own or with sketches, which run
                in the interpreter, uses one thread.
        """
        from muntin.connectors.running import run

        return run(self.validated(), source, schema=schema, threads=threads)

    @checked_call()
    def operator(
        self,
        *,
        watermark_lag: SpanLike | None = None,
        in_order: bool = False,
        clock: Callable[[], float] | None = None,
        store: str | None = None,
        schema: object = None,
        threads: int = 1,
    ) -> Operator:
        """An operator to push batches or records into.

        Args:
            watermark_lag: Derive the watermark from the data: the newest time minus
                this. Without it, `advance` sets the watermark.
            in_order: The stream is ordered by time; a tuple out of order is an error.
            clock: A function that returns the seconds since 1970, for `max_ahead` and
                `idle_after`. By default `max_ahead` uses `time.time`, and `idle_after`
                `time.monotonic`, which never goes back.
            store: Force a store instead of the one that the plan chooses.
            schema: The types of columns, as a pyarrow schema or a dict like
                `{"amount": "float64"}`; those left out get the type of the first
                batch.
            threads: The number of cores that large steps use. Results are identical.
        """
        from muntin.connectors import embedded

        return embedded.Operator(
            self.validated(),
            watermark_lag=watermark_lag,
            in_order=in_order,
            clock=clock,
            store=store,
            schema=schema,
            threads=threads,
        )

    @checked_call()
    def explain(
        self,
        frame: Any = None,
        *,
        in_order: bool = False,
        store: str | None = None,
        schema: object = None,
        plan: str = "auto",
        verbose: bool = False,
    ) -> Explanation:
        """What runs, what is kept in memory, and when results are emitted; print it.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
        >>> print(query.explain())
        computes  1 aggregate over 1 window (ten) from slices: 0.1 a unit of time
        keeps     slices, no tuples
        emits     a window when the watermark reaches its end; late tuples are counted and dropped
        explain(verbose=True), or muntin explain --verbose, shows every decision and its reason

        Args:
            frame: A Spark DataFrame: what would run on it where, and why.
            in_order: As for `operator`.
            store: As for `operator`.
            schema: As for `operator`. The types of columns decide whether user-defined
                aggregates are compiled; with them, this tries it.
            plan: With a DataFrame, as for `transform`.
            verbose: Whether to print all settings, the characteristics of the query, and each
                decision with its reason.
        """
        if frame is not None:
            if in_order or store is not None or schema is not None:
                raise QueryError("a DataFrame has its schema, and no in_order= or store=: leave them out")
            from muntin.connectors.spark import explain as explain_on_spark

            return explain_on_spark(self.validated(), frame, plan, verbose)
        from muntin.connectors.types import declared
        from muntin.planning.plan import explain as explain_embedded

        kinds = None if schema is None else declared(schema)
        return explain_embedded(
            self.validated(), in_order=in_order, store=store, types=kinds, verbose=verbose
        )

    def _repr_html_(self) -> str:
        rows = [("window", name, window.describe()) for name, window in self.windows]
        rows += [("aggregate", name, aggregate.describe()) for name, aggregate in self.aggregates]
        rows += [("key", name, "") for name in self.keys] + [("time", self.time, "")]
        return html_table(("", "name", ""), (False, False, False), rows) + html_folded("code", repr(self))

    def to_toml(self) -> str:
        """The query as the text of a TOML file, which `mt.load` reads back."""
        from muntin.query.files import to_toml

        return to_toml(self)

    def __call__(
        self,
        frame: Any,
        *,
        plan: str = "auto",
        tie: Any = None,
        watermark: SpanLike | None = None,
        watermark_from: str | None = None,
    ) -> Any:
        """The window results of a Spark DataFrame, streaming or batch: `events.transform(query)`.

        Args:
            frame: The DataFrame.
            plan: `events.transform(query, plan="packed")` runs the query in Python workers, "jvm" in
                Spark's own operators where they can serve it; "auto" does the latter where it can.
            tie: A column of integers or timestamps that orders tuples of one time, as a name or a
                `Column`; it should differ among those of one key. Without it their values decide.
            watermark: The delay of a stream's watermark behind the newest tuple, as "10 seconds"; it takes
                the place of `withWatermark`. A tuple that is more than `max_ahead` ahead of the clock, 366
                days by default, is a bad tuple and does not move the watermark. A bounded DataFrame
                ignores it.
            watermark_from: The column that `withWatermark` named, if a Python function computed the time
                column from it; after such a function Spark no longer knows which column that was.
        """
        from muntin.connectors.spark import transform

        return transform(
            self.validated(), frame, plan, tie=tie, watermark=watermark, watermark_from=watermark_from
        )

    def control(self, path: str | PathLike[str]) -> Controlled:
        """The query for a stream whose windows change while it runs: `events.transform(query.control(path))`.

        `path` is a directory that driver and workers can read. What it returns has `add` and `remove`.
        """
        from muntin.connectors.spark.query_changes import Controlled

        rule = 'control takes the path of a directory, like "control/shops"'
        return Controlled(self.validated(), path_text(path, rule))

    def stats(self, running: Any) -> StreamStats:
        """The work that this query has done in a running streaming query of Spark; print it."""
        from muntin.connectors.spark.stream_stats import stats

        return stats(self, running)


def windows(*unnamed: object, **named: Window) -> Query:
    """Start a query from named windows; the names appear in the results' column `window_name`.

    >>> from muntin.windows import tumbling
    >>> windows(minute=tumbling("1 minute"))
    mt.windows(minute=w.tumbling(length='1 minute'))
    """
    if unnamed:
        raise QueryError('windows need names: write mt.windows(minute=w.tumbling("1 minute"))')
    return Query(windows=tuple(named.items()))
