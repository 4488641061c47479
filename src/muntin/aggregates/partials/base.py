"""The interface of a partial: a column of partial aggregates, one row per slice, processed as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.groups import Groups

__all__ = ["Partial", "Rows", "State", "States", "with_needs"]

State: TypeAlias = Any
"""The rows of one partial: an array, or a small dataclass of arrays. Only its partial reads its contents."""
States: TypeAlias = tuple[State, ...]
"""The states of the partials in another partial's `needs`."""
Rows: TypeAlias = Ints | None
"""Places of rows in a state; None for all rows in order."""


class Partial(ABC):
    """A column of partial aggregates; frozen and hashable, so that aggregates share equal ones.

    No method changes a state in place: each returns a new one.
    """

    __slots__ = ()

    @property
    def needs(self) -> tuple[Partial, ...]:
        """Other partials whose states `lift` and `reduce` read."""
        return ()

    @property
    def invertible(self) -> bool:
        """Whether `invert` is exact."""
        return False

    @property
    def ordered(self) -> bool:
        """Whether rows depend on the order of tuples with equal times."""
        return True

    @property
    def fallible(self) -> bool:
        """Whether `lift` runs user code, and so may fail on a tuple."""
        return False

    def try_lift(self, g: Groups) -> None:  # noqa: B027  # most partials take every tuple
        """Raise the exception that `lift` raises for the first tuple on which it fails; combines nothing."""

    @abstractmethod
    def lift(self, g: Groups, needs: States) -> State:
        """One row per group of tuples; `needs` are the lifted states of `self.needs`."""

    @abstractmethod
    def reduce(self, state: State, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> State:
        """Row j combines the rows `rows[lo[j]:hi[j]]` of `state`; without `rows`, `lo[j]:hi[j]`.

        An empty range gives the identity. `before` are the states of `needs` over the same rows,
        `after` the reduced ones.
        """

    def window(self, state: State, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> State:
        """As `reduce`, for windows: only the `lower` of a bound aggregate reads the result.

        So the result may refer to `state` where `reduce` would copy all items of all slices. A partial in
        the `needs` of another must not override it.
        """
        return self.reduce(state, rows, lo, hi, before, after)

    def invert(self, whole: State, part: State) -> State:
        """Remove each row of `part` from the same row of `whole`; only where `invertible`."""
        raise NotImplementedError(f"{type(self).__name__} is not invertible")

    @property
    def removable(self) -> bool:
        """Whether tuples may leave a row by `without`."""
        return self.invertible

    def without(self, whole: State, part: State, wholes: States, parts: States) -> tuple[State, Bools]:
        """Each row of `whole` without the tuples of the same row of `part`, and which rows are right.

        The tuples of the other rows must be aggregated again. `wholes` and `parts` are the same rows of
        the states of `needs`. Only where `removable`.
        """
        return self.invert(whole, part), np.ones(self.size(whole), dtype=np.bool_)

    def running(self, state: State) -> State | None:
        """Row i combines the rows up to i; only where `invertible`. None: the caller uses `reduce`."""
        return None

    def empty(self) -> State | None:
        """A state without rows; None where it depends on the types of the input: the caller uses `lift`."""
        return None

    @abstractmethod
    def concat(self, states: list[State]) -> State:
        """The rows of all states, at least one, in order."""

    def concat_by_group(self, states: list[State], groups: int) -> State:
        """As `concat`, group by group: each state has an equal number of rows for each of `groups` groups."""
        begins = np.cumsum([0, *map(self.size, states)])
        places = [np.arange(a, b).reshape(groups, -1) for a, b in pairwise(begins.tolist())]
        return self.take(self.concat(states), np.concatenate(places, axis=1).reshape(-1))

    @abstractmethod
    def take(self, state: State, index: Ints) -> State:
        """The rows at these places; each may occur any number of times."""

    def cut(self, state: State, low: int, high: int) -> State:
        """The rows `low:high`, without a copy where that is possible."""
        return self.take(state, np.arange(low, high, dtype=np.int64))

    @abstractmethod
    def size(self, state: State) -> int:
        """The number of rows."""

    @abstractmethod
    def nbytes(self, state: State) -> int:
        """The memory of the rows."""

    def weights(self, state: State) -> Ints | None:
        """The number of items of each row, for limits on memory; None where all rows have one size."""
        return None

    @abstractmethod
    def to_arrow(self, state: State) -> dict[str, pa.Array]:
        """Columns for a snapshot, each with one entry per row."""

    @abstractmethod
    def from_arrow(self, columns: dict[str, pa.Array]) -> State:
        """The state that `to_arrow` wrote; a SnapshotError for nulls or unequal lengths."""

    @property
    def uniform(self) -> bool:
        """Whether the names and types of the columns of `to_arrow` do not depend on the rows."""
        return True

    def sound(self, state: State) -> bool:
        """Whether rows from a snapshot have the order, ranges and counts that the other methods require."""
        return True


def with_needs(partials: Iterable[Partial]) -> tuple[Partial, ...]:
    """These partials and their `needs`, each once and after its own needs."""
    ordered: dict[Partial, None] = {}
    for partial in partials:
        ordered.update(dict.fromkeys(with_needs(partial.needs)))
        ordered[partial] = None
    return tuple(ordered)
