"""Partials over some of the tuples: those that satisfy `filter=`, or have values in several columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Aggregate, Bound, Groups, Ints, Partial, State
from muntin.aggregates.partials.base import Rows, States
from muntin.errors import DataError
from muntin.expressions import Expr

__all__ = ["Complete", "Filtered", "bind"]


def bind(aggregate: Aggregate, types: tuple[pa.DataType, ...]) -> Bound:
    """The aggregate with its filter, over columns of these types, given in the order of `reads`."""
    bound = aggregate.bind(types[: len(aggregate.inputs)])
    if aggregate.filter is None:
        return bound
    condition, type_ = cast(Expr, aggregate.filter), types[-1]
    if not (t.is_boolean(type_) or t.is_null(type_)):
        raise DataError(f'filter needs a condition: "{condition}" is {type_}; compare it with something')
    return replace(bound, partials=tuple(Filtered(partial, condition) for partial in bound.partials))


@dataclass(frozen=True, slots=True)
class _OverSome(Partial):
    """Another partial, over some of the tuples; only lifting differs."""

    partial: Partial

    @abstractmethod
    def choose(self, g: Groups) -> Groups:
        """The tuples that count."""

    @property
    def needs(self) -> tuple[Partial, ...]:
        return tuple(replace(self, partial=needed) for needed in self.partial.needs)

    @property
    def invertible(self) -> bool:
        return self.partial.invertible

    @property
    def fallible(self) -> bool:
        return self.partial.fallible

    def try_lift(self, g: Groups) -> None:
        self.partial.try_lift(self.choose(g))

    def lift(self, g: Groups, needs: States) -> State:
        return self.partial.lift(self.choose(g), needs)

    def reduce(self, state: State, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> State:
        return self.partial.reduce(state, rows, lo, hi, before, after)

    def window(self, state: State, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> State:
        return self.partial.window(state, rows, lo, hi, before, after)

    def invert(self, whole: State, part: State) -> State:
        return self.partial.invert(whole, part)

    @property
    def removable(self) -> bool:
        return self.partial.removable

    def without(self, whole: State, part: State, wholes: States, parts: States) -> tuple[State, Bools]:
        return self.partial.without(whole, part, wholes, parts)

    def running(self, state: State) -> State | None:
        return self.partial.running(state)

    def concat(self, states: list[State]) -> State:
        return self.partial.concat(states)

    def take(self, state: State, index: Ints) -> State:
        return self.partial.take(state, index)

    def cut(self, state: State, low: int, high: int) -> State:
        return self.partial.cut(state, low, high)

    def size(self, state: State) -> int:
        return self.partial.size(state)

    def nbytes(self, state: State) -> int:
        return self.partial.nbytes(state)

    @property
    def ordered(self) -> bool:
        return self.partial.ordered

    def weights(self, state: State) -> Ints | None:
        return self.partial.weights(state)

    def to_arrow(self, state: State) -> dict[str, pa.Array]:
        return self.partial.to_arrow(state)

    def from_arrow(self, columns: dict[str, pa.Array]) -> State:
        return self.partial.from_arrow(columns)

    @property
    def uniform(self) -> bool:
        return self.partial.uniform

    def sound(self, state: State) -> bool:
        return self.partial.sound(state)


@dataclass(frozen=True, slots=True)
class Filtered(_OverSome):
    """A partial over the tuples for which the condition is true.

    Partials with the same condition share the chosen tuples. Equal partials with equal conditions are
    computed once.
    """

    condition: Expr

    def choose(self, g: Groups) -> Groups:
        return g.where(self.condition)


@dataclass(frozen=True, slots=True)
class Complete(_OverSome):
    """A partial over the tuples that have a value in all of these columns."""

    exprs: tuple[Expr, ...]

    def choose(self, g: Groups) -> Groups:
        return g.complete(*self.exprs)
