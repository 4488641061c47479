"""`query.run(source)`: all windows of a bounded stream, whose end closes every window."""

from __future__ import annotations

import pyarrow as pa

from muntin.connectors.embedded_snapshot import Connection
from muntin.connectors.expected_input import bind_declared, expected, wanted
from muntin.connectors.sources import Part, parts_of
from muntin.connectors.tables import as_record, to_batch
from muntin.connectors.types import declared
from muntin.errors import QueryError, value_text
from muntin.query import QuerySpec
from muntin.results import Results
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.parallel.compiled_queries import is_compiled
from muntin.slicing.parallel.threads import Threads
from muntin.timeline import INF


def run(query: QuerySpec, data: object, schema: object = None, threads: int = 1) -> Results:
    """All windows of a table or another source, whose end closes every window, on one or several threads.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    >>> run(query, {"t": [1, 2, 3], "k": ["a", "b", "a"]}, threads=2)["n"].to_pylist()
    [2, 1]
    """
    known = declared(schema)
    if number_of(threads) == 1 or not is_compiled(query):
        return Results(_run(SlicingOperator(query.validated()), data, known))
    with Threads.borrowed(threads) as several:
        return Results(_run(SlicingOperator(query.validated(), threads=several), data, known))


def _run(engine: SlicingOperator, data: object, known: dict[str, pa.DataType]) -> pa.Table:
    """Process all tuples of the stream and its end: in one step, or in a step for each part of a source."""
    spec, connection = engine.spec, Connection(None, known)
    bind_declared(engine, known)
    parts = parts_of(data, spec.time, lambda: wanted(engine, connection))
    if parts is None:
        record = as_record(data, spec.time, forgiving=spec.bad != "fail")
        return _take_last(engine, Part(data if record is None else [record]), connection)
    last = Part([])
    for part in parts:
        _take(engine, last, connection)
        last = part
    return _take_last(engine, last, connection)


def _take(engine: SlicingOperator, part: Part, connection: Connection) -> None:
    """Process a part of a source, without early results: the user has not chosen these batches."""
    with part.located():
        batch, misfits = to_batch(part.data, expected(engine, connection))
        if batch.num_rows or not all(pa.types.is_null(kind) for kind in batch.schema.types):
            engine.process(batch, misfits=misfits, looks=False)


def _take_last(engine: SlicingOperator, part: Part, connection: Connection) -> pa.Table:
    """Process the last part of a source, or a whole table, and the end of the stream."""
    with part.located():
        batch, misfits = to_batch(part.data, expected(engine, connection))
        if not batch.num_rows and all(pa.types.is_null(kind) for kind in batch.schema.types):
            return engine.finish()  # no tuples, and no types to learn
        results = engine.process(batch, misfits=misfits, watermark=INF)
    return engine.finish() if engine.plan is None else results


def number_of(threads: object) -> int:
    """The number of threads to use."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise QueryError(
            f"threads must be a whole number from 1 on: got {value_text(threads)}; "
            "os.cpu_count() tells how many cores there are"
        )
    return threads


def threads_for(query: QuerySpec, threads: int) -> Threads | None:
    """Threads for the steps of an operator; none where the interpreter takes part."""
    return Threads.started(threads) if number_of(threads) > 1 and is_compiled(query) else None
