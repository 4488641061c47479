"""Partials of single tuples: the user's `lift` runs once for each tuple that is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Groups, Partial
from muntin.aggregates.partials.base import State

if TYPE_CHECKING:
    from muntin.slicing.batch import Batch

__all__ = ["LiftedTuples"]

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LiftedTuples:
    """For each tuple the row of its partials, of aggregates whose `lift` is the user's code; -1 for none.

    Derived from the tuples, and no part of a snapshot: after a restore, the tuples of a slice that changes
    are lifted again. Slices of tuples without rows are aggregated as those of other aggregates.
    """

    row: Column
    states: dict[Partial, State]

    @classmethod
    def of(cls, partials: tuple[Partial, ...], batch: Batch) -> LiftedTuples | None:
        """Lift the tuples of a batch; None where no aggregate has a `lift` of the user's."""
        fallible = [partial for partial in partials if partial.fallible]
        if not fallible:
            return None
        size = len(batch)
        each = np.arange(size + 1, dtype=np.int64)
        groups = Groups(size, None, True, batch.time, batch.arrival, batch.values, each)
        return cls(each[:-1], {partial: partial.lift(groups, ()) for partial in fallible})

    @classmethod
    def concat(cls, several: list[LiftedTuples | None], sizes: list[int]) -> LiftedTuples | None:
        """The tuples of several batches of these sizes."""
        lifted = [each for each in several if each is not None]
        if not lifted:
            return None
        rows, before = [], 0
        for each, size in zip(several, sizes, strict=True):
            if each is None:
                rows.append(np.full(size, -1, dtype=np.int64))
                continue
            rows.append(np.where(each.row < 0, -1, each.row + before))
            before += each.size
        states = {p: p.concat([each.states[p] for each in lifted]) for p in lifted[0].states}
        return cls(np.concatenate(rows), states)

    @property
    def size(self) -> int:
        """The number of rows, some of which may belong to no tuple any more."""
        return next(partial.size(state) for partial, state in self.states.items())

    def take(self, index: Column | slice) -> LiftedTuples:
        """The tuples at these positions."""
        row = self.row[index]
        if 2 * len(row) + 1024 > self.size:
            return LiftedTuples(row, self.states)
        used = np.flatnonzero(row >= 0)
        states = {partial: partial.take(state, row[used]) for partial, state in self.states.items()}
        row = np.full(len(row), -1, dtype=np.int64)
        row[used] = np.arange(len(used))
        return LiftedTuples(row, states)

    def folded(self, partial: Partial, begins: Column) -> State | None:
        """The partials of runs of tuples from one begin to the next; None where they must be lifted."""
        if partial not in self.states or (self.row[begins[0] : begins[-1]] < 0).any():
            return None
        return partial.reduce(self.states[partial], self.row, begins[:-1], begins[1:], (), ())
