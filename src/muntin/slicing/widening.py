"""A column gets its first value, and so its type: the state takes it over.

Everything so far was null in that column. So aggregates that skip nulls have seen nothing of it, and
the partials of others (`first` counts nulls as values) hold nulls, which any type can hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from muntin.errors import DataError
from muntin.slicing.binding import Binding
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.table import SliceTable
from muntin.slicing.unknown import with_types

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator


def learn(operator: SlicingOperator, schema: pa.Schema) -> Binding:
    """Note columns that are new, and the types of those that had none."""
    binding = operator.binding
    assert binding is not None
    known = set(binding.schema.names)
    new = [f for f in schema if f.name not in known]
    typed = {f.name: f.type for f in schema if f.name in binding.unknown and f.type != pa.null()}
    if not new and not typed:
        return binding
    learned = pa.schema([*with_types(binding.schema, typed), *new])
    if binding.columns().isdisjoint(typed):
        unknown = frozenset(f.name for f in learned if f.type == pa.null())
        operator.binding = replace(binding, schema=learned, unknown=unknown)
    else:
        windows = tuple(q.window for q in operator.live.queries)
        operator.binding = Binding.of(operator.spec, windows, learned, binding.records, operator.in_order)
        _retype(operator, binding, operator.binding)
    return operator.binding


def _retype(operator: SlicingOperator, old: Binding, new: Binding) -> None:
    for expr, absent in old.stand_ins.items():
        # Of an expression that is only Arrow's own nothing tells that it was null all the time.
        if new.types[expr] != old.types[expr] and expr.node is None:
            raise DataError(
                f'"{expr}" was {old.types[expr]} as long as {", ".join(absent)} had no value, and is '
                f'{new.types[expr]} now; give the types beforehand, such as schema={{"{next(iter(absent))}": '
                '"float64"}'
            )
    slices = operator.slices
    slices.table = _retyped_rows(slices.table, old.partials, new.partials)
    slices.waiting = [
        replace(part, rows=_retyped_rows(part.rows, old.partials, new.partials)) for part in slices.waiting
    ]
    for registry in operator.windows.registries.values():
        if registry.values is not None:
            kinds = [pa.int64(), pa.int64(), *(bound.type for bound in new.partials.bound)]
            named = zip(registry.values.column_names, kinds, strict=True)
            registry.values = registry.values.cast(pa.schema(named))
    operator.keys = operator.keys.retyped(new.keys)
    operator.rebind(operator.live, new)


def _retyped_rows(table: SliceTable, old: PartialSet, new: PartialSet) -> SliceTable:
    return replace(table, states=retyped(table.states, len(table), old, new))


def retyped(states: States, rows: int, old: PartialSet, new: PartialSet) -> States:
    """The same partials over inputs of which some have got a type."""
    none = np.zeros(rows, dtype=np.int64)
    template = new.empty()
    without_values = new.reduce(template, None, none, none)
    result = []
    for i, partial in enumerate(new.partials):
        if partial not in old.partials:
            result.append(without_values[i])
            continue
        state = states[old.partials.index(partial)]
        wanted = {name: column.type for name, column in partial.to_arrow(template[i]).items()}
        columns = partial.to_arrow(state)
        if {name: column.type for name, column in columns.items()} != wanted:
            # The user's own partials may have other columns now, of numbers or of objects.
            state = partial.from_arrow(
                {name: column.cast(wanted.get(name, column.type)) for name, column in columns.items()}
            )
        result.append(state)
    return tuple(result)
