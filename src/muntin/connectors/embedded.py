"""Muntin in one process: an operator to push batches and records into."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable, KeysView, Sequence
from dataclasses import replace
from typing import Self

import pyarrow as pa

from muntin.aggregates.base import Aggregate
from muntin.connectors import embedded_snapshot as snapshots
from muntin.connectors.buffer import MOST_RECORDS, InputBuffer
from muntin.connectors.embedded_snapshot import Connection
from muntin.connectors.exclusive import concurrent_call, exclusive
from muntin.connectors.expected_input import bind_declared, expected
from muntin.connectors.inspected import Inspected
from muntin.connectors.operator_lines import operator_lines
from muntin.connectors.running import threads_for
from muntin.connectors.streaming import Stream
from muntin.connectors.tables import ANYTHING, SCALARS, Expected, as_record, to_batch
from muntin.connectors.types import declared
from muntin.display import html_of_lines, named_lines
from muntin.errors import DataError, MuntinError, QueryError, value_text
from muntin.planning.plan import make_plan
from muntin.query import QuerySpec
from muntin.results import Results
from muntin.results.results import joined
from muntin.slicing.arrivals import BadTupleError, Misfit
from muntin.slicing.bound_plan import Settings
from muntin.slicing.emission.deferred_rows import DeferredRows
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.stats import Stats
from muntin.slicing.window_changes import Added, Change, to_add, to_remove
from muntin.timeline import INF, Micros, TimeColumn, span
from muntin.windows.base import Window


class Operator(Inspected):
    """Takes tuples and watermarks, gives window results; it belongs to one caller at a time.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> op = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()
    >>> _ = op.process([{"t": 3, "v": 1}, {"t": 12, "v": 5}, {"t": 8, "v": 2}])
    >>> op.advance(10).to_pylist()
    [{'window_name': 'ten', 'window': {'start': 0, 'end': 10}, 'total': 3, 'kind': 'final', 'revision': 0}]
    >>> op
    Operator
    windows     ten: tumbling 10
    aggregates  total: sum(v)
    watermark   10
    tuples      3, late 0, bad 0
    """

    def __init__(
        self,
        query: QuerySpec,
        *,
        watermark_lag: object = None,
        in_order: bool = False,
        clock: Callable[[], float] | None = None,
        store: str | None = None,
        schema: object = None,
        threads: int = 1,
    ) -> None:
        if store is not None:
            make_plan(query, in_order, store)  # an unknown store is an error before any tuple arrives
        if in_order and watermark_lag is not None:
            raise QueryError("in_order=True makes each tuple a watermark; leave watermark_lag out")
        lag = None if watermark_lag is None else span(watermark_lag, "watermark_lag")
        if lag is not None and lag < 0:
            raise QueryError(
                f"watermark_lag must not be negative: got {value_text(watermark_lag)}; 0 trusts the order"
            )
        if clock is not None and not callable(clock):
            raise QueryError(
                "clock must be a function that gives the seconds since 1970, like time.time: "
                f"got {value_text(clock)}"
            )
        settings = Settings(in_order, store, lag is not None)
        engine = SlicingOperator(query.validated(), settings, threads_for(query, threads))
        self._connect(engine, Connection(lag, declared(schema)), clock)
        known = self._connection.declared
        if query.time in known:
            self._check_lag(known[query.time])
        bind_declared(engine, known)

    def _connect(
        self, engine: SlicingOperator, connection: Connection, clock: Callable[[], float] | None
    ) -> None:
        """Drive this engine from now on."""
        self._free = [None]
        """Empty while a call is running: see `exclusive`. `process`, called per record, inlines it."""
        self._engine, self._connection = engine, connection
        self._clock = clocks.monotonic if clock is None else clock
        engine.arrivals.clock = clocks.time if clock is None else clock
        self._heard = self._clock()
        self._buffer = InputBuffer(engine, connection.lag, connection.declared)
        self._time = engine.spec.time
        self._none = Results(self._nothing())
        self._last_form: KeysView[str] | None = None
        self._expectation: tuple[object, object, Expected] = (None, None, ANYTHING)

    # Input. -----------------------------------------------------------------------------------------

    def process(self, data: object) -> Results:
        """Take tuples in: a table, a batch, a DataFrame, a dict of columns, a list of dicts, or one record.

        Returns the results that this makes due: none as long as `advance` sets the watermark, unless
        early results after each batch are asked for.
        """
        try:
            self._free.pop()
        except IndexError:
            raise concurrent_call("process") from None
        try:
            # A record of the same form as the one before needs no checks before it is sliced.
            if type(data) is dict and data.keys() == self._last_form and type(data[self._time]) in SCALARS:
                records = self._buffer.records
                records.append(data.copy())
                return self._none if len(records) < MOST_RECORDS else Results(self._flush())
            if isinstance(data, pa.RecordBatch) and self._buffer.trusts(data.schema):
                return self._none if self._buffer.keep(data) else self._results(self._process_trusted(data))
            return self._results(self._process(data))
        finally:
            self._free.append(None)

    def _process_trusted(self, batch: pa.RecordBatch) -> pa.Table | DeferredRows:
        self._require_open("process")
        self._heard = self._clock()
        if not self._buffer.is_empty:
            self._slice_waiting()
        return self._due(self._take(batch, defer=True))

    def _process(self, data: object) -> pa.Table | DeferredRows:
        self._require_open("process")
        self._heard, buffer = self._clock(), self._buffer
        record = as_record(data, self._engine.spec.time, forgiving=self._engine.spec.bad != "fail")
        if record is not None and buffer.take(record):
            if buffer.waits_unchecked:
                self._last_form, self._none = buffer.records[-1].keys(), Results(self._nothing())
            return self._flush() if buffer.over else self._nothing()
        if not buffer.is_empty:
            self._slice_waiting()
        if record is not None:
            buffer.records.append(dict(record))
            return self._flush()
        batch, misfits = to_batch(data, self._expected())
        results = self._due(self._take(batch, misfits, defer=True))
        if type(data) is pa.RecordBatch and batch is data:
            buffer.trust(data.schema)
            self._none = Results(self._nothing())
        return results

    @exclusive
    def flush(self) -> Results:
        """Slice the buffered tuples; `advance` and `finish` do so too."""
        return Results(self._flush())

    def _flush(self) -> pa.Table:
        self._slice_waiting()
        return self._due()

    def _slice_waiting(self) -> None:
        """Slice the buffered batches and records, and move on to the watermark that waits among them."""
        self._slice_batches()
        promised, before = self._buffer.take_promise()
        if promised is not None:
            try:
                self._slice_records(before)
            finally:
                self._engine.advance(promised)
        self._slice_records(len(self._buffer.records))

    def _slice_batches(self) -> None:
        if self._buffer.batches:
            self._engine.process(*self._buffer.joined())
            self._buffer.forget_batches()

    def _slice_records(self, number: int) -> None:
        """Slice the first of the buffered records.

        A bad one raises an error; records before it are sliced, records after it stay in the buffer.
        """
        self._last_form = None
        records = self._buffer.records
        if not number:
            return
        batch, misfits = to_batch(records[:number], self._expected())
        done, size = 0, len(batch)
        while done < len(batch):
            misfits_here = [replace(m, row=m.row - done) for m in misfits if done <= m.row < done + size]
            try:
                self._connection.pending_results.append(self._take(batch.slice(done, size), misfits_here))
            except MuntinError as error:
                if size == 1:
                    del records[0]
                    raise
                # The row of a bad tuple is known; any other failing tuple is searched for by bisection.
                size = max(1, error.row if isinstance(error, BadTupleError) else size // 2)
            else:
                del records[:size]
                done, size = done + size, len(batch) - done - size

    def _pack_records(self) -> None:
        """Make one batch of the buffered records, if all of them are good."""
        try:
            batch, misfits = to_batch(self._buffer.records.copy(), self._expected())
        except MuntinError:
            return  # they are looked at one by one later, and those before the bad one count
        if not misfits and self._buffer.pack(batch) and self._buffer.full:
            self._slice_batches()

    def _expected(self) -> Expected:
        engine = self._engine
        binding, live, columns = self._expectation
        if binding is not engine.binding or live is not engine.served:
            columns = expected(engine, self._connection)
            self._expectation = (engine.binding, engine.served, columns)
        return columns

    def _take(
        self, batch: pa.RecordBatch, misfits: Sequence[Misfit] = (), defer: bool = False
    ) -> pa.Table | DeferredRows:
        if not batch.num_rows and all(pa.types.is_null(kind) for kind in batch.schema.types):
            return self._nothing()  # no tuples, and no types to learn
        if self._connection.lag is None:
            return self._engine.process(batch, misfits=misfits, defer=defer)
        if self._engine.binding is None and self._engine.spec.time in batch.schema.names:
            self._check_lag(batch.schema.field(self._engine.spec.time).type)
        return self._engine.process(batch, misfits=misfits, lag=self._connection.lag, defer=defer)

    def _check_lag(self, kind: pa.DataType) -> None:
        if self._connection.lag is not None and not pa.types.is_null(kind):
            TimeColumn(kind, (self._connection.lag,))  # which wants lengths of its own unit

    def _due(self, results: pa.Table | DeferredRows | None = None) -> pa.Table | DeferredRows:
        """Pending results, which an error prevented from being returned, and these."""
        pending = self._connection.pending_results
        if not pending:
            return self._nothing() if results is None else results
        self._connection.pending_results = []
        if isinstance(results, DeferredRows):
            results = results.table()
        return joined(pending if results is None else [*pending, results])

    def _nothing(self) -> pa.Table:
        return self._engine.nothing()

    def _no_results(self) -> Results:
        """The same object each time, until the types of the columns are known: most calls have no results."""
        nothing = self._engine.nothing()
        if self._none._source is not nothing:
            self._none = Results(nothing)
        return self._none

    def _results(self, rows: pa.Table | DeferredRows) -> Results:
        if type(rows) is DeferredRows:
            return Results(rows.table, rows.num_rows, rows.flat_table)
        return self._no_results() if rows is self._engine.nothing() else Results(rows)

    def stream(self, source: object, *, finish: bool = True) -> Stream:
        """Process a source and give the results of each part: `for results in op.stream(source)`.

        `async for` reads an asynchronous source, and closes the windows of a silent one after `idle_after`.
        Empty results are left out. Without `watermark_lag` or `in_order`, all results come at the end.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
        >>> live = ({"t": t} for t in (1, 5, 12, 31))
        >>> for results in query.operator(watermark_lag=0).stream(live):
        ...     print(results["window_start"].to_pylist(), results["n"].to_pylist())
        [0] [2]
        [10] [1]
        [30] [1]

        Args:
            source: An iterator of records, batches or anything else that `process` takes; or anything that
                `query.run` takes. With `async for`, an asynchronous iterator of the same items.
            finish: Whether the end of the source is the end of the stream. With False, windows stay open
                for the tuples of another source.
        """
        return Stream(self, source, finish)

    def __repr__(self) -> str:
        # Not `exclusive`: a debugger shows an operator while one of its calls is running.
        return f"Operator\n{named_lines(operator_lines(self._engine, self._buffer))}"

    def _repr_html_(self) -> str:
        return html_of_lines(operator_lines(self._engine, self._buffer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the threads. This does not end the stream, because it could not return the last results."""
        self._engine.release_threads()

    # Watermarks. ------------------------------------------------------------------------------------

    @exclusive
    def advance(self, watermark: object) -> Results:
        """Promise that every tuple before `watermark` has come; returns the windows that this completes.

        On a timestamp column a datetime or an ISO text, on an integer column an integer in its unit.
        A watermark lower than the last one is ignored.
        """
        self._require_open("advance")
        engine, buffer = self._engine, self._buffer
        time = engine.to_internal(watermark)
        if buffer.records and buffer.packable(time):
            self._pack_records()
        if buffer.promise(time):
            return self._no_results()
        if buffer.records or not buffer.batches:
            self._slice_waiting()
            return self._results(self._due(engine.advance(engine.to_internal(watermark), defer=True)))
        upto = time if buffer.promised is None else max(time, buffer.promised)
        # If it fails, the batches go on waiting.
        results = engine.process(*buffer.joined(), watermark=upto, defer=True)
        buffer.forget_batches()
        buffer.take_promise()
        return self._results(self._due(results))

    @exclusive
    def finish(self) -> Results:
        """The end of the stream: closes every window. Nothing can come after it."""
        return Results(self._finish())

    def _finish(self) -> pa.Table:
        self._slice_waiting()
        return self._due(self._engine.finish())

    def _require_open(self, call: str) -> None:
        if self._engine.header.watermark == INF:
            raise DataError(
                f"the stream has ended with finish(): got a call of {call}() after it; "
                "start a new stream with query.operator(), or leave finish() out to go on"
            )

    @exclusive
    def poll(self) -> Results:
        """Close the windows of a stream that has been silent for `idle_after`; otherwise nothing."""
        self._slice_waiting()
        limit = self._engine.spec.idle_after
        if limit is None or self._clock() - self._heard < limit / 1_000_000:
            return Results(self._due())
        return Results(self._due(self._engine.close_idle()))

    # Windows and aggregates that are added and removed. -----------------------------------------------

    @exclusive
    def add(self, /, *unnamed: object, **named: Window | Aggregate) -> Added:
        """Serve more windows and aggregates from now on; an aggregate is a new column of the results.

        Returns the time from which each is complete; as a text it has a line for each. An aggregate is
        null in windows that begin before its time.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> op = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
        >>> _ = op.process([{"t": 3, "v": 1}, {"t": 12, "v": 5}])
        >>> print(op.add(twenty=w.tumbling(20), most=a.max("v")))
        "twenty" (tumbling 20) is served from the beginning
        "most" (max(v)) is shown by windows that begin at 13 or later: earlier slices lack it
        >>> _ = op.process([{"t": 21, "v": 4}])
        >>> op.finish()
        window_name  window_start  window_end  n  most
        ten                     0          10  1     -
        twenty                  0          20  2     -
        ten                    10          20  1     -
        ten                    20          30  1     4
        twenty                 20          40  1     4
        5 rows
        """
        self._require_open("add")
        windows, aggregates = to_add(unnamed, named)
        return self._change(Change(windows, aggregates))

    @exclusive
    def remove(self, *names: str) -> None:
        """Stop serving windows and aggregates; the last one of each cannot be removed."""
        self._change(Change(remove=to_remove(names)))

    def _change(self, wanted: Change) -> Added:
        self._slice_waiting()
        added = self._engine.change(wanted)
        connection, self._none = self._connection, Results(self._nothing())
        connection.pending_results = [self._with_columns(table) for table in connection.pending_results]
        return added

    def _with_columns(self, results: pa.Table) -> pa.Table:
        """Results that were not returned yet, with the columns that results have now."""
        schema = self._nothing().schema
        columns = [
            results.column(one.name) if one.name in results.column_names else pa.nulls(len(results), one.type)
            for one in schema
        ]
        return pa.table(columns, schema=schema)

    # Side outputs and state. ------------------------------------------------------------------------

    @exclusive
    def take_late(self) -> pa.Table:
        """Tuples that came too late, each with the `window_name` that it missed; only with late="route"."""
        self._slice_waiting()
        return self._engine.take_late()

    @exclusive
    def take_bad(self) -> pa.Table:
        """The bad tuples, each with the `reason`; only with bad="route"."""
        self._slice_waiting()
        return self._engine.take_bad()

    @property
    @exclusive
    def watermark(self) -> int:
        """The current watermark, in the internal unit: microseconds, or units of an integer time column."""
        binding = self._engine.binding
        marked = binding is not None and not binding.time.is_integer  # `advance` takes it back
        return Micros(self._buffer.watermark) if marked else self._buffer.watermark

    @exclusive
    def snapshot(self) -> bytes:
        """The whole state as bytes, without any code; `restore` continues from it."""
        self._slice_waiting()
        return snapshots.snapshot(self._engine, self._connection)

    @classmethod
    def restore(
        cls,
        data: bytes,
        query: QuerySpec | None = None,
        *,
        clock: Callable[[], float] | None = None,
        threads: int = 1,
    ) -> Operator:
        """An operator that continues exactly where the snapshot was taken, its watermark lag included.

        A query with Python functions is not in the snapshot and must be given: with the windows
        that were served then, those added on the fly included.
        """
        operator = cls.__new__(cls)
        engine, connection = snapshots.restore(data, query)
        engine.use_threads(threads_for(engine.spec, threads))
        operator._connect(engine, connection, clock)
        return operator

    @exclusive
    def stats(self) -> Stats:
        """Counters, slices, stored tuples and bytes of state."""
        self._slice_waiting()
        return self._engine.stats()
