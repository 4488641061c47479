"""Which aggregates the windows of each name show, and the partials that each group of windows needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates import joining
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding
from muntin.slicing.combining.base import Combiner, View
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.served import ServedWindows
from muntin.timeline import INF, NEG_INF

__all__ = ["NO_WINDOW", "ShownAggregates", "StoresOfGroups"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NO_WINDOW = -1
"""The number of slices and ranges of time, which are no window of the query."""
Group = tuple[int, ...]
"""The aggregates that some windows show, by their positions in `PartialSet.bound`."""


@dataclass(frozen=True, eq=False)
class ShownAggregates:
    """For each window and aggregate, from which start on the windows of this name show it.

    Slices have the partials of all aggregates that some window shows. A window combines only those of the
    aggregates that it shows; others are null in its rows.
    """

    partials: PartialSet
    types: tuple[pa.DataType, ...]
    """The types of all aggregates of the query, in its order."""
    computed: tuple[int, ...]
    """The positions among these of the aggregates of `partials`."""
    since: Column
    """A row per window, and a last one for ranges of time that are no window: for each computed aggregate
    the least start of windows that show it; NEG_INF where all do, INF where none does."""

    @classmethod
    def of(cls, spec: QuerySpec, binding: Binding, served: ServedWindows) -> ShownAggregates:
        """What the served windows show of the aggregates of a query."""
        later = dict(served.aggregates_since)
        chosen = [spec.aggregates[i] for i in binding.computed]
        least = [later.get(name, NEG_INF) for name, _ in chosen]
        rows = [
            [since if one.is_over(q.name) else INF for (_, one), since in zip(chosen, least, strict=True)]
            for q in served.all
        ]
        since = np.array([*rows, least], dtype=np.int64)
        types = tuple(bound.type for bound in binding.results)
        return cls(binding.partials, types, binding.computed, since)

    @cached_property
    def everywhere(self) -> bool:
        """Whether all windows show all aggregates of the query."""
        return len(self.computed) == len(self.types) and bool((self.since == NEG_INF).all())

    @cached_property
    def _of_window(self) -> list[Group] | None:
        """The group of each window; None where the start of a window matters."""
        if not np.isin(self.since, (NEG_INF, INF)).all():
            return None
        return [tuple(np.flatnonzero(row == NEG_INF).tolist()) for row in self.since]

    @cached_property
    def _needed(self) -> dict[Group, tuple[PartialSet, list[int]]]:
        return {}

    def needed(self, group: Group) -> tuple[PartialSet, list[int]]:
        """The partials that a group of windows combines, and their positions among those of slices."""
        if group not in self._needed:
            self._needed[group] = self.partials.of_aggregates(group)
        return self._needed[group]

    def groups(self, number: Column, start: Column) -> Iterator[tuple[Group, Column]]:
        """Groups of windows that show the same aggregates, and their positions; none that show nothing."""
        if self._of_window is not None:
            names = dict.fromkeys(self._of_window)
            place = np.array([list(names).index(group) for group in self._of_window])
            which = place[number]
            for i, group in enumerate(names):
                if group and len(rows := np.flatnonzero(which == i)):
                    yield group, rows
            return
        shown = np.packbits(start[:, None] >= self.since[number], axis=1)
        patterns, which = np.unique(shown, axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            group = tuple(np.flatnonzero(np.unpackbits(pattern)).tolist())
            if group:
                yield group, np.flatnonzero(which.reshape(-1) == i)

    def view(self, windows: View, group: Group, rows: Column) -> View:
        """Windows of a group over slices that have only the partials of its aggregates."""
        partials, places = self.needed(group)
        table = windows.table.with_states(partials, tuple(windows.table.states[i] for i in places))
        number, key, lo, hi = (c[rows] for c in (windows.number, windows.key, windows.lo, windows.hi))
        return View(table, windows.rows, number, key, lo, hi, windows.needed, windows.folds)

    def spread(self, rows: int, groups: Sequence[tuple[Group, Column, list[pa.Array]]]) -> list[pa.Array]:
        """A column for each aggregate of the query from the values of groups of windows."""
        columns = []
        place = {aggregate: i for i, aggregate in enumerate(self.computed)}
        for aggregate, kind in enumerate(self.types):
            parts: list[pa.Array] = []
            order, filled = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
            for group, at, values in groups:
                if place.get(aggregate) in group:
                    order[at] = np.arange(len(at)) + sum(len(part) for part in parts)
                    filled[at] = True
                    parts.append(values[group.index(place[aggregate])])
            if not parts:
                columns.append(pa.nulls(rows, kind))
                continue
            whole = parts[0] if len(parts) == 1 else joining.concat(parts)
            if filled.all() and len(parts) == 1:
                columns.append(whole)
                continue
            columns.append(whole.take(pa.array(order, mask=~filled)))
        return columns

    def masked(self, values: Sequence[pa.Array], number: Column, start: Column) -> list[pa.Array]:
        """A column for each aggregate of the query from the values of all computed ones in each window."""
        columns = self.among_all(values, len(number))
        for place, aggregate in enumerate(self.computed):
            since = self.since[number, place]
            if (hidden := start < since).any():
                columns[aggregate] = pc.if_else(pa.array(hidden), None, columns[aggregate])
        return columns

    def among_all(self, values: Sequence[pa.Array], rows: int) -> list[pa.Array]:
        """The values of computed aggregates among null columns for the others."""
        columns = [pa.nulls(0, kind) for kind in self.types]
        for aggregate, value in zip(self.computed, values, strict=True):
            columns[aggregate] = value
        for aggregate in set(range(len(columns))).difference(self.computed):
            columns[aggregate] = pa.nulls(rows, self.types[aggregate])
        return columns


class StoresOfGroups(Combiner):
    """A store for each group of windows that shows the same aggregates."""

    def __init__(self, new_store: Callable[[], Combiner]) -> None:
        self._new_store = new_store
        self._stores: dict[Group, Combiner] = {}

    def of(self, group: Group) -> Combiner:
        """The store of a group."""
        if group not in self._stores:
            self._stores[group] = self._new_store()
        return self._stores[group]

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        return self.of(()).reduce(partials, states, view)

    def reset(self) -> None:
        for store in self._stores.values():
            store.reset()

    @property
    def nbytes(self) -> int:
        return sum(store.nbytes for store in self._stores.values())
