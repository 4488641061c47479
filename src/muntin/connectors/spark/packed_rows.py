"""The rows that cross the shuffle: slices, or tuples where windows depend on them, packed as Arrow bytes.

A stateful operator in Python pays per row and per key, so that few large rows are faster than many small
ones. Each partition sends each key group its payloads and, in a row without a payload, its newest time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import DataError
from muntin.slicing.binding import ARRIVAL
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.partition_slicer import PartitionSlicer
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.snapshots.archive import pack, reading, unpack
from muntin.slicing.snapshots.checks import (
    Bounds,
    Role,
    can_continue_as,
    check_schema,
    check_value,
    refuse_unless,
)
from muntin.slicing.snapshots.loading import load_slices
from muntin.timeline import NEG_INF

__all__ = [
    "CHANGE", "CLOCK", "GROUP", "NEVER", "NEWEST", "PACKED", "PAYLOAD", "Payload", "pack_bad", "pack_results",
    "pack_rows", "pack_slices", "pack_tuples", "take_in", "unpack_results",
]  # fmt: skip

GROUP = "__group"
"""The column with the number of a tuple's key group."""
NEWEST, PAYLOAD, CHANGE, CLOCK = "newest", "payload", "change", "clock"
PACKED = pa.schema(
    {
        GROUP: pa.int32(),
        NEWEST: pa.int64(),
        PAYLOAD: pa.binary(),
        CHANGE: pa.string(),
        CLOCK: pa.int64(),
    }
)
"""A key group with a payload, the newest time of a partition, a change of the windows, or the time of day."""

NEVER = NEG_INF
"""No newest time, or no time of day. Not null: pandas would make floats of such a column."""

Ints = npt.NDArray[np.int64]
Payload = tuple[int, bytes | None]
"""A key group, and its payload."""


def pack_rows(newest: int | None, payloads: list[Payload]) -> pa.RecordBatch:
    """Payloads with the newest time of their partition as rows of PACKED."""
    same = {NEWEST: NEVER if newest is None else newest, CLOCK: NEVER}
    rows = [{GROUP: group, PAYLOAD: payload, **same} for group, payload in payloads]
    return pa.RecordBatch.from_pylist(rows, schema=PACKED)


def pack_slices(slicer: PartitionSlicer, keys: Ints, changes: tuple[str, ...] | None = None) -> bytes:
    """The slices of these keys, which are numbered by their position among them.

    `changes` are the files whose windows cut the slices too, where windows change while the stream runs.
    """
    state, names = slicer.state, slicer.plan.spec.keys
    position = np.full(state.key_count, -1, dtype=np.int64)
    position[keys] = np.arange(len(keys))
    rows = state.slices.take(position[state.slices.key] >= 0)
    tables = {
        "keys": pa.table(state.keys.values(keys), names=list(names)),
        "slices": rows.renumbered(position).to_arrow(),
    }
    return pack({"holds": "slices", "changes": changes}, tables, checked=False)


def pack_tuples(tuples: pa.Table) -> bytes:
    """Tuples unchanged, with their ARRIVAL."""
    return pack({"holds": "tuples"}, {"tuples": tuples}, checked=False)


def pack_bad(count: int, tuples: pa.Table) -> bytes:
    """The number of bad tuples of a partition, and the tuples themselves where they are routed."""
    return pack({"holds": "bad", "count": count}, {"bad": tuples}, checked=False)


def pack_results(results: pa.Table) -> bytes:
    """Result rows as one value."""
    return pack({"holds": "results"}, {"results": results}, checked=False)


def unpack_results(payload: bytes) -> list[pa.RecordBatch]:
    """The rows that `pack_results` wrote."""
    _, tables = unpack(payload, checked=False)
    with reading():
        batches: list[pa.RecordBatch] = tables["results"].to_batches()
    return batches


def take_in(
    operator: SlicingOperator,
    schema: pa.Schema,
    payloads: Iterable[bytes],
    newest: int | None,
    changes: Iterable[str] = (),
) -> pa.Table:
    """Add the contents of payloads to the operator as one batch; returns early results, if there are any.

    `schema` is that of the input. `newest` is the newest time of the micro-batch, other key groups included;
    None without tuples. `changes` are the files whose windows the operator serves.

    The payloads are sorted: so a repeated micro-batch adds floats in the same order.
    """
    plan = operator.bind(schema)
    arrived = sorted(payloads)
    for payload in arrived:
        header, tables = unpack(payload, checked=False)
        with reading():
            contents = _read(header, tables, plan)
        if isinstance(contents, SliceTable):
            _check_cuts(header["changes"], changes)
            operator.take_slices([column.combine_chunks() for column in tables["keys"].columns], contents)
        elif header["holds"] == "bad":
            operator.note_bad(header["count"], contents)
        else:
            for batch in contents.combine_chunks().to_batches():
                operator.process(batch, looks=False)
    if newest is None and not arrived:
        return operator.nothing()
    # Also without payloads: a tuple that waited for the watermark may have joined a window since.
    if newest is None or newest < plan.final(operator.header.watermark):
        # Early results have no tuples that wait for the watermark.
        early = operator.early_look()
        if newest is not None:
            operator.note_newest(newest)
        return early
    operator.note_newest(newest)
    return operator.early_look()


def _read(header: dict[str, Any], tables: dict[str, pa.Table], plan: BoundPlan) -> SliceTable | pa.Table:
    """The contents of a payload, checked like a snapshot: slices, bad tuples or tuples."""
    holds, binding = header["holds"], plan.binding
    if holds == "slices":
        known = header["changes"]
        if known is not None:
            check_value("changes", known, list)
            for name in known:
                check_value("a change", name, str)
        names = tables["keys"].column_names
        refuse_unless(names == list(plan.spec.keys), f"slices must have the keys of the query: got {names}")
        _check_types(tables["keys"], names, binding.schema)
        bounds = Bounds(len(tables["keys"]) if names else 1, binding.time.limit)
        # Partitions compute all aggregates of the query, whichever windows are served.
        return load_slices(tables["slices"], binding.all_partials, bounds).carried(plan.partials)
    table = tables[holds]
    if holds == "bad":
        check_value("count", header["count"], Role.COUNT)
        lacking = {*binding.schema.names, "reason"} - {*table.column_names, ARRIVAL}
        refuse_unless(not len(table) or not lacking, f"bad tuples must have the columns {sorted(lacking)}")
        return table
    _check_types(table, sorted(binding.columns()), binding.schema)
    if ARRIVAL in table.column_names:
        check_schema(holds, table, pa.schema([(ARRIVAL, pa.int64())]))
        refuse_unless(not table.column(ARRIVAL).null_count, "each tuple must have an order of arrival")
    return table


def _check_types(table: pa.Table, names: Iterable[str], schema: pa.Schema) -> None:
    """Columns must have the types of this schema; timestamps may have another time zone."""
    for name in names:
        now, was = table.schema.field(name).type, schema.field(name).type
        fits = now == was or (now != pa.null() and can_continue_as(was, now))
        refuse_unless(fits, f'"{name}" must be {was}: got {now}')


def _check_cuts(known: list[str] | None, wanted: Iterable[str]) -> None:
    """Slices must be cut by all windows that are served, and partitions read these from files."""
    gone = sorted(set(wanted) - set(known)) if known is not None else []
    if gone:
        raise DataError(
            f"files of the control directory must stay where they are: {gone[0]} is gone, and the stream "
            "serves what it asked for; put it back, and go on from the checkpoint"
        )
