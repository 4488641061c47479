"""The whole state of an operator as tables, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.encoding import encode
from muntin.errors import QueryError, SnapshotError, value_text
from muntin.expressions import Expr
from muntin.metrics import Metrics
from muntin.query import FREE_POLICIES, QuerySpec
from muntin.slicing.batch import Batch
from muntin.slicing.extents import Extent
from muntin.slicing.judging import Late, Raw, Waiting
from muntin.slicing.kept import KeptSlicer
from muntin.slicing.live import LiveSet
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.partials import PartialSet
from muntin.slicing.registry import Registry
from muntin.slicing.routed import one_table
from muntin.slicing.snapshot_kept import load_kept
from muntin.slicing.table import SliceTable
from muntin.slicing.tuples import STAGES
from muntin.slicing.validation import (
    Bounds,
    check_header,
    check_schema,
    read_columns,
    refuse_unless,
)
from muntin.windows.base import ContextFreeWindow


def dismantle(operator: SlicingOperator, text: str | None) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The state of an operator as a header of plain values and named tables.

    `text` is its query as TOML, where it has such a form.
    """
    spec = current_spec(operator)
    header: dict[str, Any] = {
        "fingerprint": _fingerprint(spec),
        "query": text,
        "windows": [[q.name, q.window.describe(), q.since, q.after, q.late] for q in operator.live.queries],
        "in_order": operator.in_order,
        "store": operator.forced_store,
        "watermark": operator.watermark,
        "seq": operator._seq,
        "metrics": asdict(operator.metrics),
        "bad": operator.arrivals.bad,
        "bound": operator.binding is not None,
    }
    # Tuples without any time are bad before the types are known.
    tables = {f"bad/{i}": bad for i, bad in enumerate(operator.arrivals.routed)}
    if operator.binding is not None:
        tables["input"] = operator.binding.schema.empty_table()
        _save_state(operator, header, tables)
    return header, tables


def current_spec(operator: SlicingOperator) -> QuerySpec:
    """The query with the windows that are served now."""
    return replace(operator.spec, windows=tuple((q.name, q.window) for q in operator.live.queries))


def assemble(
    header: dict[str, Any], tables: dict[str, pa.Table], spec: QuerySpec, follows_data: bool = False
) -> SlicingOperator:
    """The operator of a snapshot; `spec` is its query. Compiled code reads nothing that is unchecked."""
    check_header(header)
    operator = SlicingOperator(spec, bool(header["in_order"]), header["store"], follows_data)
    for live, (_, _, since, after, late) in zip(operator.live.queries, header["windows"], strict=True):
        live.since, live.after, live.late = since, after, late
    operator.live = LiveSet(operator.live.queries)
    operator.metrics = Metrics(**header["metrics"])
    operator.watermark = header["watermark"]
    operator._seq = header["seq"]
    operator.arrivals.bad = header["bad"]
    operator.arrivals.routed = [table for path, table in tables.items() if path.startswith("bad/")]
    _check_routed(operator.arrivals.routed)
    if header["bound"]:
        operator.bind(tables["input"].schema, tuple(header["records"]))
        _load_state(operator, header, tables)
    return operator


def query_of(header: dict[str, Any], read_query: Any, query: QuerySpec | None) -> QuerySpec:
    """The query of a snapshot: the given one, if it is the same, or what `read_query` makes of the text."""
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
            f"query must be the query that the snapshot is of, or left out: got {value_text(query)}; "
            f"pass what .on(...) returned (windows: {served})"
        )
    if header["fingerprint"] != _fingerprint(query):
        given = ", ".join(f"{name}: {window.describe()}" for name, window in query.windows)
        raise SnapshotError(
            f"the snapshot is of another query: it serves {served}; the one given serves {given}; "
            f"windows, aggregates, keys, time column and policies but for {', '.join(FREE_POLICIES)} must be "
            "the same"
        )
    return query


