"""Predicates and computed inputs on one plain row, for the oracle.

Reads the text of an expression with Python's own parser and computes it value by
value, without Arrow. Nulls follow SQL: they make arithmetic and comparisons null,
and `and` / `or` follow three-valued logic.
"""

from __future__ import annotations

import ast
import datetime as dt
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from muntin.errors import DataError, QueryError, nearest

__all__ = ["evaluate"]

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": lambda value: type(value)(math.ceil(value)),
    "divide": lambda left, right: math.trunc(left / right) if isinstance(left, int) else left / right,
    "float": float,
    "floor": lambda value: type(value)(math.floor(value)),
    "length": len,
    "lower": str.lower,
    "milliseconds": lambda value: dt.timedelta(milliseconds=value),
    "round": round,
    "seconds": lambda value: dt.timedelta(seconds=value),
    "upper": str.upper,
}


def evaluate(expression: Any, row: Mapping[str, Any]) -> Any:
    """The value of an expression (an `Expr` or its text) for one row.

    >>> evaluate("price * 2 > 5 and side in ['buy']", {"price": 3, "side": "buy"})
    True
    >>> evaluate("price > 5 or side is None", {"price": None, "side": "buy"}) is None
    True
    """
    to_text = getattr(expression, "to_text", None)
    return _value(_parse(to_text() if to_text else str(expression)), row)


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(tree: ast.expr, row: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Name(id=name) | ast.Call(func=ast.Name(id="col"), args=[ast.Constant(value=str() as name)]):
            if name not in row:
                raise DataError(f'there is no column "{name}".{nearest(name, row)}')
            return row[name]
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, row)
            if value is None:
                return None
            return not value if isinstance(op, ast.Not) else -value
        case ast.BinOp(left=left, op=op, right=right):
            return _strict(_OPERATORS[type(op)], _value(left, row), _value(right, row))
        case ast.BoolOp(op=op, values=values):
            return _logic(isinstance(op, ast.And), [_value(item, row) for item in values])
        case ast.Compare(left=left, ops=ops, comparators=rights):
            pairs = zip([left, *rights[:-1]], ops, rights, strict=True)
            return _logic(True, [_compare(one, op, other, row) for one, op, other in pairs])
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return _strict(_FUNCTIONS[name], *(_value(arg, row) for arg in args))
    raise QueryError(f"the oracle cannot compute {ast.unparse(tree)}")


def _strict(function: Callable[..., Any], *values: Any) -> Any:
    """Null if any argument is null."""
    return None if None in values else function(*values)


def _compare(left: ast.expr, op: ast.cmpop, right: ast.expr, row: Mapping[str, Any]) -> Any:
    value, other = _value(left, row), right
    if isinstance(op, ast.Is | ast.IsNot):
        return (value is None) == isinstance(op, ast.Is)
    if isinstance(op, ast.In | ast.NotIn):
        return (value in ast.literal_eval(other)) == isinstance(op, ast.In)
    return _strict(_OPERATORS[type(op)], value, _value(other, row))


def _logic(conjunction: bool, values: list[Any]) -> Any:
    """Three-valued `and` (conjunction) or `or`: null is "unknown"."""
    decisive = not conjunction
    if decisive in values:
        return decisive
    return None if None in values else conjunction
