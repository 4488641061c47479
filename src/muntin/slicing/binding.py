"""A query over columns of known types: what to read from a batch, and the columns of the result."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Bound, Partial
from muntin.aggregates.udaf import UserDefined
from muntin.errors import ColumnError, QueryError, nearest
from muntin.expressions import Expr, as_expr, evaluate, types
from muntin.query import ORDINAL, WINDOW_NAME, Every, QuerySpec
from muntin.slicing.key_columns import plain_type
from muntin.slicing.partials import PartialSet
from muntin.slicing.untyped_columns import bind_as_known, stand_ins, with_nulls, with_types
from muntin.timeline import NEG_INF, Micros, TimeColumn, format_span
from muntin.windows.base import Window
from muntin.windows.tuple_driven import TupleDriven, Tuples

ARRIVAL = "__arrival"
"""The name of a column of integers that orders tuples of one time, where the input has it."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What the operator knows once it has seen the schema of its input.

    `unknown` are columns that have had no value yet. `records` are the columns that the user's code
    sees where it names none.
    """

    spec: QuerySpec
    schema: pa.Schema
    time: TimeColumn
    keys: tuple[pa.DataType, ...]
    inputs: tuple[Expr, ...]
    types: dict[Expr, pa.DataType]
    partials: PartialSet
    measures: tuple[str, ...]
    refusing: tuple[Window, ...]
    """The windows that some values of their inputs do not suit."""
    records: tuple[str, ...]
    unknown: frozenset[str]
    stand_ins: dict[Expr, dict[str, pa.DataType]]
    results: tuple[Bound, ...]
    """All aggregates of the query, those that no window shows among them."""
    computed: tuple[int, ...]
    """The positions among these of the aggregates that some window shows; the others cost nothing."""
    fallible: tuple[Partial, ...]
    """The partials of aggregates and windows whose `lift` may refuse a tuple."""
    places: tuple[tuple[Expr, int], ...] | None = field(init=False)
    """The place of each input in the schema; None where some input is more than a column."""
    cannot_fail: bool = field(init=False)
    """Whether no tuple can be refused: all inputs are columns, and no `lift` refuses a value."""

    def __post_init__(self) -> None:
        places = None
        if not self.stand_ins and all(expr.column is not None for expr in self.inputs):
            indices = [(expr, self.schema.get_field_index(expr.column)) for expr in self.inputs]
            places = tuple(indices) if all(place >= 0 for _, place in indices) else None
        object.__setattr__(self, "places", places)
        object.__setattr__(
            self, "cannot_fail", places is not None and not self.fallible and not self.refusing
        )

    @classmethod
    def of(
        cls,
        spec: QuerySpec,
        named: Mapping[str, Window],
        schema: pa.Schema,
        records: tuple[str, ...] | None = None,
        in_order: bool = False,
        hidden: Container[str] = (),
    ) -> Binding:
        """Check the query with the windows that are served against the columns that there are.

        Records show all of these unless given. Aggregates that are `hidden` are not computed.
        """
        windows = tuple(named.values())
        require((spec.time, *spec.keys), schema)
        if records is None:
            records = tuple(name for name in schema.names if name != ARRIVAL)
        kind = schema.field(spec.time).type
        _check_civil(windows, kind)
        early = spec.early.period if isinstance(spec.early, Every) else 0
        # Their units must fit, but no edge lies there.
        unit = TimeColumn(kind, (early, spec.forget_keys_after or 0))
        for_windows = dict.fromkeys(e for w in windows for e in window_inputs(w, records))
        for_aggregates = dict.fromkeys(e for _, a in spec.aggregates for e in a.reads)
        computed = tuple(
            i
            for i, (name, a) in enumerate(spec.aggregates)
            if name not in hidden and any(map(a.is_over, named))
        )
        inputs = tuple(for_windows | dict.fromkeys(e for i in computed for e in spec.aggregates[i][1].reads))
        columns = tuple(for_windows | for_aggregates)
        assumed = {e: chosen for e in columns if (chosen := stand_ins(e, schema))}
        known = [e for e in columns if e not in assumed]
        kinds = dict(zip(known, types(known, schema), strict=True))
        kinds |= {e: types([e], with_types(schema, absent))[0] for e, absent in assumed.items()}
        spans = [s for w in windows for s in w.spans_over(kinds, unit.is_integer)]
        time = TimeColumn(kind, (*spans, spec.allowed_lateness))
        _check_clock(spec, time)
        for window in windows:
            if isinstance(window, TupleDriven) and not window.wants_records:
                _check_types(window, kinds)
        aggregates = [a.in_order() if in_order else a for _, a in spec.aggregates]
        if spec.on_error == "skip":
            aggregates = [a.absorbing() for a in aggregates]
        bound = tuple(bind_as_known(a, tuple(kinds[e] for e in a.reads)) for a in aggregates)
        typed = tuple((e, kinds[e]) for e in for_aggregates)
        partials = PartialSet.of(tuple(bound[i] for i in computed), typed)
        return cls(
            spec,
            schema,
            time,
            keys=tuple(schema.field(k).type for k in spec.keys),
            inputs=inputs,
            types={e: kinds[e] for e in inputs},
            partials=partials,
            measures=tuple(dict.fromkeys(w.measure for w in windows if w.measure)),
            refusing=tuple(dict.fromkeys(w for w in windows if w.refuses)),
            records=records,
            unknown=frozenset(f.name for f in schema if f.type == pa.null()),
            stand_ins={e: absent for e, absent in assumed.items() if e in inputs},
            results=bound,
            computed=computed,
            fallible=_fallible(partials, windows, kinds),
        )

    def evaluate(self, data: pa.RecordBatch) -> dict[Expr, pa.Array]:
        """The inputs of windows and aggregates."""
        if self.places is not None and data.schema.equals(self.schema):
            return {expr: data.column(place) for expr, place in self.places}
        plain = [e for e in self.inputs if e not in self.stand_ins]
        values = dict(zip(plain, evaluate(plain, data), strict=True))
        for e, kinds in self.stand_ins.items():
            (values[e],) = evaluate([e], with_nulls(data, kinds))
        return values

    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        reads = (*self.inputs, *(e for _, a in self.spec.aggregates for e in a.reads))
        return frozenset({self.spec.time, *self.spec.keys, *(c for e in reads for c in e.columns)})

    @property
    def all_partials(self) -> PartialSet:
        """The partials of all aggregates of the query."""
        everything = len(self.computed) == len(self.results)
        return self.partials if everything else PartialSet.of(self.results, self.partials.inputs)

    def result_schema(self, windows: tuple[Window, ...]) -> pa.Schema:
        """Keys, window_name, window, aggregates, kind, revision."""
        fields = [pa.field(k, plain_type(t)) for k, t in zip(self.spec.keys, self.keys, strict=True)]
        fields.append(pa.field(WINDOW_NAME, pa.string()))
        fields.append(pa.field("window", pa.struct(self.edge_fields(windows))))
        for (name, _), bound in zip(self.spec.aggregates, self.results, strict=True):
            fields.append(pa.field(name, bound.type))
        return pa.schema([*fields, pa.field("kind", pa.string()), pa.field("revision", pa.int64())])

    def edge_fields(self, windows: tuple[Window, ...]) -> list[pa.Field]:
        """start and end in event time; ranks or measures, and numbers, where some window has them."""
        edge = self.time.edge_type
        fields = {"start": edge, "end": edge}
        for window in windows:
            if window.on_measure:
                name = window.measure or "rank"
                kind = pa.int64() if window.measure is None else self.measure_type(window.measure)
                fields |= {f"start_{name}": kind, f"end_{name}": kind}
        if any(window.repeats for window in windows):
            fields[ORDINAL] = pa.int64()
        return [pa.field(name, kind) for name, kind in fields.items()]

    def measure_type(self, column: str) -> pa.DataType:
        """Edges on a measure: as floats if it is one, otherwise as integers."""
        kind = self.schema.field(column).type
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def edge_dtype(self, window: Window) -> type[np.generic]:
        """The internal type of the edges that identify a window: float64 on a measure of floats."""
        floating = window.measure is not None and self.measure_type(window.measure) == pa.float64()
        return np.float64 if floating else np.int64


def _fallible(
    partials: PartialSet, windows: Iterable[Window], kinds: dict[Expr, pa.DataType]
) -> tuple[Partial, ...]:
    of_windows = [
        aggregate for w in windows for aggregate in w.aggregates if isinstance(aggregate, UserDefined)
    ]
    # These aggregates are only lifted: they need neither a result type nor compiled code.
    lifted = [replace(aggregate, type=pa.null(), compile=False) for aggregate in of_windows]
    bound = [bind_as_known(a, tuple(kinds[e] for e in a.reads)) for a in lifted]
    distinct = dict.fromkeys((*partials.partials, *(p for b in bound for p in b.partials)))
    return tuple(partial for partial in distinct if partial.fallible)


def require(columns: tuple[str, ...], schema: pa.Schema) -> None:
    """A ColumnError, which names the nearest one, where a column is missing."""
    for column in columns:
        if schema.get_field_index(column) < 0 and column not in schema.names:
            raise ColumnError(
                f'there is no column "{column}" in the input ({", ".join(schema.names) or "no columns"});'
                f"{nearest(column, schema.names) or ' name one of them, or add it'}"
            )


def _check_civil(windows: Iterable[Window], kind: pa.DataType) -> None:
    for window in windows:
        if window.civil and pa.types.is_integer(kind):
            raise QueryError(
                f"calendar windows need a time column of timestamps: got {kind} for {window.describe()}; "
                'cast the column, for example to pa.timestamp("s") if it counts seconds since 1970'
            )


def _check_clock(spec: QuerySpec, time: TimeColumn) -> None:
    if spec.max_ahead is not None and time.is_integer:
        raise QueryError(
            "max_ahead needs a time column of timestamps, since integers have no clock: got "
            f'"{format_span(spec.max_ahead)}" for "{spec.time}" ({time.type}); cast the column, or leave '
            "max_ahead out and filter tuples from the future before they reach the query"
        )


def _check_types(window: TupleDriven, kinds: dict[Expr, pa.DataType]) -> None:
    """Show a window its columns without any tuple: types that it cannot read are an error at once.

    Otherwise it would fail on kept tuples, at a watermark, and again at each one after.
    """
    none = np.zeros(0, dtype=np.int64)
    columns = {e: pa.nulls(0, kinds[e]) for e in window.inputs()}
    window.cut(window.initial(1), Tuples(np.zeros(2, dtype=np.int64), none, none, columns), NEG_INF)


def window_inputs(window: Window, records: tuple[str, ...]) -> tuple[Expr, ...]:
    """The columns that a window reads: all of them where the user's code sees records and names none."""
    return tuple(as_expr(name) for name in records) if _sees_records(window) else window.inputs()