def _fingerprint(query: QuerySpec) -> str:
    """That of the query without the policies that no state depends on."""
    return replace(query, **FREE_POLICIES).fingerprint()


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
        tables[f"registry/{name}"] = registry.to_arrow()
        if registry.values is not None:
            tables[f"registry_values/{name}"] = registry.values
    for name, extent in operator.windows.extents.items():
        tables[f"extent/{name}"] = extent.to_arrow()
    if slices.kept is not None:
        header |= {"ahead": slices.kept._ahead, "upto": slices.kept._upto}
        _save_kept(slices.kept, inputs, tables)


def _load_state(operator: SlicingOperator, header: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    slices = operator.slices
    assert operator.binding is not None
    slices.newest, slices.retained_from = header["newest"], header["retained_from"]
    slices.touched, slices.keys = header["touched"], max(header["keys"], 1)
    if operator.spec.keys:
        load_keys(operator, tables["keys"])
    refuse_unless(
        header["keys"] == len(operator.keys), f"there must be {header['keys']} keys: got {len(operator.keys)}"
    )
    bounds = Bounds(len(operator.keys), operator.binding.time.limit)
    slices.table = load_slices(tables["slices"], slices.partials, bounds)
    names = {q.name: q for q in operator.live.queries}
    for path, table in tables.items():
        kind, _, name = path.partition("/")
        if kind == "waiting":
            slices.waiting.append(_load_waiting(name, tables, slices.partials, bounds))
        elif kind == "late":
            operator.late.append(Late(name.partition("/")[2], _one_batch(table)))
        elif kind in ("registry", "extent"):
            refuse_unless(name in names, f'no query is called "{name}"')
            columns = read_columns(kind, table, bounds, operator.binding.edge_dtype(names[name].window))
            if kind == "registry":
                values = tables.get(f"registry_values/{name}")
                free = isinstance(names[name].window, ContextFreeWindow)
                operator.windows.registries[name] = _load_registry(columns, values, free, slices.partials)
            else:
                refuse_unless(names[name].emits_empty, f'"{name}" has no extents')
                of_lives = slices.forget is not None and names[name].ends_with_key
                refuse_unless(
                    ("key" in columns) == of_lives,
                    "extents must belong to lives exactly where keys are forgotten",
                )
                refuse_unless(
                    of_lives or len(table) <= slices.keys, "there must not be more extents than keys"
                )
                operator.windows.extents[name] = Extent(**columns)
    raws = [waiting.raw.tuples for waiting in slices.waiting if waiting.raw is not None]
    _check_routed([*(late.raw for late in operator.late), *raws])
    if slices.kept is not None:
        slices.kept._ahead, slices.kept._upto = header["ahead"], header["upto"]
        load_kept(slices.kept, operator.binding, tables, bounds)


def _check_routed(parts: list[Any]) -> None:
    """Routed tuples may have columns of any type, but must form one table."""
    if parts:
        one_table(parts)


def load_keys(operator: SlicingOperator, table: pa.Table) -> None:
    """Encode the keys again; each must appear once, so that their numbers stay the same."""
    kinds = pa.schema(zip(operator.spec.keys, operator.keys.types, strict=True))
    check_schema("keys", table, kinds)
    ids = operator.keys.encode([table.column(name).combine_chunks() for name in kinds.names])
    refuse_unless(np.array_equal(ids, np.arange(len(table))), "each key must appear once")


def _load_waiting(name: str, tables: dict[str, pa.Table], partials: PartialSet, bounds: Bounds) -> Waiting:
    raw, at = tables.get(f"waiting_raw/{name}"), tables.get(f"waiting_at/{name}")
    waiting = Waiting(load_slices(tables[f"waiting/{name}"], partials, bounds))
    refuse_unless(len(waiting.rows), "a table of waiting tuples must not be empty")
    if raw is not None and at is not None:
        place = read_columns("waiting_at", at, bounds)
        refuse_unless(
            len(at) == len(raw) == waiting.rows.n.sum(), "each waiting tuple must have a key and a time"
        )
        waiting.raw = Raw(place["key"], place["time"], _one_batch(raw))
    return waiting


def _load_registry(
    columns: dict[str, Any], values: pa.Table | None, free: bool, partials: PartialSet
) -> Registry:
    """Emitted windows, with the values that a retraction repeats; context-free windows have none."""
    if values is None:
        refuse_unless(free or not len(columns["key"]), "emitted windows must have their values")
        return Registry(**columns)
    edges = [("start", pa.int64()), ("end", pa.int64())]
    wanted = pa.schema([*edges, *((str(i), bound.type) for i, bound in enumerate(partials.bound))])
    check_schema("registry_values", values, wanted)
    fits = not free and len(values) == len(columns["key"])
    refuse_unless(fits, "each emitted window that may be retracted must have its values")
    return Registry(**columns, values=values.select(wanted.names).combine_chunks())


def save_slices(table: SliceTable, partials: PartialSet) -> pa.Table:
    """The rows as an Arrow table."""
    columns: dict[str, pa.Array] = {name: pa.array(c) for name, c in table.columns.items()}
    for i, (partial, state) in enumerate(zip(partials.partials, table.states, strict=True)):
        columns |= {f"{i}/{name}": array for name, array in partial.to_arrow(state).items()}
    return pa.table(columns)


def load_slices(table: pa.Table, partials: PartialSet, bounds: Bounds) -> SliceTable:
    """The rows that `save_slices` wrote; a SnapshotError where they are not what it writes."""
    columns = read_columns("slices", table, bounds)
    fine = (columns["first"] <= columns["last"]) & (columns["fresh"] <= columns["n"])
    refuse_unless(fine.all(), "a slice must not end before its begin, nor have more fresh tuples than tuples")
    states = []
    for i, (partial, empty) in enumerate(zip(partials.partials, partials.empty(), strict=True)):
        prefix = f"{i}/"
        own = {
            name.removeprefix(prefix): table.column(name).combine_chunks()
            for name in table.column_names
            if name.startswith(prefix)
        }
        if partial.uniform:
            kinds = {name: column.type for name, column in partial.to_arrow(empty).items()}
            check_schema("slices", pa.table(own), pa.schema(kinds))
        state = partial.from_arrow(own)
        fits = partial.size(state) == len(table) and partial.sound(state)
        refuse_unless(fits, f"the rows of {type(partial).__name__} must be valid")
        states.append(state)
    return SliceTable.of(columns, tuple(states))


def _save_batch(batch: Batch, inputs: tuple[Expr, ...]) -> pa.Table:
    columns = {"key": pa.array(batch.key), "time": pa.array(batch.time), "seq": pa.array(batch.seq)}
    return pa.table(columns | {f"{i}": batch.values[e] for i, e in enumerate(inputs)})


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
    for stage in STAGES:
        progress = tuples.stage(stage)
        tables[f"lives/{stage}"] = pa.table({"life": progress.life, "last": progress.last})
        for name, firsts in progress.firsts.items():
            tables[f"firsts/{stage}/{name}"] = pa.table({"first": firsts})
        for name, contexts in progress.contexts.items():
            tables[f"contexts/{stage}/{name}"] = pa.table({"context": _save_contexts(contexts)})
    for name, skipped in tuples.skipped.items():
        tables[f"skipped/{name}"] = pa.table({"rank": skipped})
    for name, closed in kept.closed.items():
        tables[f"closed/{name}"] = closed.to_arrow()
    for name, past in kept.past.items():
        tables[f"past/{name}"] = past.to_arrow()


def _save_contexts(contexts: npt.NDArray[Any]) -> pa.Array:
    if contexts.dtype == object:
        return pa.array([encode(context) for context in contexts], pa.string())
    raw = pa.py_buffer(np.ascontiguousarray(contexts).tobytes())
    return pa.Array.from_buffers(pa.binary(contexts.dtype.itemsize), len(contexts), [None, raw])
