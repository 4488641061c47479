"""The whole state of an operator as a header of plain values and named tables, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from muntin.errors import QueryError, SnapshotError, value_text
from muntin.metrics import Metrics
from muntin.query import FREE_POLICIES, QuerySpec
from muntin.slicing.bound_plan import BoundPlan, Settings
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.side_outputs import LateOutput, one_table
from muntin.slicing.snapshots.checks import check_header
from muntin.slicing.snapshots.loading import load_state, one_batch
from muntin.slicing.state import Header, State

__all__ = ["assemble", "current_spec", "describe", "dismantle", "query_of", "served_windows"]

PLAIN = ("watermark", "newest", "retained_from", "has_late_change", "arrivals")
"""The attributes of a header that a snapshot holds under the same name."""


def dismantle(operator: SlicingOperator) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The state of an operator as a header of plain values and named tables, without its query."""
    state = operator.header
    header: dict[str, Any] = {
        "in_order": operator.settings.in_order,
        "store": operator.settings.store,
        "metrics": asdict(state.metrics),
        "bound": operator.plan is not None,
        "aggregates_since": [list(pair) for pair in operator.served.aggregates_since],
    }
    header |= {name: getattr(state, name) for name in PLAIN}
    tables = {f"bad/{i}": bad for i, bad in enumerate(state.bad_output)}
    tables |= {
        f"late_output/{i}/{late.window}": pa.Table.from_batches([late.tuples])
        for i, late in enumerate(state.late_output)
    }
    if operator.plan is not None:
        _save_state(operator.plan, operator.state, header, tables)
    return header, tables


def describe(operator: SlicingOperator, text: str | None) -> dict[str, Any]:
    """The query of an operator as values of a header; `text` is its form as TOML, where it has one."""
    return {
        "fingerprint": _fingerprint(current_spec(operator)),
        "query": text,
        "windows": served_windows(operator),
    }


def served_windows(operator: SlicingOperator) -> list[list[Any]]:
    """Each served window: its name, description, `since`, `after` and number of late tuples."""
    late = (operator.header if operator.plan is None else operator.state).late_counts
    return [[q.name, q.window.describe(), q.since, q.after, late.get(q.name, 0)] for q in operator.served.all]


def _save_state(plan: BoundPlan, state: State, header: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    header |= {"records": plan.binding.records, "keys": len(state.keys)}
    tables["input"] = plan.binding.schema.empty_table()
    tables["keys"] = pa.table(state.keys.all_values(), names=list(plan.spec.keys))
    tables |= {name: table.to_arrow() for name, table in state.tables(plan)}
    for i, late in enumerate(state.late_tuples):
        if late.raw is not None:
            tables[f"late_tuples/{i}"] = pa.Table.from_batches([late.raw.tuples])
    if state.tuples is not None:
        header |= {"is_ahead": state.tuples.is_ahead, "sliced_until": state.tuples.sliced_until}


def current_spec(operator: SlicingOperator) -> QuerySpec:
    """The query with the windows that are served now."""
    return replace(operator.spec, windows=tuple((q.name, q.window) for q in operator.served.all))


def assemble(
    header: dict[str, Any], tables: dict[str, pa.Table], spec: QuerySpec, follows_data: bool = False
) -> SlicingOperator:
    """The operator of a snapshot; `spec` is its query. Compiled code reads nothing that is unchecked."""
    check_header(header)
    settings = Settings(bool(header["in_order"]), header["store"], follows_data)
    operator = SlicingOperator(spec, settings)
    places = [(since, after) for _, _, since, after, _ in header["windows"]]
    windows = zip(operator.served.all, places, strict=True)
    operator.served = ServedWindows(
        tuple(ServedWindow(q.name, q.window, *place) for q, place in windows),
        tuple((name, since) for name, since in header["aggregates_since"]),
    )
    late_counts = {
        q.name: window[4] for q, window in zip(operator.served.all, header["windows"], strict=True)
    }
    _load_header(operator.header, header, tables, late_counts)
    if header["bound"]:
        plan = operator.bind(tables["input"].schema, tuple(header["records"]))
        load_state(plan, operator.state, header, tables)
        _check_one_table([late.raw.tuples for late in operator.state.late_tuples if late.raw is not None])
    return operator


def _load_header(
    state: Header, header: dict[str, Any], tables: dict[str, pa.Table], late_counts: dict[str, int]
) -> None:
    for name in PLAIN:
        setattr(state, name, header[name])
    state.metrics = Metrics(**header["metrics"])
    state.late_counts = late_counts
    state.bad_output = tuple(table for path, table in tables.items() if path.startswith("bad/"))
    outputs = [
        (path.split("/", 2), table) for path, table in tables.items() if path.startswith("late_output/")
    ]
    state.late_output = tuple(LateOutput(name, one_batch(table)) for (_, _, name), table in outputs)
    _check_one_table(list(state.bad_output))
    _check_one_table([late.tuples for late in state.late_output])


def _check_one_table(tables: list[Any]) -> None:
    """Routed tuples may have columns of any type, but must form one table."""
    if tables:
        one_table(tables)


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
