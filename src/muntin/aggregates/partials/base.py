"""What a partial is: a column of partial aggregates, one row per slice, lifted and reduced as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from muntin.aggregates.arrays import Ints
from muntin.aggregates.groups import Groups

__all__ = ["Partial", "Rows", "State", "States", "with_needs"]

State: TypeAlias = Any
"""The rows of one partial: an array, or a small dataclass of arrays. Only its partial looks inside."""
States: TypeAlias = tuple[State, ...]
"""The states of the partials that another one needs."""
Rows: TypeAlias = Ints | None
"""Places of rows in a state; None for all rows in order."""


class Partial(ABC):
    """A column of partial aggregates; frozen and hashable, so that equal ones are shared.

    Nothing here changes a state in place: every function returns a new one.
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
        """Whether rows depend on the order of tuples of one time."""
        return True

    @property
    def fallible(self) -> bool:
        """Whether `lift` runs user code, and so may fail on a tuple."""
        return False

    def try_lift(self, g: Groups) -> None:  # noqa: B027  # most partials take every tuple
        """Raise what `lift` would raise for the first tuple on which it fails; combines nothing."""

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
        """Like `reduce`, for windows: only the `lower` of a bound aggregate reads the result.

        So it may refer to `state` where `reduce` would copy all items of all slices. A partial that
        others need has to leave it as it is.
        """
        return self.reduce(state, rows, lo, hi, before, after)

    def invert(self, whole: State, part: State) -> State:
        """Row by row what remains of `whole` without `part`; only where `invertible`."""
        raise NotImplementedError(f"{type(self).__name__} is not invertible")

    def running(self, state: State) -> State | None:
        """Row i combines the rows up to i; only where `invertible`, and None where `reduce` has to do it."""
        return None

    def empty(self) -> State | None:
        """A state without rows; None where `lift` has to make it, since it depends on the input."""
        return None

    @abstractmethod
    def concat(self, states: list[State]) -> State:
        """The rows of at least one state, one after the other."""

    def beside(self, states: list[State], groups: int) -> State:
        """As `concat`, group by group: each state has as many rows for each of so many groups."""
        begins = np.cumsum([0, *map(self.size, states)])
        places = [np.arange(a, b).reshape(groups, -1) for a, b in pairwise(begins.tolist())]
        return self.take(self.concat(states), np.concatenate(places, axis=1).reshape(-1))

    @abstractmethod
    def take(self, state: State, index: Ints) -> State:
        """The rows at these places; each may occur any number of times."""

    def cut(self, state: State, low: int, high: int) -> State:
        """The rows from `low` to `high`, without a copy where that is possible."""
        return self.take(state, np.arange(low, high, dtype=np.int64))

    @abstractmethod
    def size(self, state: State) -> int:
        """How many rows."""

    @abstractmethod
    def nbytes(self, state: State) -> int:
        """Memory that the rows occupy."""

    def weights(self, state: State) -> Ints | None:
        """Items held by each row, where rows differ in size: to reduce big states in portions."""
        return None

    @abstractmethod
    def to_arrow(self, state: State) -> dict[str, pa.Array]:
        """Columns for a snapshot, each with one entry per row."""

    @abstractmethod
    def from_arrow(self, columns: dict[str, pa.Array]) -> State:
        """The state that `to_arrow` wrote; a SnapshotError for nulls or lengths that it never writes."""

    @property
    def uniform(self) -> bool:
        """Whether `to_arrow` writes columns of the same names and types whatever the rows hold."""
        return True

    def sound(self, state: State) -> bool:
        """Whether rows from a snapshot have the order, ranges and counts that the other methods rely on."""
        return True


def with_needs(partials: Iterable[Partial]) -> tuple[Partial, ...]:
    """These partials and all that they need, each once, after what it needs itself."""
    ordered: dict[Partial, None] = {}
    for partial in partials:
        ordered.update(dict.fromkeys(with_needs(partial.needs)))
        ordered[partial] = None
    return tuple(ordered)
