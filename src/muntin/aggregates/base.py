"""What an aggregate is: lift, combine, lower, invert, and the traits that the planner reads.

Three layers, from what the user writes to what runs:

* `Aggregate` is a frozen description, `Sum("amount")`. Its `lift`, `combine`, `lower` work on
  single Python values: they are the definition that documentation, laws and the oracle use.
* `Bound` is the same aggregate once the types of its inputs are known: the type of its result,
  the partials that it needs, and how the result is read off them.
* `Partial` is one column (or a few) of partial aggregates, one row per slice, with compiled lift
  and reduce. Equal partials are computed once: mean and variance share the count and the sum.
"""

from __future__ import annotations

import inspect
import re
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, cast

import pyarrow as pa

from muntin.aggregates.arguments import validate
from muntin.aggregates.arrays import Ints
from muntin.aggregates.groups import Groups
from muntin.aggregates.partials.base import Partial, State, with_needs
from muntin.aggregates.partials.step_codes import NONE
from muntin.call_errors import refusal
from muntin.errors import QueryError, value_text
from muntin.expressions import ColumnLike, Expr, as_expr, as_predicate

__all__ = [
    "ORIGIN",
    "Aggregate",
    "Bound",
    "ColumnLike",
    "Groups",
    "Ints",
    "Kind",
    "Order",
    "Partial",
    "State",
    "joined",
    "with_needs",
]

Kind: TypeAlias = Literal["distributive", "algebraic", "holistic"]
"""Gray's classes: the partial is of the result's size, of bounded size, of unbounded size. [scotty §4.2]"""

Order: TypeAlias = tuple[int, int]
"""A tuple's place in the stream: (event time, arrival)."""

ORIGIN: Order = (0, 0)


class Traits:
    """The traits of an aggregate that the planner reads.

    Not part of the dataclass below: most classes set these once, user-defined aggregates per object.
    """

    __slots__ = ()

    column_fields: ClassVar[tuple[str, ...]] = ("column",)
    column_list: ClassVar[str | None] = None
    """The field that holds several columns, if there is one."""
    predicate_fields: ClassVar[tuple[str, ...]] = ("filter",)
    commutative: bool = True
    invertible: bool = False
    kind: Kind = "algebraic"
    empty: ClassVar[Any] = None
    """The partial aggregate of no tuple."""


class _Constructor(ABCMeta):
    """Makes aggregates; a call that does not fit their fields is a QueryError that names these."""

    if not TYPE_CHECKING:  # which reads the parameters off the fields

        @property
        def __signature__(cls) -> inspect.Signature:
            parameters = list(inspect.signature(cls.__init__).parameters.values())
            return inspect.Signature(parameters[1:])

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                error = refusal(_constructor(cls) or cls.__name__, cls.__init__, (None, *args), kwargs)
                if error is None:  # the arguments fit: it comes from inside
                    raise
            raise error


