"""The distinct partial aggregates of a query, computed in one pass and shared between aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Bound, Groups, Partial
from muntin.aggregates.partials.columns import NumericPartial
from muntin.aggregates.partials.counts import Rows
from muntin.aggregates.partials.step_codes import NONE
from muntin.errors import PlacedError, UserCodeError
from muntin.expressions import Expr
from muntin.slicing.lifted_tuples import LiftedTuples

Index = npt.NDArray[np.int64]
States = tuple[Any, ...]
Function = Callable[..., Any]
Step = tuple[Function, tuple[int, ...]]
"""A function that computes the states of one partial, and the positions of the partials it needs."""


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
    _layout: tuple[tuple[int, type[np.generic]], ...] = field(init=False, repr=False, compare=False)
    """The number of 64-bit words of each numeric partial, and their type."""
    _lifts: tuple[Step, ...] = field(init=False, repr=False, compare=False)
    _reduces: tuple[Step, ...] = field(init=False, repr=False, compare=False)
    _windows: tuple[Step, ...] = field(init=False, repr=False, compare=False)
    _lowers: tuple[Step, ...] = field(init=False, repr=False, compare=False)
    _nothing: list[States] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        def steps(functions: Iterable[Function], places: tuple[tuple[int, ...], ...]) -> tuple[Step, ...]:
            return tuple(zip(functions, places, strict=True))

        layout = tuple((p.width, p.dtype) for p in self.partials if isinstance(p, NumericPartial))
        object.__setattr__(self, "_layout", layout)
        object.__setattr__(self, "numeric", len(layout) == len(self.partials))
        # Looked up once: in a step of few tuples, looking a function up costs as much as calling it.
        object.__setattr__(self, "_lifts", steps((p.lift for p in self.partials), self.needs))
        object.__setattr__(self, "_reduces", steps((p.reduce for p in self.partials), self.needs))
        object.__setattr__(self, "_windows", steps((p.window for p in self.partials), self.needs))
        object.__setattr__(self, "_lowers", steps((b.lower for b in self.bound), self.reads))

    @classmethod
    def of(cls, bound: tuple[Bound, ...], inputs: tuple[tuple[Expr, pa.DataType], ...]) -> PartialSet:
        """Collect the partials of these aggregates over inputs of these types."""
        order: dict[Partial, int] = {}
        if not bound:  # so that slices always have a partial
            order[Rows()] = 0

        def place(partial: Partial) -> int:
            for needed in partial.needs:
                place(needed)
            return order.setdefault(partial, len(order))

        reads = tuple(tuple(place(p) for p in b.partials) for b in bound)
        partials = tuple(order)
        needs = tuple(tuple(order[n] for n in p.needs) for p in partials)
        return cls(partials, needs, bound, reads, inputs)

    def lift(self, groups: Groups, lifted: LiftedTuples | None = None) -> States:
        """One row of partials per group of tuples, some partials of which may be `lifted` already."""
        states: list[Any] = []
        for partial, (lift, needs) in zip(self.partials, self._lifts, strict=True):
            known = None
            if lifted is not None and groups.offsets is not None:
                with suppress(UserCodeError):  # an error below names the tuple
                    known = lifted.folded(partial, groups.offsets)
            states.append(lift(groups, _at(states, needs) if needs else ()) if known is None else known)
        return tuple(states)

    def reduce(self, states: States, rows: Index | None, lo: Index, hi: Index) -> States:
        """Row j of the result combines the rows `rows[lo[j]:hi[j]]`, in that order."""
        return _combined(self._reduces, states, rows, lo, hi)

    def window(self, states: States, rows: Index | None, lo: Index, hi: Index) -> States:
        """As `reduce`, for windows that are lowered next."""
        return _combined(self._windows, states, rows, lo, hi)

    def growing(self, states: States) -> list[bool]:
        """Which partials grow with their tuples (collect, quantiles), or need one that does."""
        if self.numeric:
            return [False] * len(self.partials)
        growing: list[bool] = []
        for partial, state, needs in zip(self.partials, states, self.needs, strict=True):
            growing.append(partial.weights(state) is not None or any(growing[n] for n in needs))
        return growing

    def select(self, which: list[int]) -> PartialSet:
        """Some of the partials, with aggregates only if it is all; what they need must be among them."""
        if len(which) == len(self.partials):
            return self
        place = {old: new for new, old in enumerate(which)}
        needs = tuple(tuple(place[n] for n in self.needs[i]) for i in which)
        return PartialSet(tuple(self.partials[i] for i in which), needs, (), (), self.inputs)

    def of_aggregates(self, which: Sequence[int]) -> tuple[PartialSet, list[int]]:
        """Some of the aggregates with the partials that they need, and the positions of these."""
        if len(which) == len(self.bound):
            return self, list(range(len(self.partials)))
        needed: set[int] = set()
        pending = [place for one in which for place in self.reads[one]]
        while pending:
            place = pending.pop()
            if place not in needed:
                needed.add(place)
                pending += self.needs[place]
        places = sorted(needed)
        chosen = self.select(places)
        new = {old: place for place, old in enumerate(places)}
        reads = tuple(tuple(new[place] for place in self.reads[one]) for one in which)
        bound = tuple(self.bound[one] for one in which)
        return PartialSet(chosen.partials, chosen.needs, bound, reads, self.inputs), places

    def carried(self, states: States, rows: int, others: PartialSet) -> States:
        """States of other partials as states of these; those that are new have seen no tuple."""
        if self.partials == others.partials:
            return states
        place = dict(zip(others.partials, states, strict=True))
        if any(partial not in place for partial in self.partials):
            none = np.zeros(rows, dtype=np.int64)
            without_values = self.reduce(self.empty(), None, none, none)
        else:
            without_values = states
        return tuple(
            place[partial] if partial in place else without_values[i]
            for i, partial in enumerate(self.partials)
        )

    def invert(self, whole: States, part: States) -> States:
        """Row by row what remains of `whole` without `part`."""
        return tuple(p.invert(w, q) for p, w, q in zip(self.partials, whole, part, strict=True))

    @property
    def removable(self) -> bool:
        """Whether tuples may leave a row by `without`."""
        return all(partial.removable for partial in self.partials)

    def without(self, whole: States, part: States) -> tuple[States, npt.NDArray[np.bool_]]:
        """Row by row what remains of `whole` without `part`, and which rows are right.

        The tuples of the other rows must be aggregated again. Only where `removable`.
        """
        states: list[Any] = []
        right = np.ones(self.partials[0].size(whole[0]) if whole else 0, dtype=np.bool_)
        for partial, needs, one, other in zip(self.partials, self.needs, whole, part, strict=True):
            state, known = partial.without(one, other, _at(whole, needs), _at(part, needs))
            states.append(state)
            right &= known
        return tuple(states), right

    def take(self, states: States, index: Index) -> States:
        """The rows at these positions."""
        return tuple(p.take(s, index) for p, s in zip(self.partials, states, strict=True))

    def cut(self, states: States, low: int, high: int) -> States:
        """The rows from `low` to `high`."""
        return tuple(p.cut(s, low, high) for p, s in zip(self.partials, states, strict=True))

    def concat(self, several: list[States]) -> States:
        """The rows of several states one after the other."""
        columns = zip(*several, strict=True)
        return tuple([p.concat(list(column)) for p, column in zip(self.partials, columns, strict=True)])

    def beside(self, several: list[States], groups: int) -> States:
        """The rows of several states, interleaved by group; each state has equally many rows per group."""
        columns = zip(*several, strict=True)
        return tuple(
            [
                p.concat_by_group(list(column), groups)
                for p, column in zip(self.partials, columns, strict=True)
            ]
        )

    def empty(self) -> States:
        """No rows; the same states each time, since states are never written to."""
        if not self._nothing:
            states = [partial.empty() for partial in self.partials]
            if all(state is not None for state in states):
                self._nothing.append(tuple(states))
        if not self._nothing:
            none = np.zeros(0, dtype=np.int64)
            values = {e: pa.array([], type=t) for e, t in self.inputs}
            self._nothing.append(self.lift(Groups(0, none, True, none, none, values)))
        return self._nothing[0]

    def to_words(self, states: States) -> npt.NDArray[np.int64]:
        """The columns of numeric partials as rows of 64-bit words."""
        return np.concatenate([np.atleast_2d(state.view(np.int64).T) for state in states])

    def from_words(self, words: npt.NDArray[np.int64]) -> States:
        """The states that `to_words` was given."""
        states, at = [], 0
        for width, dtype in self._layout:
            column = words[at] if width == 1 else words[at : at + width].T.copy()
            states.append(column if dtype is np.int64 else column.view(dtype))
            at += width
        return tuple(states)

    def value_codes(self) -> Index | None:
        """For each aggregate its value code, and the first words of its count and of its last partial.

        None where the compiled step does not lower an aggregate.
        """
        codes = [bound.value_code for bound in self.bound]
        if NONE in codes or not self.numeric:
            return None
        first = np.cumsum([0, *(width for width, _ in self._layout)]).tolist()
        each = zip(codes, self.reads, strict=True)
        return np.array([(code, first[reads[0]], first[reads[-1]]) for code, reads in each])

    def lower(self, states: States) -> list[pa.Array]:
        """The value of each aggregate, row by row."""
        return [lower(_at(states, reads)) for lower, reads in self._lowers]

    def lower_each(self, states: States) -> tuple[list[pa.Array], list[PlacedError]]:
        """As `lower` for a single row, but null where an aggregate has no value, and why."""
        values: list[pa.Array] = []
        errors: list[PlacedError] = []
        for bound, (lower, reads) in zip(self.bound, self._lowers, strict=True):
            try:
                values.append(lower(_at(states, reads)))
            except PlacedError as error:
                errors.append(error)
                values.append(pa.nulls(1, bound.type))
        return values, errors

    def nbytes(self, states: States) -> int:
        """Bytes that these rows hold."""
        return sum(p.nbytes(s) for p, s in zip(self.partials, states, strict=True))


def _combined(steps: tuple[Step, ...], states: States, rows: Index | None, lo: Index, hi: Index) -> States:
    after: list[Any] = []
    for (combine, needs), state in zip(steps, states, strict=True):
        before, reduced = (_at(states, needs), _at(after, needs)) if needs else ((), ())
        after.append(combine(state, rows, lo, hi, before, reduced))
    return tuple(after)


def _at(states: Sequence[Any], places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple([states[i] for i in places])
