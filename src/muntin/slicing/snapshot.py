"""The whole state of an operator as tables, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.encoding import decode, encode
from muntin.errors import MuntinError, QueryError, SnapshotError
from muntin.expressions import Expr
from muntin.metrics import Metrics
from muntin.query import QuerySpec
from muntin.slicing.archive import pack, unpack
from muntin.slicing.batch import Batch
from muntin.slicing.closed import Closed, Past
from muntin.slicing.extents import Extent
from muntin.slicing.judging import Late, Raw, Waiting
from muntin.slicing.kept import KeptSlicer
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.manager import SliceManager
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.partials import PartialSet
from muntin.slicing.registry import Registry
from muntin.slicing.table import COLUMNS, SliceTable
from muntin.slicing.tuples import KeptTuples, Progress
from muntin.timeline import Micros

_CLOSED = ("key", "begin", "end", "start", "stop", "due", "low", "high", "life")
_PAST = ("key", "begin", "a", "b", "end", "due", "count", "life")
_EXTENT = ("first", "last", "shown", "key")
_REGISTRY = ("a", "b", "key", "life", "ordinal", "n", "mark", "due", "revision", "stage")


def snapshot(operator: SlicingOperator, text: str | None) -> bytes:
    """The state of an operator. `text` is its query as TOML, where it has such a form."""
    return pack(*dismantle(operator, text))


def dismantle(operator: SlicingOperator, text: str | None) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The state of an operator as a header of plain values and named tables."""
    spec = current_spec(operator)
    header: dict[str, Any] = {
        "fingerprint": spec.fingerprint(),
        "query": text,
        "windows": [[q.name, q.window.describe(), q.since, q.after, q.late] for q in operator.live.queries],
        "in_order": operator.in_order,
        "store": operator.forced_store,
        "lag": operator.lag,
        "lag_is_time": isinstance(operator.lag, Micros),
        "watermark": operator.watermark,
        "seq": operator._seq,
        "metrics": asdict(operator.metrics),
        "bad": operator.arrivals.bad,
        "bound": operator.binding is not None,
    }
    # Tuples without any time are bad before the types are known.
    tables = {f"bad/{i}": bad for i, bad in enumerate(operator.arrivals.routed)}
    tables |= {f"held/{i}": results for i, results in enumerate(operator.held) if results.num_rows}
    tables["declared"] = pa.schema(operator.declared).empty_table()
    if operator.binding is not None:
        tables["input"] = operator.binding.schema.empty_table()
        _save_state(operator, header, tables)
    return header, tables


def current_spec(operator: SlicingOperator) -> QuerySpec:
    """The query with the windows that are served now."""
    return replace(operator.spec, windows=tuple((q.name, q.window) for q in operator.live.queries))


def restore(data: bytes, read_query: Any, query: QuerySpec | None) -> SlicingOperator:
    """An operator that continues where the snapshot was taken.

    `read_query` reads the TOML text in the snapshot; a query with Python functions has none and
    must be given.
    """
    header, tables = unpack(data)
    try:
        return assemble(header, tables, _query_of(header, read_query, query))
    except (AttributeError, AssertionError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, MuntinError):
            raise
        raise SnapshotError(
            "this file has the form of a snapshot, but does not hold what a snapshot of this version does "
            f"({type(error).__name__}: {error}); take an older one"
        ) from error


def assemble(header: dict[str, Any], tables: dict[str, pa.Table], spec: QuerySpec) -> SlicingOperator:
    """The operator that was taken apart; `spec` is its query."""
    operator = SlicingOperator(spec, bool(header["in_order"]), header["store"])
    for live, (_, _, since, after, late) in zip(operator.live.queries, header["windows"], strict=True):
        live.since, live.after, live.late = since, after, late
    operator.live = LiveSet(operator.live.queries)
    lag = header["lag"]
    operator.lag = Micros(lag) if header["lag_is_time"] else lag
    operator.metrics = Metrics(**header["metrics"])
    operator.watermark = header["watermark"]
    operator._seq = header["seq"]
    operator.arrivals.bad = header["bad"]
    operator.arrivals.routed = [table for path, table in tables.items() if path.startswith("bad/")]
    operator.held = [table for path, table in tables.items() if path.startswith("held/")]
    operator.declared = {field.name: field.type for field in tables["declared"].schema}
    if header["bound"]:
        operator.bind(tables["input"].schema, tuple(header["records"]))
        _load_state(operator, header, tables)
    return operator


def _query_of(header: dict[str, Any], read_query: Any, query: QuerySpec | None) -> QuerySpec:
    served = ", ".join(f"{name}: {text}" for name, text, *_ in header["windows"])
    if query is None:
        if header["query"] is None:
            raise SnapshotError(
                "the snapshot is of a query with Python functions, which it cannot hold; "
                f"pass the query as well: restore(data, query) (windows: {served})"
            )
        spec: QuerySpec = read_query(header["query"])
        return spec
    if not isinstance(query, QuerySpec):
        raise QueryError(
            f"query must be the query that the snapshot is of, or left out: got {query!r}; "
            f"pass what .on(...) returned (windows: {served})"
        )
    if query.fingerprint() != header["fingerprint"]:
        given = ", ".join(f"{name}: {window.describe()}" for name, window in query.windows)
        raise SnapshotError(
            f"the snapshot is of another query: it serves {served}; the one given serves {given}; "
            "windows, aggregates, keys, time column and policies must be the same"
        )
    return query