def _sees_records(window: Window) -> bool:
    return window.wants_records and not window.inputs()


def columns_read(spec: QuerySpec, windows: Iterable[Window]) -> frozenset[str] | None:
    """The columns that some window or aggregate reads; None where the user's code may look at any of them."""
    names = {spec.time, *spec.keys}
    names.update(name for _, a in spec.aggregates for e in a.reads for name in e.columns)
    for window in windows:
        if _sees_records(window):
            return None
        names.update(name for e in window.inputs() for name in e.columns)
    return frozenset(names)


def kind_of_time(spec: QuerySpec, windows: Iterable[Window], lag: int | None) -> str:
    """What the time column must hold, as the lengths in the query tell: durations, or units of integers."""
    lengths = [s for w in windows if w.measure is None for s in w.spans()]
    lengths += [spec.allowed_lateness, spec.forget_keys_after or 0, lag or 0]
    known = [length for length in lengths if length]
    return ("timestamp" if isinstance(known[0], Micros) else "integer") if known else ""


def unbound_schema(spec: QuerySpec) -> pa.Schema:
    """The columns of a result before the types of the input are known: null where they depend on it."""
    known = {WINDOW_NAME: pa.string(), "kind": pa.string(), "revision": pa.int64()}
    names = [*spec.keys, WINDOW_NAME, "window", *(name for name, _ in spec.aggregates), "kind", "revision"]
    return pa.schema([pa.field(name, known.get(name, pa.null())) for name in names])
