"""Partials grouped by a label: a slice has one row of each partial for every label that occurs in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays, joining
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials import label_kernels, list_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.codes import codes
from muntin.aggregates.partials.records import stacked
from muntin.expressions import Expr

__all__ = ["Labelled", "PerLabel"]

_TABLE_RATIO = 4
"""The largest table of all pairs of group and label, in tuples of the batch; above it, pairs are sorted."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Row j has the labels `offsets[j]:offsets[j + 1]`, all distinct, and a row of states for each label."""

    offsets: Ints
    labels: pa.Array
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class PerLabel(Partial):
    """Other partials over the tuples of each label. Tuples with a null in one of the columns are skipped.

    A partial follows those that it needs in `partials`.
    """

    label: Expr
    columns: tuple[Expr, ...]
    partials: tuple[Partial, ...]

    def lift(self, g: Groups, needs: States) -> Labelled:
        g = g.complete(self.label, *self.columns)
        labels, group = g.array(self.label), g.ids()
        code, size = codes((labels,))
        present, one_of, number = _numbered(group, code, size, g.n)
        pairs = Groups(len(present), number, False, g.time, g.seq, g.values, None, g.chosen)
        states: dict[Partial, State] = {}
        for partial in self.partials:
            states[partial] = partial.lift(pairs, tuple(states[needed] for needed in partial.needs))
        offsets = np.searchsorted(present, np.arange(g.n + 1) * size)
        return Labelled(offsets, labels.take(pa.array(one_of)), tuple(states.values()))

    def reduce(
        self, state: Labelled, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> Labelled:
        joined, index = list_kernels.gather(state.offsets, rows, lo, hi)
        which = np.repeat(np.arange(len(lo), dtype=np.int64), np.diff(joined))
        code, size = codes((state.labels.take(pa.array(index)),))
        cell = which * size + code
        order = np.argsort(cell, kind="stable")
        cell, index = cell[order], index[order]
        begin = np.flatnonzero(np.diff(cell, prepend=-1))
        end = np.append(begin[1:], len(cell))
        old, new = dict(zip(self.partials, state.states, strict=True)), dict[Partial, State]()
        for partial in self.partials:
            needed = tuple(old[p] for p in partial.needs), tuple(new[p] for p in partial.needs)
            new[partial] = partial.reduce(old[partial], index, begin, end, *needed)
        offsets = np.searchsorted(cell[begin], np.arange(len(lo) + 1) * size)
        return Labelled(offsets, state.labels.take(pa.array(index[begin])), tuple(new.values()))

    def concat(self, states: list[Labelled]) -> Labelled:
        columns = zip(self.partials, *(s.states for s in states), strict=True)
        return Labelled(
            stacked([s.offsets for s in states]),
            joining.concat([s.labels for s in states]),
            tuple(partial.concat(list(column)) for partial, *column in columns),
        )

    def take(self, state: Labelled, index: Ints) -> Labelled:
        offsets, place = list_kernels.gather(state.offsets, None, index, index + 1)
        taken = tuple(partial.take(column, place) for partial, column in self._columns(state))
        return Labelled(offsets, state.labels.take(pa.array(place)), taken)

    def _columns(self, state: Labelled) -> Iterable[tuple[Partial, State]]:
        return zip(self.partials, state.states, strict=True)

    def size(self, state: Labelled) -> int:
        return len(state.offsets) - 1

    def nbytes(self, state: Labelled) -> int:
        columns = sum(partial.nbytes(column) for partial, column in self._columns(state))
        return state.offsets.nbytes + int(state.labels.nbytes) + columns

    def weights(self, state: Labelled) -> Ints:
        return np.diff(state.offsets)

    def to_arrow(self, state: Labelled) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {"label": state.labels}
        for k, (partial, rows) in enumerate(self._columns(state)):
            columns |= {f"{k}.{name}": column for name, column in partial.to_arrow(rows).items()}
        return {name: arrays.to_lists(state.offsets, column) for name, column in columns.items()}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Labelled:
        names = ["label", *(name for name in columns if name != "label")]
        offsets, items = arrays.read_lists(columns, *names)
        states: list[Any] = []
        for k, partial in enumerate(self.partials):
            own = {
                n.removeprefix(f"{k}."): i for n, i in zip(names, items, strict=True) if n.startswith(f"{k}.")
            }
            states.append(partial.from_arrow(own))
        return Labelled(offsets, items[0], tuple(states))

    def sound(self, state: Labelled) -> bool:
        n = len(state.labels)
        return all(
            partial.size(column) == n and partial.sound(column) for partial, column in self._columns(state)
        )


def _numbered(group: Ints, code: Ints, size: int, n: int) -> tuple[Ints, Ints, Ints]:
    """The pairs of a group (0 to n - 1) and a code (0 to size - 1) that occur, in order.

    Returns each pair as `group * size + code`, one tuple of each pair, and the pair's number for each
    tuple (-1 for a tuple without a group).

    >>> _numbered(np.array([2, -1, 1, 2]), np.array([1, 1, 0, 1]), 2, 3)
    (array([2, 5]), array([2, 3]), array([ 1, -1,  0,  1]))
    """
    if n * size <= _TABLE_RATIO * len(group):
        return label_kernels.number_cells(group, code, size, n)
    there = np.flatnonzero(group >= 0)
    number = np.full(len(group), -1, dtype=np.int64)
    present, number[there] = np.unique(group[there] * size + code[there], return_inverse=True)
    one_of = np.empty(len(present), dtype=np.int64)
    one_of[number[there]] = there
    return present, one_of, number