@dataclass(frozen=True, slots=True)
class Aggregate(Traits, metaclass=_Constructor):
    """An aggregate as the user writes it; subclasses are frozen dataclasses.

    A subclass lists in `column_fields` which of its fields are columns, in
    `predicate_fields` which are conditions, and sets the traits where they differ from the ones above.
    The rules in the metadata of its fields are validated. The scalar functions obey the laws of a monoid:
    `combine` is associative, `identity()` is neutral.

    Tuples for which `filter` is false or null do not count. The functions here ignore the filter; their
    callers omit those tuples.
    """

    filter: ColumnLike | None = field(default=None, kw_only=True)
    only: tuple[str, ...] | None = field(default=None, init=False, kw_only=True)
    """The names of the windows that have it, as `over` sets them; None for all windows of the query."""

    def __post_init__(self) -> None:
        for name in {*self.column_fields, *self.predicate_fields}:
            if (value := getattr(self, name)) is not None:
                convert = as_predicate if name in self.predicate_fields else as_expr
                object.__setattr__(self, name, convert(value, name))
        for one in fields(self):
            if (rules := one.metadata.get("must")) is not None:
                validate(one.name, getattr(self, one.name), rules)
        if (several := self.column_list) is not None:
            exprs = tuple(as_expr(column, several) for column in getattr(self, several))
            object.__setattr__(self, several, exprs)

    @property
    def constructor(self) -> str:
        """The name of the function that makes it: `arg_max` makes an `ArgMax`."""
        return _constructor(type(self))

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """The columns that `lift` takes; none for `count()`."""
        values = [getattr(self, name) for name in self.column_fields]
        several = getattr(self, self.column_list) if self.column_list else ()
        return (*(value for value in values if value is not None), *several)

    @property
    def reads(self) -> tuple[Expr, ...]:
        """All columns that it needs: the inputs and, if there is one, the filter."""
        return self.inputs if self.filter is None else (*self.inputs, cast(Expr, self.filter))

    def over(self, *windows: str) -> Self:
        """The same aggregate, computed for these windows of the query only; null in the rows of others.

        >>> from muntin import aggregates as a
        >>> print(a.count_distinct("user").over("day", "week"))
        count_distinct(user).over(day, week)
        """
        if not windows:
            raise QueryError(
                'over() needs the names of windows: write .over("day"), or leave it out for all windows'
            )
        for name in windows:
            if not (isinstance(name, str) and name):
                raise QueryError(f'over() takes names of windows, .over("day"): got {value_text(name)}')
            if windows.count(name) > 1:
                raise QueryError(f'over() takes each window once: got "{name}" twice')
        limited = copy(self)
        object.__setattr__(limited, "only", windows)
        return limited

    def everywhere(self) -> Self:
        """The same aggregate over all windows."""
        limited = copy(self)
        object.__setattr__(limited, "only", None)
        return limited

    def is_over(self, window: str) -> bool:
        """Whether the windows of this name have it."""
        return self.only is None or window in self.only

    @abstractmethod
    def lift(self, *args: Any, **kwargs: Any) -> Any:
        """The partial aggregate of one tuple, from one value per input.

        `at` is the tuple's (time, arrival); aggregates that know no order ignore it.
        """

    @abstractmethod
    def combine(self, p: Any, q: Any) -> Any:
        """The partial aggregate of the tuples of both."""

    @abstractmethod
    def lower(self, p: Any) -> Any:
        """The result."""

    def identity(self) -> Any:
        """The partial aggregate of no tuple."""
        return self.empty

    def absorbing(self) -> Aggregate:
        """The aggregate for on_error="skip": a `combine` that fails affects only the windows that need it."""
        return self

    def in_order(self) -> Aggregate:
        """The aggregate for a stream in order: itself, or a cheaper equivalent."""
        return self

    def invert(self, whole: Any, part: Any) -> Any:
        """Remove `part` from `whole`; only where `invertible`."""
        raise QueryError(f"{self.constructor} is not invertible")

    @abstractmethod
    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        """The aggregate over inputs of these types; a DataError if it has no meaning for them.

        Without its filter, which `muntin.aggregates.filtering.bind` adds.
        """

    def parameters(self) -> dict[str, object]:
        """Plain values that recreate it through its constructor.

        A column is given by name; a computed one as text under "expression" (the first column) or
        "..._expression" (any other); a condition as text. What has its default value is left out.
        """
        result: dict[str, object] = {}
        for name, value in self._arguments():
            if name == self.column_list:
                result[name] = names = [expr.column for expr in value]
                if None in names:
                    raise QueryError(
                        f"{self} cannot be written to a file: of several columns none can be computed"
                    )
            elif not isinstance(value, Expr):
                result[name] = value
            elif name in self.predicate_fields:
                result[name] = value.to_text()
            elif value.column is not None:
                result[name] = value.column
            else:
                first = name == self.column_fields[0]
                result["expression" if first else f"{name}_expression"] = value.to_text()
        return result

    def describe(self) -> str:
        """The call that makes it, for people: `arg_max(customer, by=amount)`."""
        first = next((f.name for f in fields(self) if not f.kw_only), "")
        shown = []
        for name, value in self._arguments():
            text = str(value) if isinstance(value, Expr) else repr(value)
            if name == self.column_list:
                text = ", ".join(map(str, value)) if name == first else f"[{', '.join(map(str, value))}]"
            shown.append(text if name == first else f"{name}={text}")
        return f"{self.constructor}({', '.join(shown)}){self._over()}"

    def _over(self) -> str:
        """The call of `over` that it needs, for people."""
        return "" if self.only is None else f".over({', '.join(self.only)})"

    def _arguments(self) -> list[tuple[str, Any]]:
        """The fields that have not their default value, as the constructor takes them."""
        ordered: list[Field[Any]] = sorted(fields(self), key=lambda f: bool(f.kw_only))
        given = [(f, getattr(self, f.name)) for f in ordered if f.init]
        return [(f.name, value) for f, value in given if f.default is MISSING or value != f.default]

    def __str__(self) -> str:
        return self.describe()


@cache
def _constructor(made: type) -> str:
    """The name of the class in small letters; for a user's subclass, of the aggregate that it extends."""
    own = next(one for one in made.__mro__ if one.__module__.startswith("muntin.aggregates."))
    return "" if own is Aggregate else re.sub("(?<=[a-z])(?=[A-Z])", "_", own.__name__).lower()


@dataclass(frozen=True, slots=True)
class Bound:
    """An aggregate over inputs of known types."""

    type: pa.DataType
    """Of the result."""
    partials: tuple[Partial, ...]
    lower: Callable[[tuple[State, ...]], pa.Array]
    """From the states of `partials`, in that order and of equal length, to the results."""
    runs: Callable[[bool], str] = lambda trial: "compiled"
    """How it is computed, in words. A user-defined aggregate may be compiled later; a trial does it now."""
    only_overflows: bool = False
    """Whether `lower` raises no error where all integer sums fit into 64 bits."""
    value_code: int = NONE
    """How the compiled step lowers the last partial, to 64 bits; null where the first one, a count, is 0."""

    @property
    def invertible(self) -> bool:
        """Whether every partial can be inverted without loss over these types."""
        return all(partial.invertible for partial in self.partials)

    @property
    def removable(self) -> bool:
        """Whether a tuple can be taken out of every partial, unless that tuple determines its value."""
        return all(partial.removable for partial in self.partials)


def joined(p: Any, q: Any, join: Callable[[Any, Any], Any]) -> Any:
    """`join(p, q)`, where None is the neutral element, which makes any semigroup a monoid."""
    if p is None:
        return q
    return p if q is None else join(p, q)
