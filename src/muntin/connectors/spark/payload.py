"""What crosses the shuffle: slices, or tuples where they must be kept, packed as Arrow in one value.

Few fat rows instead of many thin ones: a stateful operator in Python pays per row and per key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import DataError
from muntin.slicing.archive import pack, reading, unpack
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshot import load_slices, save_slices
from muntin.slicing.table import SliceTable
from muntin.slicing.validation import Bounds, Role, can_continue_as, check_schema, check_value, refuse_unless

__all__ = ["pack_bad", "pack_results", "pack_slices", "pack_tuples", "take_in", "unpack_results"]

Ints = npt.NDArray[np.int64]


def pack_slices(operator: SlicingOperator, keys: Ints, changes: list[str] | None = None) -> bytes:
    """The slices of these keys, numbered by their place among them.

    `changes` are the files whose windows they are cut by too, where windows come and go.
    """
    slices = operator.slices
    place = np.full(len(operator.keys), -1, dtype=np.int64)
    place[keys] = np.arange(len(keys))
    mine = np.flatnonzero(place[slices.table.key] >= 0)
    rows = slices.table.take(mine, slices.partials)
    rows = rows.renumbered(place)
    values = operator.keys.values(keys) if operator.spec.keys else []
    names = list(operator.spec.keys)
    return pack(
        {"holds": "slices", "changes": changes},
        {"keys": pa.table(values, names=names), "slices": save_slices(rows, slices.partials)},
        checked=False,
    )


def pack_tuples(tuples: pa.Table) -> bytes:
    """Tuples as they came, with their ARRIVAL."""
    return pack({"holds": "tuples"}, {"tuples": tuples}, checked=False)


def pack_bad(operator: SlicingOperator) -> bytes:
    """How many bad tuples an operator has met, and the tuples themselves where they are routed."""
    return pack({"holds": "bad", "count": operator.arrivals.bad}, {"bad": operator.take_bad()}, checked=False)


def take_in(
    operator: SlicingOperator,
    schema: pa.Schema,
    payloads: Iterable[bytes],
    newest: int | None,
    changes: Iterable[str] = (),
) -> pa.Table:
    """Give the operator what payloads hold, as one batch; `schema` is that of the input.

    `newest` is the newest time of the whole stream, other key groups included. `changes` are the files
    whose windows the operator serves.

    They come in any order; sorted, a repeated micro-batch adds floats in the same order. Returns early
    results, where the query asks for them.
    """
    binding = operator.bind(schema)
    arrived = sorted(payloads)
    for payload in arrived:
        header, tables = unpack(payload, checked=False)
        with reading():
            held = _read(header, tables, operator, binding)
        if isinstance(held, SliceTable):
            _check_cuts(header["changes"], changes)
            operator.take_slices([column.combine_chunks() for column in tables["keys"].columns], held)
        elif header["holds"] == "bad":
            operator.arrivals.bad += header["count"]
            operator.arrivals.routed += [held] if len(held) else []
        else:
            for batch in held.combine_chunks().to_batches():
                operator.take_in(batch)
    if newest is None or newest <= operator.slices.newest:
        return operator.look() if arrived else operator.nothing()
    if newest < operator.slices.final:  # tuples that wait are in no early result
        early = operator.look() if arrived else operator.nothing()
        operator.slices.newest = newest
        return early
    operator.slices.newest = newest
    return operator.look()


def _read(
    header: dict[str, Any], tables: dict[str, pa.Table], operator: SlicingOperator, binding: Binding
) -> SliceTable | pa.Table:
    """The contents of a payload, checked like a snapshot: slices, bad tuples or tuples."""
    holds = header["holds"]
    if holds == "slices":
        known = header["changes"]
        refuse_unless(known is None or type(known) is list, f"changes must be a list: got {known!r:.80}")
        names = tables["keys"].column_names
        refuse_unless(
            names == list(operator.spec.keys), f"slices must have the keys of the query: got {names}"
        )
        bounds = Bounds(len(tables["keys"]) if names else 1, binding.time.limit)
        return load_slices(tables["slices"], operator.slices.partials, bounds)
    table = tables[holds]
    if holds == "bad":
        check_value("count", header["count"], Role.COUNT)
        lacking = {*binding.schema.names, "reason"} - {*table.column_names, ARRIVAL}
        refuse_unless(not len(table) or not lacking, f"bad tuples must have the columns {sorted(lacking)}")
        return table
    for name in sorted(binding.columns()):
        now, was = table.schema.field(name).type, binding.schema.field(name).type
        refuse_unless(can_continue_as(was, now), f'"{name}" must be {was}: got {now}')
    if ARRIVAL in table.column_names:
        check_schema(holds, table, pa.schema([(ARRIVAL, pa.int64())]))
        refuse_unless(not table.column(ARRIVAL).null_count, "each tuple must have an order of arrival")
    return table


def _check_cuts(known: list[str] | None, wanted: Iterable[str]) -> None:
    """Slices must be cut by all windows that are served, and partitions know these from files."""
    gone = sorted(set(wanted) - set(known)) if known is not None else []
    if gone:
        raise DataError(
            f"files of the control directory must stay where they are: {gone[0]} is gone, and the stream "
            "serves what it asked for; put it back, and go on from the checkpoint"
        )


def pack_results(results: pa.Table) -> bytes:
    """Result rows as one value."""
    header: dict[str, Any] = {"holds": "results"}
    return pack(header, {"results": results}, checked=False)


def unpack_results(payload: bytes) -> list[pa.RecordBatch]:
    """The rows that `pack_results` wrote."""
    _, tables = unpack(payload, checked=False)
    with reading():
        batches: list[pa.RecordBatch] = tables["results"].to_batches()
    return batches
