"""A column gets its first value, and so its type: the state takes it over.

Everything before was null in that column. So aggregates that skip nulls have seen nothing of it, and
the partials of others (`first` counts nulls as values) hold nulls, which any type can hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.slicing.binding import Binding
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.emission.valued_table import ValuedTable
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.untyped_columns import with_types
from muntin.slicing.window_changes import adapted

if TYPE_CHECKING:
    from muntin.slicing.state import State

__all__ = ["learned", "retyped"]


def learned(plan: BoundPlan, state: State, schema: pa.Schema) -> tuple[BoundPlan, State]:
    """The plan and the state after columns that are new, and types of columns that had none."""
    binding = plan.binding
    known = set(binding.schema.names)
    new = [f for f in schema if f.name not in known]
    typed = {f.name: f.type for f in schema if f.name in binding.unknown and f.type != pa.null()}
    if not new and not typed:
        return plan, state
    columns = pa.schema([*with_types(binding.schema, typed), *new])
    if binding.columns().isdisjoint(typed):
        unknown = frozenset(f.name for f in columns if f.type == pa.null())
        return plan.reading(replace(binding, schema=columns, unknown=unknown)), state
    other = BoundPlan.of(plan.spec, plan.settings, plan.served, columns, binding.records)
    return other, _retyped_state(state.draft(), plan, other)


def _retyped_state(state: State, old: BoundPlan, new: BoundPlan) -> State:
    _check_stand_ins(old.binding, new.binding)
    kinds = {str(i): bound.type for i, bound in enumerate(new.binding.results)}

    def change(table: Any) -> Any:
        if isinstance(table, SliceTable):
            return _retyped_rows(table, new.partials)
        if isinstance(table, ValuedTable) and table.values is not None:
            named = [(name, kinds.get(name, pa.int64())) for name in table.values.column_names]
            values = table.values.cast(pa.schema(named))
            return replace(table, values=values)  # type: ignore[type-var]  # a dataclass
        return table

    state.change_tables(change)
    state.keys = state.keys.retyped(new.binding.keys)
    return adapted(state, old, new)


def _check_stand_ins(old: Binding, new: Binding) -> None:
    for expr, absent in old.stand_ins.items():
        # Nothing shows that an expression of Arrow's own was null all the time.
        if new.types[expr] != old.types[expr] and expr.node is None:
            raise DataError(
                f'"{expr}" was {old.types[expr]} as long as {", ".join(absent)} had no value, and is '
                f'{new.types[expr]} now; give the types beforehand, such as schema={{"{next(iter(absent))}": '
                '"float64"}'
            )


def _retyped_rows(table: SliceTable, new: PartialSet) -> SliceTable:
    states = retyped(table.states, len(table), table.partials, new)
    return SliceTable(new, table.fixed, table.fresh, table.level, states)


def retyped(states: States, rows: int, old: PartialSet, new: PartialSet) -> States:
    """The same partials over inputs of which some have got a type."""
    template = new.empty()
    result = []
    for i, (partial, state) in enumerate(zip(new.partials, new.carried(states, rows, old), strict=True)):
        wanted = {name: column.type for name, column in partial.to_arrow(template[i]).items()}
        columns = partial.to_arrow(state)
        if {name: column.type for name, column in columns.items()} != wanted:
            # The user's own partials may have other columns now, of numbers or of objects.
            state = partial.from_arrow(
                {name: column.cast(wanted.get(name, column.type)) for name, column in columns.items()}
            )
        result.append(state)
    return tuple(result)
