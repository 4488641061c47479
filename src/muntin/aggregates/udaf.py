"""User-defined aggregates from plain Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arity import check_arity
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, Partial, joined
from muntin.aggregates.compiling.program import Program
from muntin.aggregates.inferring import result_type
from muntin.aggregates.lowering import Lowering
from muntin.aggregates.partials.functions import Functions
from muntin.aggregates.partials.objects import Folded
from muntin.aggregates.partials.ordered_objects import OrderedFold
from muntin.aggregates.type_names import named_type
from muntin.call_errors import checked_call
from muntin.errors import QueryError, value_text
from muntin.expressions import Expr, as_expr

__all__ = ["UserDefined", "aggregate"]


@dataclass(frozen=True, slots=True)
class UserDefined(Aggregate):
    """An aggregate of a user's functions, made by `aggregate`.

    The scalar partial is None for no tuple. Otherwise, where the combine commutes, it is the number of
    tuples and their fold; where it does not, the lifted tuples with their places, folded by `lower`.
    """

    columns: tuple[Expr, ...]
    functions: Functions
    commutative: bool = True
    invertible: bool = False
    type: pa.DataType | None = None
    ignore_nulls: bool = True
    compile: bool | None = field(default=None, compare=False)
    ordered: bool = field(default=False, compare=False)

    constructor = "aggregate"
    column_fields: ClassVar[tuple[str, ...]] = ()
    column_list = "columns"

    def in_order(self) -> UserDefined:
        return replace(self, ordered=True)

    def absorbing(self) -> UserDefined:
        return replace(self, functions=replace(self.functions, absorbing=True))

    def lift(self, *values: Any, at: Order = ORIGIN) -> Any:
        if self.ignore_nulls and any(value is None for value in values):
            return None
        (lifted,) = self.functions.each("lift", [values])
        return (1, lifted) if self.commutative else ((at, lifted),)

    def combine(self, p: Any, q: Any) -> Any:
        if self.commutative:
            return joined(p, q, lambda p, q: (p[0] + q[0], self.functions.fold([p[1], q[1]])))
        return joined(p, q, lambda p, q: tuple(sorted(p + q, key=lambda item: item[0])))

    def lower(self, p: Any) -> Any:
        if p is None:
            return None
        fold = p[1] if self.commutative else self.functions.fold([item for _, item in p])
        return fold if self.functions.lower is None else self.functions.each("lower", [(fold,)])[0]

    def invert(self, whole: Any, part: Any) -> Any:
        if not self.invertible:
            raise QueryError(f"{self} is not invertible: give invert=...")
        if part is None or whole[0] == part[0]:
            return whole if part is None else None
        return whole[0] - part[0], self.functions.each("invert", [(whole[1], part[1])])[0]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        plain = tuple(arrays.plain_type(type_) for type_ in types)
        result = self.type or result_type(self.functions, plain)
        program = Program(self.functions, self.columns, plain, self.compile)
        partial: Partial
        if self.commutative or self.ordered:
            partial = Folded(self.columns, self.functions, self.ignore_nulls, program)
        else:
            partial = OrderedFold(self.columns, self.functions, self.ignore_nulls, program)
        lower = Lowering(self.functions, program, result)
        return Bound(result, (partial,), lower, program.describe)

    def parameters(self) -> dict[str, object]:
        raise QueryError(
            f'the user-defined aggregate "{self.functions.name}" cannot be written to a file: it is code'
        )

    def describe(self) -> str:
        shown = [*map(str, self.columns), f"name={self.functions.name!r}"]
        shown += [] if self.filter is None else [f"filter={self.filter}"]
        return f"{self.constructor}({', '.join(shown)}){self._over()}"


@checked_call()
def aggregate(
    *columns: ColumnLike,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any] | None = None,
    identity: Any = None,
    invert: Callable[[Any, Any], Any] | None = None,
    commutative: bool = True,
    type: pa.DataType | str | None = None,
    name: str | None = None,
    ignore_nulls: bool = True,
    compile: bool | None = None,
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
        type: of the result, as a pyarrow type or the name of one, like "float64"; left out, it is what
            `lower` is annotated to return or returns for sample values.
        name: for messages; left out, the name of `lower`, `combine` or `lift`, the first that has one.
        ignore_nulls: False if tuples with nulls count too; `lift` then gets None for a null.
        compile: None compiles numeric functions once that pays; True compiles at once, and says why
            if it cannot; False never does. The results are the same.
        filter: a condition; tuples for which it is false or null do not count.

    >>> import operator
    >>> words = aggregate("word", lift=str, combine=operator.add, commutative=False)
    >>> words.lower(words.combine(words.lift("b", at=(2, 0)), words.lift("a", at=(1, 1))))
    'ab'
    """
    for role, function in (("lift", lift), ("combine", combine), ("lower", lower), ("invert", invert)):
        if not callable(function) and not (function is None and role in ("lower", "invert")):
            raise QueryError(f"{role} must be a function: got {value_text(function)}")
        if callable(function):
            check_arity(role, function, columns)
    if invert is not None and not commutative:
        raise QueryError("invert needs a combine that commutes: leave out invert, or commutative=False")
    if compile not in (None, True, False):
        raise QueryError(f"compile must be True, False or None: got {value_text(compile)}")
    named = name or next(
        (n for f in (lower, combine, lift) if (n := getattr(f, "__name__", "<")) and not n.startswith("<")),
        "aggregate",
    )
    exprs = tuple(as_expr(column) for column in columns)
    result = None if type is None else named_type(type, "type")
    functions = Functions(named, _python(lift), _python(combine), _python(lower), _python(invert), identity)
    return UserDefined(
        exprs, functions, commutative, invert is not None, result, ignore_nulls, compile, filter=filter
    )


def _python(function: Any) -> Any:
    """The Python function behind one that Numba has compiled, which would wrap integers around."""
    return getattr(function, "py_func", function)