# The parts of the state. --------------------------------------------------------------------------


def _save_state(operator: SlicingOperator, header: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    slices = operator.slices
    assert operator.binding is not None
    header |= {
        "records": operator.binding.records,
        "newest": slices.newest,
        "retained_from": slices.retained_from,
        "touched": slices.touched,
        "keys": len(operator.keys),
    }
    ids = np.arange(len(operator.keys), dtype=np.int64)
    tables["keys"] = pa.table(
        operator.keys.values(ids) if operator.spec.keys else [], names=list(operator.spec.keys)
    )
    tables["slices"] = save_slices(slices.table, slices.partials)
    inputs = operator.binding.inputs
    for i, waiting in enumerate(slices.waiting):
        tables[f"waiting/{i}"] = save_slices(waiting.rows, slices.partials)
        if waiting.raw is not None:
            tables[f"waiting_raw/{i}"] = pa.Table.from_batches([waiting.raw.tuples])
            tables[f"waiting_at/{i}"] = pa.table({"key": waiting.raw.key, "time": waiting.raw.time})
    for i, late in enumerate(operator.late):
        tables[f"late/{i}/{late.query}"] = pa.Table.from_batches([late.raw])
    for name, registry in operator.windows.registries.items():
        tables[f"registry/{name}"] = pa.table({c: pa.array(getattr(registry, c)) for c in _REGISTRY})
        if registry.values is not None:
            tables[f"registry_values/{name}"] = registry.values
    for name, extent in operator.windows.extents.items():
        columns = {c: getattr(extent, c) for c in _EXTENT}
        tables[f"extent/{name}"] = pa.table({c: pa.array(v) for c, v in columns.items() if v is not None})
    if slices.kept is not None:
        header |= {"ahead": slices.kept._ahead, "upto": slices.kept._upto}
        _save_kept(slices.kept, inputs, tables)


def _load_state(operator: SlicingOperator, header: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    slices = operator.slices
    assert operator.binding is not None
    slices.newest, slices.retained_from = header["newest"], header["retained_from"]
    slices.touched, slices.keys = header["touched"], max(header["keys"], 1)
    if operator.spec.keys and len(tables["keys"]):
        operator.keys.encode([c.combine_chunks() for c in tables["keys"].columns])
    slices.table = load_slices(tables["slices"], slices.partials)
    inputs = operator.binding.inputs
    for path, table in tables.items():
        kind, _, name = path.partition("/")
        if kind == "waiting":
            raw, at = tables.get(f"waiting_raw/{name}"), tables.get(f"waiting_at/{name}")
            waiting = Waiting(load_slices(table, slices.partials))
            if raw is not None and at is not None:
                key, time = (at.column(c).to_numpy().copy() for c in ("key", "time"))
                waiting.raw = Raw(key, time, _one_batch(raw))
            slices.waiting.append(waiting)
        elif kind == "late":
            operator.late.append(Late(name.partition("/")[2], _one_batch(table)))
        elif kind == "registry":
            columns = {c: table.column(c).to_numpy().copy() for c in _REGISTRY}
            operator.windows.registries[name] = Registry(
                **columns, values=tables.get(f"registry_values/{name}")
            )
        elif kind == "extent":
            columns = {c: table.column(c).to_numpy().copy() for c in table.column_names}
            operator.windows.extents[name] = Extent(**columns)
    if slices.kept is not None:
        slices.kept._ahead, slices.kept._upto = header["ahead"], header["upto"]
        _load_kept(slices.kept, inputs, tables, slices)


def save_slices(table: SliceTable, partials: PartialSet) -> pa.Table:
    """The rows as an Arrow table."""
    columns: dict[str, pa.Array] = {name: pa.array(c) for name, c in table.columns.items()}
    for i, (partial, state) in enumerate(zip(partials.partials, table.states, strict=True)):
        columns |= {f"{i}/{name}": array for name, array in partial.to_arrow(state).items()}
    return pa.table(columns)


def load_slices(table: pa.Table, partials: PartialSet) -> SliceTable:
    """The rows that `save_slices` wrote."""
    states: list[Any] = []
    for i, partial in enumerate(partials.partials):
        prefix = f"{i}/"
        own = {
            name.removeprefix(prefix): table.column(name).combine_chunks()
            for name in table.column_names
            if name.startswith(prefix)
        }
        states.append(partial.from_arrow(own))
    columns = {name: table.column(name).to_numpy().copy() for name in COLUMNS}
    return SliceTable.of(columns, tuple(states))


def _save_batch(batch: Batch, inputs: tuple[Expr, ...]) -> pa.Table:
    columns = {"key": pa.array(batch.key), "time": pa.array(batch.time), "seq": pa.array(batch.seq)}
    return pa.table(columns | {f"{i}": batch.values[e] for i, e in enumerate(inputs)})


def _load_batch(table: pa.Table, inputs: tuple[Expr, ...]) -> Batch:
    key, time, seq = (table.column(c).to_numpy().copy() for c in ("key", "time", "seq"))
    return Batch(key, time, seq, {e: table.column(f"{i}").combine_chunks() for i, e in enumerate(inputs)})


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _save_kept(kept: KeptSlicer, inputs: tuple[Expr, ...], tables: dict[str, pa.Table]) -> None:
    tuples = kept.tuples
    if tuples.batch is not None:
        tables["tuples"] = _save_batch(tuples.batch, inputs).append_column("fresh", pa.array(tuples.fresh))
    for i, batch in enumerate(tuples.arrived):
        tables[f"arrived/{i}"] = _save_batch(batch, inputs)
    tables["progress"] = pa.table(
        {
            "base": tuples.base,
            "reached": tuples.reached,
            "committed": tuples.committed.rank,
            "sliced": tuples.sliced.rank,
        }
    )
    for stage, progress in (("committed", tuples.committed), ("sliced", tuples.sliced)):
        tables[f"lives/{stage}"] = pa.table({"life": progress.life, "last": progress.last})
        for name, firsts in progress.firsts.items():
            tables[f"firsts/{stage}/{name}"] = pa.table({"first": firsts})
        for name, contexts in progress.contexts.items():
            tables[f"contexts/{stage}/{name}"] = pa.table({"context": _save_contexts(contexts)})
    for name, skipped in tuples.skipped.items():
        tables[f"skipped/{name}"] = pa.table({"rank": skipped})
    for name, closed in kept.closed.items():
        columns = {c: getattr(closed, c) for c in _CLOSED}
        tables[f"closed/{name}"] = pa.table({c: pa.array(v) for c, v in columns.items() if v is not None})
    for name, past in kept.past.items():
        tables[f"past/{name}"] = pa.table({c: pa.array(getattr(past, c)) for c in _PAST})


def _load_kept(
    kept: KeptSlicer, inputs: tuple[Expr, ...], tables: dict[str, pa.Table], slices: SliceManager
) -> None:
    progress = {c: tables["progress"].column(c).to_numpy().copy() for c in tables["progress"].column_names}
    tuples = KeptTuples(base=progress["base"], reached=progress["reached"])
    tuples.committed = Progress(progress["committed"])
    tuples.sliced = Progress(progress["sliced"])
    queries = {q.name: q for q in slices.live.driven}
    for path, table in tables.items():
        kind, _, name = path.partition("/")
        if kind == "contexts":
            stage, _, query = name.partition("/")
            contexts = _load_contexts(table.column("context").combine_chunks(), queries[query])
            getattr(tuples, stage).contexts[query] = contexts
        elif kind == "lives":
            found = getattr(tuples, name)
            found.life, found.last = (table.column(c).to_numpy().copy() for c in ("life", "last"))
        elif kind == "firsts":
            stage, _, query = name.partition("/")
            getattr(tuples, stage).firsts[query] = table.column("first").to_numpy().copy()
        elif kind == "skipped":
            tuples.skipped[name] = table.column("rank").to_numpy().copy()
        elif kind == "closed":
            columns = {c: table.column(c).to_numpy().copy() for c in table.column_names}
            kept.closed[name] = Closed(**{"low": None, "high": None} | columns)
        elif kind == "past":
            kept.past[name] = Past(**{c: table.column(c).to_numpy().copy() for c in _PAST})
        elif kind == "arrived":
            tuples.arrived.append(_load_batch(table, inputs))
    if "tuples" in tables:
        tuples.batch = _load_batch(tables["tuples"], inputs)
        tuples.fresh = tables["tuples"].column("fresh").to_numpy(zero_copy_only=False).copy()
        tuples._index(len(tuples.base))
    else:
        tuples.offsets = np.zeros(len(tuples.base) + 1, dtype=np.int64)
    kept.tuples = tuples


def _save_contexts(contexts: npt.NDArray[Any]) -> pa.Array:
    if contexts.dtype == object:
        return pa.array([encode(context) for context in contexts], pa.string())
    raw = pa.py_buffer(np.ascontiguousarray(contexts).tobytes())
    return pa.Array.from_buffers(pa.binary(contexts.dtype.itemsize), len(contexts), [None, raw])


def _load_contexts(saved: pa.Array, query: LiveQuery) -> npt.NDArray[Any]:
    if pa.types.is_string(saved.type):
        values = [decode(text) for text in saved.to_pylist()]
        contexts = np.empty(len(values), dtype=object)
        contexts[:] = values
        return contexts
    kind = query.window.initial(0).dtype  # type: ignore[attr-defined]
    raw = saved.buffers()[1]
    return np.frombuffer(raw, dtype=kind, count=len(saved), offset=saved.offset * kind.itemsize).copy()
