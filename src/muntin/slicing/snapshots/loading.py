"""Restores the tables of a state from Arrow tables, each checked by the roles of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Bound
from muntin.encoding import decode
from muntin.slicing.batch import Batch
from muntin.slicing.binding import Binding
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.emission.changes import ComparedWindows
from muntin.slicing.emission.emitted_windows import EmittedWindows
from muntin.slicing.emission.key_extents import KeyExtents
from muntin.slicing.late_tuples import LateTuples, RawTuples
from muntin.slicing.partials import PartialSet
from muntin.slicing.schema import Role
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.snapshots.checks import (
    TABLES,
    Bounds,
    check_schema,
    read_column,
    read_columns,
    refuse_unless,
)
from muntin.slicing.snapshots.tuple_checks import check_tuples
from muntin.slicing.state import State
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import STAGES, Positions, Progress, window_of
from muntin.windows.base import ContextFreeWindow

__all__ = ["load_slices", "load_state", "one_batch"]

Tables = dict[str, pa.Table]


def load_state(plan: BoundPlan, state: State, header: dict[str, Any], tables: Tables) -> None:
    """Fill a new state with the tables of a snapshot."""
    if plan.spec.keys:
        _load_keys(plan, state, tables["keys"])
    keys = len(state.keys)
    refuse_unless(header["keys"] == keys, f"there must be {header['keys']} keys: got {keys}")
    state.key_count = max(keys, 1)
    bounds = Bounds(keys, plan.binding.time.limit)
    state.slices = load_slices(tables["slices"], plan.partials, bounds)
    windows = {q.name: q for q in plan.served.all}
    for path, table in tables.items():
        kind, _, name = path.partition("/")
        if kind in ("emitted", "extents"):
            refuse_unless(name in windows, f'no window is called "{name}"')
            columns = read_columns(kind, table, bounds, plan.binding.edge_dtype(windows[name].window))
            if kind == "emitted":
                state.emitted[name] = _load_emitted(table, columns, windows[name], plan.binding.results)
            else:
                state.extents[name] = _load_extents(plan, state, windows[name], columns)
        elif kind == "compared":
            refuse_unless(plan.shows_changes, "windows are compared where only changes are emitted")
            state.compared = _load_compared(table, plan, bounds)
        elif kind == "late":
            state.late_tuples += (_load_late(name, tables, plan.partials, bounds),)
    if state.tuples is not None:
        state.tuples = _load_tuples(plan, tables, bounds)
        state.tuples.is_ahead, state.tuples.sliced_until = header["is_ahead"], header["sliced_until"]
        check_tuples(plan, state)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """All rows of a table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _load_keys(plan: BoundPlan, state: State, table: pa.Table) -> None:
    """Encode the keys again; each must appear once, so that their numbers stay the same."""
    kinds = pa.schema(zip(plan.spec.keys, state.keys.types, strict=True))
    check_schema("keys", table, kinds)
    ids = state.keys.encode([table.column(name).combine_chunks() for name in kinds.names])
    refuse_unless(np.array_equal(ids, np.arange(len(table))), "each key must appear once")


def load_slices(table: pa.Table, partials: PartialSet, bounds: Bounds) -> SliceTable:
    """The slices that `SliceTable.to_arrow` wrote; a SnapshotError where they are not what it writes."""
    columns = read_columns("slices", table, bounds)
    fine = (columns["first"] <= columns["last"]) & (columns["fresh"] <= columns["n"])
    refuse_unless(fine.all(), "a slice must not end before its begin, nor have more fresh tuples than tuples")
    states = []
    for i, (partial, empty) in enumerate(zip(partials.partials, partials.empty(), strict=True)):
        attached = _attached(table, f"{i}/")
        if partial.uniform:
            kinds = {name: column.type for name, column in partial.to_arrow(empty).items()}
            check_schema("slices", pa.table(attached), pa.schema(kinds))
        state = partial.from_arrow(attached)
        fits = partial.size(state) == len(table) and partial.sound(state)
        refuse_unless(fits, f"the rows of {type(partial).__name__} must be valid")
        states.append(state)
    return SliceTable.of(partials, columns, tuple(states))


def _attached(table: pa.Table, prefix: str) -> dict[str, pa.Array]:
    """The columns whose names begin with a prefix, without it."""
    names = [name for name in table.column_names if name.startswith(prefix)]
    return {name.removeprefix(prefix): table.column(name).combine_chunks() for name in names}


def _load_late(name: str, tables: Tables, partials: PartialSet, bounds: Bounds) -> LateTuples:
    rows = load_slices(tables[f"late/{name}"], partials, bounds)
    refuse_unless(len(rows), "a table of late tuples must not be empty")
    place, tuples = tables.get(f"late_raw/{name}"), tables.get(f"late_tuples/{name}")
    if place is None or tuples is None:
        return LateTuples(rows)
    columns = read_columns("late_raw", place, bounds)
    refuse_unless(len(place) == len(tuples) == rows.n.sum(), "each late tuple must have a key and a time")
    return LateTuples(rows, RawTuples(columns["key"], columns["time"], one_batch(tuples)))


