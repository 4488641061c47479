"""User-defined aggregates from plain Python functions."""

from __future__ import annotations

import datetime as dt
import decimal
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, Partial, State, joined
from muntin.aggregates.partials.objects import Folded, Functions
from muntin.aggregates.partials.ordered_objects import OrderedFold
from muntin.errors import QueryError, UserCodeError
from muntin.expressions import Expr, as_expr

__all__ = ["UserDefined", "aggregate"]

_ANNOTATIONS = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.timedelta: pa.duration("us"),
}


@dataclass(frozen=True, slots=True)
class UserDefined(Aggregate):
    """An aggregate made of the user's functions; `aggregate` is the way to write one.

    The scalar partial is, where the combine commutes, what `lift` returns; otherwise the lifted
    tuples with their places, folded by `lower`.
    """

    columns: tuple[Expr, ...]
    functions: Functions
    commutative: bool = True
    invertible: bool = False
    type: pa.DataType | None = None

    constructor = "aggregate"
    column_fields: ClassVar[tuple[str, ...]] = ()
    kind = "algebraic"

    @property
    def inputs(self) -> tuple[Expr, ...]:
        return self.columns

    def identity(self) -> Any:
        return self.functions.identity if self.commutative else None

    def lift(self, *values: Any, at: Order = ORIGIN) -> Any:
        if any(value is None for value in values):
            return self.identity()
        (lifted,) = self.functions.each("lift", [values])
        return lifted if self.commutative else ((at, lifted),)

    def combine(self, p: Any, q: Any) -> Any:
        if not self.commutative:
            return joined(p, q, lambda p, q: tuple(sorted(p + q, key=lambda item: item[0])))
        if self.functions.identity is not None:
            return self.functions.fold([p, q])
        return joined(p, q, lambda p, q: self.functions.fold([p, q]))

    def lower(self, p: Any) -> Any:
        if p is None:
            return None
        fold = p if self.commutative else self.functions.fold([item for _, item in p])
        return fold if self.functions.lower is None else self.functions.each("lower", [(fold,)])[0]

    def invert(self, whole: Any, part: Any) -> Any:
        if not self.invertible:
            raise QueryError(f"{self} is not invertible: give invert=...")
        return self.functions.each("invert", [(whole, part)])[0]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        result = self.type or self._infer(tuple(arrays.plain_type(type_) for type_ in types))
        partial: Partial
        if self.commutative:
            partial = Folded(self.columns, self.functions)
        else:
            partial = OrderedFold(self.columns, self.functions)
        return Bound(result, (partial,), lambda states: self._lower_column(states, result))

    def _lower_column(self, states: tuple[State, ...], type_: pa.DataType) -> pa.Array:
        state = states[0]
        count, fold = (state.count, state.value) if self.commutative else (np.diff(state.offsets), state.fold)
        there = np.flatnonzero(count)
        results: list[Any] = [None] * len(count)
        found = fold[there].tolist()
        if self.functions.lower is not None:
            found = self.functions.each("lower", [(value,) for value in found])
        for j, value in zip(there.tolist(), found, strict=True):
            results[j] = value
        try:
            return pa.array(results, type_)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise UserCodeError(
                f'user-defined aggregate "{self.functions.name}": a result is no {type_}: {error}; '
                "say what it is with type=..."
            ) from error

    def _infer(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The type that the last function promises or, failing that, returns for a sample value."""
        last = self.functions.lower or self.functions.combine
        try:
            promised = typing.get_type_hints(last).get("return")
        except (NameError, TypeError, AttributeError):
            promised = None
        if promised in _ANNOTATIONS:
            return _ANNOTATIONS[promised]
        try:
            sample = self.lower(self.lift(*(_sample(type_) for type_ in types)))
            inferred = pa.array([sample]).type
        except (UserCodeError, pa.ArrowException) as error:
            raise self._unknown() from error
        if t.is_null(inferred):
            raise self._unknown()
        return inferred

    def _unknown(self) -> QueryError:
        return QueryError(
            f'the type of the results of "{self.functions.name}" is not known; '
            "give it, for instance type=pa.float64()"
        )

    def parameters(self) -> dict[str, object]:
        raise QueryError(
            f'the user-defined aggregate "{self.functions.name}" cannot be written to a file: it is code'
        )

    def describe(self) -> str:
        shown = [*map(str, self.columns), f"name={self.functions.name!r}"]
        shown += [] if self.filter is None else [f"filter={self.filter}"]
        return f"{self.constructor}({', '.join(shown)})"


def aggregate(
    *columns: ColumnLike,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any] | None = None,
    identity: Any = None,
    invert: Callable[[Any, Any], Any] | None = None,
    commutative: bool = True,
    type: pa.DataType | None = None,
    name: str | None = None,
    filter: ColumnLike | None = None,
) -> UserDefined:
    """An aggregate of your own, from plain functions that return new values and change nothing.

    Args:
        columns: the inputs; a tuple with a null in one of them is skipped.
        lift: from one value per column to the partial aggregate of one tuple.
        combine: two partial aggregates into one; it must be associative.
        lower: from a partial aggregate to the result; left out, the partial aggregate is the result.
        identity: the partial aggregate of no tuple, for the laws. A window without values is null.
        invert: `combine(x, y), y` back into `x`, exactly.
        commutative: False if `combine(x, y)` may differ from `combine(y, x)`; it is then called
            in event-time order.
        type: of the result; left out, it is what `lower` is annotated to return or returns for a
            sample value.
        name: for messages; left out, the name of the function that tells most.
        filter: a condition; tuples for which it is false or null do not count.

    >>> import operator
    >>> words = aggregate("word", lift=str, combine=operator.add, commutative=False)
    >>> words.lower(words.combine(words.lift("b", at=(2, 0)), words.lift("a", at=(1, 1))))
    'ab'
    """
    for role, function in (("lift", lift), ("combine", combine), ("lower", lower), ("invert", invert)):
        if not callable(function) and not (function is None and role in ("lower", "invert")):
            raise QueryError(f"{role} must be a function: got {function!r}")
    if invert is not None and not commutative:
        raise QueryError("invert needs a combine that commutes: leave out invert, or commutative=False")
    named = name or next(
        (n for f in (lower, combine, lift) if (n := getattr(f, "__name__", "<")) and not n.startswith("<")),
        "aggregate",
    )
    exprs = tuple(as_expr(column) for column in columns)
    functions = Functions(named, lift, combine, lower, invert, identity)
    return UserDefined(exprs, functions, commutative, invert is not None, type, filter=filter)


_SAMPLES: list[tuple[Callable[[pa.DataType], bool], Any]] = [
    (t.is_boolean, True),
    (t.is_integer, 1),
    (t.is_floating, 1.0),
    (t.is_decimal, decimal.Decimal(1)),
    (t.is_date, dt.date(2000, 1, 1)),
    (t.is_time, dt.time(12)),
    (t.is_duration, dt.timedelta(seconds=1)),
    (t.is_large_string, "a"),
    (t.is_string, "a"),
]


def _sample(type_: pa.DataType) -> Any:
    """A harmless value of this type."""
    if t.is_timestamp(type_):
        return pa.scalar(0, pa.int64()).cast(type_).as_py()
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_):
        return b"a"
    return next((value for matches, value in _SAMPLES if matches(type_)), None)
