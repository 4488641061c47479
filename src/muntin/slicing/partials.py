"""The distinct partial aggregates of a query, computed in one pass and shared between aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Bound, Groups, Partial
from muntin.aggregates.partials.columns import NumericPartial
from muntin.expressions import Expr

Index = npt.NDArray[np.int64]
States = tuple[Any, ...]


_REDUCE, _WINDOW = attrgetter("reduce"), attrgetter("window")


@dataclass(frozen=True, slots=True)
class PartialSet:
    """Every partial once, each after those it needs; which aggregate reads which.

    `mean` and `stddev` of one column share the number of values and their sum; so the partials of
    a slice are the union over the aggregates, not their concatenation.
    """

    partials: tuple[Partial, ...]
    needs: tuple[tuple[int, ...], ...]
    bound: tuple[Bound, ...]
    reads: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[Expr, pa.DataType], ...]
    numeric: bool = field(init=False)
    """Whether all states are arrays of numbers, a row of which never grows."""

    def __post_init__(self) -> None:
        numeric = all(isinstance(partial, NumericPartial) for partial in self.partials)
        object.__setattr__(self, "numeric", numeric)

    @classmethod
    def of(cls, bound: tuple[Bound, ...], inputs: tuple[tuple[Expr, pa.DataType], ...]) -> PartialSet:
        """Collect the partials of these aggregates over inputs of these types."""
        order: dict[Partial, int] = {}

        def place(partial: Partial) -> int:
            for needed in partial.needs:
                place(needed)
            return order.setdefault(partial, len(order))

        reads = tuple(tuple(place(p) for p in b.partials) for b in bound)
        partials = tuple(order)
        needs = tuple(tuple(order[n] for n in p.needs) for p in partials)
        return cls(partials, needs, bound, reads, inputs)

    def lift(self, groups: Groups) -> States:
        """One row of partials per group of tuples."""
        states: list[Any] = []
        for partial, needs in zip(self.partials, self.needs, strict=True):
            states.append(partial.lift(groups, _at(states, needs)))
        return tuple(states)

    def reduce(self, states: States, rows: Index | None, lo: Index, hi: Index) -> States:
        """Row j of the result combines the rows `rows[lo[j]:hi[j]]`, in that order."""
        return self._combined(_REDUCE, states, rows, lo, hi)

    def window(self, states: States, rows: Index | None, lo: Index, hi: Index) -> States:
        """As `reduce`, for windows that are lowered next."""
        return self._combined(_WINDOW, states, rows, lo, hi)

    def _combined(
        self,
        step: Callable[[Partial], Callable[..., Any]],
        states: States,
        rows: Index | None,
        lo: Index,
        hi: Index,
    ) -> States:
        after: list[Any] = []
        for position, (partial, needs) in enumerate(zip(self.partials, self.needs, strict=True)):
            before, reduced = _at(states, needs), _at(after, needs)
            after.append(step(partial)(states[position], rows, lo, hi, before, reduced))
        return tuple(after)

    def growing(self, states: States) -> list[bool]:
        """Which partials grow with their tuples (collect, quantiles), or need one that does."""
        if self.numeric:
            return [False] * len(self.partials)
        found: list[bool] = []
        for partial, state, needs in zip(self.partials, states, self.needs, strict=True):
            found.append(partial.weights(state) is not None or any(found[n] for n in needs))
        return found

    def select(self, which: list[int]) -> PartialSet:
        """Some of the partials, with aggregates only if it is all; what they need must be among them."""
        if len(which) == len(self.partials):
            return self
        place = {old: new for new, old in enumerate(which)}
        needs = tuple(tuple(place[n] for n in self.needs[i]) for i in which)
        return PartialSet(tuple(self.partials[i] for i in which), needs, (), (), self.inputs)

    def invert(self, whole: States, part: States) -> States:
        """Row by row what remains of `whole` without `part`."""
        return tuple(p.invert(w, q) for p, w, q in zip(self.partials, whole, part, strict=True))

    def take(self, states: States, index: Index) -> States:
        """The rows at these positions."""
        return tuple(p.take(s, index) for p, s in zip(self.partials, states, strict=True))

    def cut(self, states: States, low: int, high: int) -> States:
        """The rows from `low` to `high`."""
        return tuple(p.cut(s, low, high) for p, s in zip(self.partials, states, strict=True))

    def concat(self, parts: list[States]) -> States:
        """The rows of several states one after the other."""
        return tuple(p.concat([part[i] for part in parts]) for i, p in enumerate(self.partials))

    def empty(self) -> States:
        """No rows."""
        nothing = np.zeros(0, dtype=np.int64)
        values = {e: pa.array([], type=t) for e, t in self.inputs}
        return self.lift(Groups(0, nothing, True, nothing, nothing, values))

    def lower(self, states: States) -> list[pa.Array]:
        """The value of each aggregate, row by row."""
        return [b.lower(_at(states, reads)) for b, reads in zip(self.bound, self.reads, strict=True)]

    def nbytes(self, states: States) -> int:
        """Bytes that these rows hold."""
        return sum(p.nbytes(s) for p, s in zip(self.partials, states, strict=True))


def _at(states: Sequence[Any], places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple([states[i] for i in places]) if places else ()
