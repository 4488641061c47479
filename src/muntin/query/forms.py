"""A query as plain values: the form that is fingerprinted, and the source that is shown.

A window or an aggregate says how to make it again: `constructor` names the
function, `parameters()` gives its arguments. Those that the user wrote as classes
may not know how; they count by the name of their class and what they hold.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import types
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from muntin.errors import QueryError
from muntin.expressions import Expr
from muntin.expressions.foreign import ColumnName
from muntin.query.policies import EachBatch, Every, OnChange
from muntin.timeline import Micros, format_span

if TYPE_CHECKING:
    from muntin.query.spec import QuerySpec

POLICIES = (
    "allowed_lateness", "emit", "early", "late", "bad", "on_error", "idle_after", "forget_keys_after",
    "max_ahead", "max_windows",
)  # fmt: skip
"""Arguments of `.on()` that decide results, in the order in which queries are written."""


def definition(item: Any) -> tuple[str, dict[str, object]]:
    """The constructor's name and the arguments that make the item again.

    Raises QueryError if it has no such form.
    """
    constructor = getattr(item, "constructor", None)
    if not constructor:
        raise QueryError(f"{_name(type(item))} is a class of its own, which no constructor makes")
    return str(constructor), dict(item.parameters())


def limits(item: Any) -> list[str] | None:
    """The names of the windows that an aggregate is limited to; None where there is no limit."""
    only = getattr(item, "only", None)
    return None if only is None else list(only)


def policy_arguments(spec: QuerySpec) -> dict[str, Any]:
    """The arguments of `.on()` after the time column that differ from their defaults."""
    defaults = type(spec).__dataclass_fields__
    return {name: getattr(spec, name) for name in POLICIES if getattr(spec, name) != defaults[name].default}


def fingerprint_form(spec: QuerySpec) -> dict[str, Any]:
    """Everything that decides the results, as values that JSON can write."""
    computed = {
        str(name): name.shown
        for name in columns_named(spec)
        if isinstance(name, ColumnName) and name.computed
    }
    return {
        "time": spec.time,
        "keys": list(spec.keys),
        **({"columns": computed} if computed else {}),
        "policies": {name: _plain(value) for name, value in policy_arguments(spec).items()},
        # Lists, not objects: the order of the aggregates is the order of the columns.
        "windows": [[name, _plain_item(window)] for name, window in spec.windows],
        "aggregates": [[name, _plain_item(aggregate)] for name, aggregate in spec.aggregates],
    }


def columns_named(spec: QuerySpec) -> Iterator[str]:
    """The names of columns in a query, some of them more than once."""
    yield spec.time
    yield from spec.keys
    for _, aggregate in spec.aggregates:
        yield from (name for expr in aggregate.reads for name in expr.columns)
    for _, window in spec.windows:
        yield from (name for expr in window.inputs() for name in expr.columns)


def source_form(spec: QuerySpec) -> str:
    """The query as Python source, more or less as it was written."""

    def calls(items: tuple[tuple[str, Any], ...], package: str) -> str:
        return ", ".join(f"{name}={_source_item(item, package)}" for name, item in items)

    source = [f"mt.windows({calls(spec.windows, 'w')})"]
    if spec.aggregates:
        source.append(f"aggregate({calls(spec.aggregates, 'a')})")
    if spec.keys:
        source.append(f"by({', '.join(map(repr, spec.keys))})")
    if spec.time:
        policies = "".join(f", {name}={_source(value)}" for name, value in policy_arguments(spec).items())
        source.append(f"on({spec.time!r}{policies})")
    return ".".join(source)


def _plain_item(item: Any) -> dict[str, Any]:
    try:
        constructor, parameters = definition(item)
    except QueryError:
        constructor, parameters = _name(type(item)), _held(item)
    if (over := limits(item)) is not None:
        parameters = {**parameters, "over": over}
    return {"constructor": constructor, **{name: _plain(value) for name, value in parameters.items()}}


def _plain(value: object) -> Any:
    if isinstance(value, Micros):
        return format_span(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, numbers.Real | Decimal):
        return _plain_number(value)
    if isinstance(value, Expr):
        return value.text
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, types.MethodType):
        return [_name(value), _plain(value.__self__)]
    if callable(value) and hasattr(value, "__qualname__"):
        return _name(value)
    if hasattr(value, "parameters"):
        return _plain_item(value)
    if isinstance(value, functools.partial):
        return ["partial", _plain(value.func), _plain(value.args), _plain(value.keywords)]
    if type(value).__repr__ is not object.__repr__ and not dataclasses.is_dataclass(value):
        return repr(value)  # a date, a Decimal, an Arrow type: it says all
    return {"class": _name(type(value)), **{k: _plain(v) for k, v in _held(value).items()}}


def _plain_number(value: numbers.Real | Decimal) -> int | str:
    """The same for equal numbers, as queries are equal whose numbers are: 1, 1.0, Decimal("1.0") and True."""
    if not math.isfinite(value):
        return str(float(value))
    exact = Fraction(value)  # type: ignore[arg-type]  # typeshed does not know that it takes any real number
    return exact.numerator if exact.denominator == 1 else str(exact)


def _held(item: object) -> dict[str, object]:
    if dataclasses.is_dataclass(item):
        # Fields that do not count in comparisons, such as how an item is run, do not belong to the query.
        return {f.name: getattr(item, f.name) for f in dataclasses.fields(item) if f.compare and f.init}
    return dict(getattr(item, "__dict__", {}))


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _source_item(item: Any, package: str) -> str:
    try:
        constructor, parameters = definition(item)
    except QueryError:
        return f"{package}.{item.describe()}" if package == "a" else repr(item)
    arguments = ", ".join(_source_argument(name, value) for name, value in parameters.items())
    over = limits(item)
    limited = "" if over is None else f".over({', '.join(map(repr, over))})"
    return f"{package}.{constructor}({arguments}){limited}"


def _source_argument(name: str, value: object) -> str:
    # Files say `expression`, or `by_expression`, where Python has an Expr as `column`, or `by`.
    if name == "expression":
        return f"column=Expr({value!r})"
    if name.endswith("_expression"):
        return f"{name.removesuffix('_expression')}=Expr({value!r})"
    return f"{name}={_source(value)}"


def _source(value: object) -> str:
    if isinstance(value, Micros):
        return repr(format_span(value))
    if isinstance(value, Every):
        return f"mt.every({_source(value.period)})"
    if isinstance(value, OnChange):
        return "mt.on_change()"
    if isinstance(value, EachBatch):
        return "mt.each_batch()"
    if isinstance(value, Expr):
        return repr(value.column or value.text)
    if hasattr(value, "parameters"):
        return _source_item(value, "a")
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else repr(value)
