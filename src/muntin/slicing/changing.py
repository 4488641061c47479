"""Queries that come and go while an operator runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from muntin.errors import QueryError, nearest
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.undo import whole_or_nothing
from muntin.timeline import NEG_INF, Micros, format_instant
from muntin.windows.base import Window


@dataclass(slots=True)
class Added:
    """What `add_query` promises: for each query, the time from which its windows are complete."""

    since: dict[str, int]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.notes)


def change_queries(
    operator: SlicingOperator,
    add: Mapping[str, Window] | None = None,
    remove: Sequence[str] = (),
    after: int = NEG_INF,
) -> Added:
    """Serve other windows from now on; tells from when each new one is complete.

    A name that goes may come again with another window. No new window begins by `after`. What only
    the removed ones needed is dropped. All of it happens, or an error comes and nothing does.
    """
    add = {} if add is None else add
    names = [query.name for query in operator.live.queries]
    for name in remove:
        if name not in names:
            raise QueryError(
                f'there is no query "{name}"; there are {", ".join(names)}.{nearest(name, names)}'
            )
    stay = tuple(query for query in operator.live.queries if query.name not in remove)
    for name in add:
        if name in {query.name for query in stay}:
            raise QueryError(f'there is a query "{name}" already; choose another name')
    if not stay and not add:
        raise QueryError(f'"{names[-1]}" is the only query left; drop the operator instead')
    served = tuple((query.name, query.window) for query in stay)
    replace(operator.spec, windows=(*served, *add.items()))  # which refuses what makes no sense together
    added = Added({})
    with whole_or_nothing(operator, sliced=True):
        if operator.binding is not None:
            _drop(operator, remove)
        new = [_new(operator, name, window, after, added) for name, window in add.items()]
        operator.serve(LiveSet((*stay, *new)))
        if new and operator.binding is not None and operator.spec.early is not None:
            operator.slices.unsettle()  # the next early look shows all that they hold
    return added


def _drop(operator: SlicingOperator, names: Sequence[str]) -> None:
    for query in operator.live.queries:
        if query.name in names:  # while it can still be told what came too late for it
            operator.late += operator.slices.late_for(query)
    windows = operator.windows
    windows.registries = {name: r for name, r in windows.registries.items() if name not in names}
    windows.extents = {name: e for name, e in windows.extents.items() if name not in names}


def _new(operator: SlicingOperator, name: str, window: Window, after: int, added: Added) -> LiveQuery:
    since = NEG_INF if operator.binding is None else operator.slices.serves_from(window, after)
    added.since[name] = since
    added.notes.append(_note(operator, name, window, since))
    return LiveQuery(name, window, since, operator.watermark if since > NEG_INF else NEG_INF)


def _note(operator: SlicingOperator, name: str, window: Window, since: int) -> str:
    if since == NEG_INF:
        return f'"{name}" ({window.describe()}) is served from the beginning'
    assert operator.binding is not None
    start = since if operator.binding.time.is_integer else format_instant(Micros(since))
    return f'"{name}" ({window.describe()}) starts at {start}: what came before was sliced without it'