def _load_emitted(
    table: pa.Table, columns: dict[str, Any], served: ServedWindow, results: tuple[Bound, ...]
) -> EmittedWindows:
    """Emitted windows, with the values that a retraction repeats; context-free windows have none."""
    is_free = isinstance(served.window, ContextFreeWindow)
    refuse_unless(EmittedWindows(**columns).is_distinct(), "an emitted window must appear once")
    values = _attached(table, "value/")
    if not values:
        refuse_unless(is_free or not len(table), "emitted windows must have their values")
        return EmittedWindows(**columns)
    edges = [("start", pa.int64()), ("end", pa.int64())]
    wanted = pa.schema([*edges, *((str(i), bound.type) for i, bound in enumerate(results))])
    check_schema("values of emitted windows", pa.table(values), wanted)
    refuse_unless(not is_free, "only windows that may be retracted have their values")
    return EmittedWindows(**columns, values=pa.table(values).select(wanted.names).combine_chunks())


def _load_compared(table: pa.Table, plan: BoundPlan, bounds: Bounds) -> ComparedWindows:
    """Windows that later ones are compared with, and their values."""
    columns = read_columns("compared", table, bounds)
    windows = len(plan.served.all)
    refuse_unless(
        (columns["number"] < windows).all(), f"compared windows must be of the {windows} served ones"
    )
    values = pa.table(_attached(table, "value/"))
    wanted = pa.schema([(str(i), bound.type) for i, bound in enumerate(plan.binding.results)])
    check_schema("values of compared windows", values, wanted)
    compared = ComparedWindows(**columns, values=values.select(wanted.names).combine_chunks())
    refuse_unless(compared.is_distinct(), "a compared window must appear once")
    return compared


def _load_extents(plan: BoundPlan, state: State, served: ServedWindow, columns: dict[str, Any]) -> KeyExtents:
    refuse_unless(served.emits_empty, f'"{served.name}" has no extents')
    of_lives = plan.forget is not None and served.ends_with_key
    refuse_unless(
        ("key" in columns) == of_lives, "extents must belong to lives exactly where keys are forgotten"
    )
    extents = KeyExtents(**columns)
    refuse_unless(of_lives or len(extents) <= state.key_count, "there must not be more extents than keys")
    return extents


def _load_tuples(plan: BoundPlan, tables: Tables, bounds: Bounds) -> TupleState:
    tuples, binding = TupleState(), plan.binding
    windows = {q.name: q for q in plan.served.tuple_driven}
    tuples.positions = Positions(**_load_per_key("positions", tables["positions"], windows, bounds))
    keys = len(tuples.positions)
    refuse_unless(keys <= max(bounds.keys, 1), f"positions must cover at most {bounds.keys} keys: got {keys}")
    tuples.offsets = np.zeros(keys + 1, dtype=np.int64)
    for stage in STAGES:
        columns = _load_per_key("progress", tables[f"progress/{stage}"], windows, bounds)
        setattr(tuples, stage, Progress(**columns))
    for path, table in tables.items():
        kind, _, name = path.partition("/")
        if kind == "arrived":
            tuples.arrived += (_load_batch(read_columns(kind, table, bounds), table, binding),)
        elif kind == "tuples":
            columns = read_columns(kind, table, Bounds(keys, bounds.time))
            tuples.batch, tuples.fresh = _load_batch(columns, table, binding), columns["fresh"]
            tuples.index(keys)
        elif kind in ("closed", "expired"):
            served = _known(name, windows)
            columns = read_columns(kind, table, bounds, binding.edge_dtype(served.window))
            if kind == "expired":
                tuples.expired[name] = ExpiredWindows(**columns)
                continue
            measured = [column for column in ("low", "high") if column in columns]
            fits = measured == (["low", "high"] if served.window.on_measure else [])
            refuse_unless(not len(table) or fits, f'"{name}" must have edges on its measure, and only there')
            tuples.closed_windows[name] = ClosedWindows(**columns)
    return tuples


def _known(name: str, windows: dict[str, ServedWindow]) -> ServedWindow:
    refuse_unless(name in windows, f'no tuple-driven window is called "{name}"')
    return windows[name]


def _load_per_key(
    kind: str, table: pa.Table, windows: dict[str, ServedWindow], bounds: Bounds
) -> dict[str, Any]:
    """The fields of a table with a row per key, those with a column per window included."""
    fields: dict[str, Any] = dict(read_columns(kind, table, bounds))
    for one, role in TABLES[kind].per_window.items():
        fields[one] = {}
        for name, saved in _attached(table, f"{one}/").items():
            served = _known(name, windows)
            if role is Role.CONTEXT:
                fields[one][name] = _load_contexts(saved, served)
            else:
                fields[one][name] = read_column(kind, f"{one}/{name}", table, role, bounds)
    return fields


def _load_batch(columns: dict[str, Any], table: pa.Table, binding: Binding) -> Batch:
    kinds = [(str(i), binding.types[e]) for i, e in enumerate(binding.inputs)]
    check_schema("tuples", table, pa.schema(kinds))
    values = {e: table.column(str(i)).combine_chunks() for i, e in enumerate(binding.inputs)}
    return Batch(columns["key"], columns["time"], columns["seq"], values)


def _load_contexts(saved: pa.Array, served: ServedWindow) -> npt.NDArray[Any]:
    kind = window_of(served).initial(0).dtype
    wanted = pa.string() if kind.hasobject else pa.binary(kind.itemsize)
    refuse_unless(
        saved.type == wanted and not saved.null_count, f"contexts must be {wanted}: got {saved.type}"
    )
    if kind.hasobject:
        values = [decode(text) for text in saved.to_pylist()]
        contexts = np.empty(len(values), dtype=object)
        contexts[:] = values
        return contexts
    raw = saved.buffers()[1]
    return np.frombuffer(raw, dtype=kind, count=len(saved), offset=saved.offset * kind.itemsize).copy()
