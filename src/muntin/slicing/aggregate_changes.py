"""Aggregates that are added and removed while an operator runs.

Existing slices have no partial of a new aggregate. So it has values in windows that begin after the newest
tuple, whose slices all have it, and is null in others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.aggregates.base import Aggregate
from muntin.aggregates.udaf import UserDefined
from muntin.errors import QueryError, nearest
from muntin.query import QuerySpec
from muntin.query.spec import check_over
from muntin.slicing.emission.valued_table import ValuedTable
from muntin.slicing.served import ServedWindows
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["check_aggregates", "check_stored", "since_added", "with_columns_of", "with_new_aggregates"]


def check_aggregates(
    spec: QuerySpec,
    served: ServedWindows,
    add: Mapping[str, Aggregate],
    remove: Sequence[str],
    columns_stay: bool = False,
) -> tuple[QuerySpec, ServedWindows]:
    """The query and the served windows after a change of aggregates; a QueryError for an invalid change.

    `columns_stay`: results have the same columns for ever, so an aggregate that is removed is null, and only
    one that the query has can come back.
    """
    names = [name for name, _ in spec.aggregates if name not in served.hidden]
    for name in remove:
        if name not in names:
            raise QueryError(
                f'there is no aggregate "{name}"; there are {", ".join(names)}.{nearest(name, names)}'
            )
    left = [name for name in names if name not in remove]
    for name in add:
        if name in left:
            raise QueryError(
                f'there is an aggregate "{name}" already; choose another name, or remove it first'
            )
    if not left and not add:
        raise QueryError(f'"{names[0]}" is the only aggregate left; end the stream instead')
    later = {name: since for name, since in served.aggregates_since if name not in (*remove, *add)}
    if columns_stay:
        _check_columns(spec, add)
        later |= {name: INF for name in remove if name not in add}
    else:
        stay = tuple(item for item in spec.aggregates if item[0] in left)
        spec = replace(spec, aggregates=(*stay, *add.items()))  # which refuses what makes no sense together
    windows = tuple((window.name, window.window) for window in served.all)
    check_over(replace(spec, windows=windows, aggregates=tuple(add.items()) or spec.aggregates[:0]))
    return spec, replace(served, aggregates_since=tuple(later.items()))


def _check_columns(spec: QuerySpec, add: Mapping[str, Aggregate]) -> None:
    known = dict(spec.aggregates)
    for name, aggregate in add.items():
        if known.get(name) != aggregate:
            has = f"it is {known[name]}" if name in known else f"the query has {', '.join(known)}"
            raise QueryError(
                "the results of a stream on Spark have fixed columns, so only an aggregate that the query "
                f"had from the start can come back: got {name}={aggregate}; {has}; name it in "
                ".aggregate(), and start the stream anew"
            )


def check_stored(old: BoundPlan, state: State, added: Mapping[str, Aggregate]) -> None:
    """Refuse code that sees nulls, over columns that stored tuples lack."""
    if state.tuples is None or not len(state.tuples):
        return
    for name, one in added.items():
        lacking = [expr for expr in one.inputs if expr not in old.binding.types]
        if isinstance(one, UserDefined) and not one.ignore_nulls and lacking:
            raise QueryError(
                f'the aggregate "{name}" runs on nulls, too, and stored tuples have no value of '
                f"{lacking[0]}, which nothing has read so far: got {one}; leave out ignore_nulls=False, or "
                "name the aggregate in the query from the start"
            )


def with_new_aggregates(
    old: BoundPlan, state: State, new: BoundPlan, after: int = NEG_INF, added: Collection[str] = ()
) -> BoundPlan:
    """The plan in which aggregates that slices lack are shown by later windows only.

    These are the `added` ones, and those that no window showed so far.
    """
    known = set(_computed(old)) - set(added)
    fresh = [name for name in _computed(new) if name not in known]
    newest = max(state.newest, state.newest_late, after)
    if not fresh or newest == NEG_INF:
        return new
    later = dict(new.served.aggregates_since) | dict.fromkeys(fresh, newest + 1)
    return new.serving(replace(new.served, aggregates_since=tuple(later.items())))


def _computed(plan: BoundPlan) -> list[str]:
    return [plan.spec.aggregates[i][0] for i in plan.binding.computed]


def since_added(plan: BoundPlan, name: str) -> int:
    """The least start of windows that show an aggregate."""
    return dict(plan.served.aggregates_since).get(name, NEG_INF)


def with_columns_of(new: BoundPlan, old: BoundPlan, added: Collection[str], table: Any) -> Any:
    """A table of state whose values of windows are those of the aggregates of another plan."""
    if not isinstance(table, ValuedTable) or table.values is None:
        return table
    place = {name: str(i) for i, (name, _) in enumerate(old.spec.aggregates) if name not in added}
    values = table.values
    edges = [name for name in values.column_names if name in ("start", "end")]
    columns = {name: values.column(name) for name in edges}
    for i, ((name, _), bound) in enumerate(zip(new.spec.aggregates, new.binding.results, strict=True)):
        known = name in place
        columns[str(i)] = values.column(place[name]) if known else pa.nulls(len(values), bound.type)
    return replace(table, values=pa.table(columns))  # type: ignore[type-var]  # a dataclass
