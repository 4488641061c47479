"""Computed inputs and conditions as Spark columns, with the types and the nulls of Arrow's expressions."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, and_, eq, ge, gt, invert, le, lt, methodcaller, mul, ne, neg, or_, sub
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as t
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_type

from muntin.expressions import Expr, types
from muntin.expressions.syntax import Node, render

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["UntranslatableError", "computes", "quoted", "to_column"]

_LOGIC: dict[str, Callable[..., Column]] = {
    "and": and_, "or": or_, "not": invert,
    "is None": methodcaller("isNull"), "is not None": methodcaller("isNotNull"),
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[..., Column]] = {
    "+": add, "-": sub, "*": mul, "negative": neg, "abs": f.abs, "float": lambda column: column,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip


class UntranslatableError(Exception):
    """An expression that has no counterpart in Spark with exactly the same meaning."""


def quoted(name: str) -> Column:
    """The column of this name, whatever characters it has."""
    escaped = name.replace("`", "``")
    return f.col(f"`{escaped}`")


def computes(expr: Expr) -> bool:
    """Whether the expression is more than a column."""
    return expr.column is None


def to_column(expr: Expr, schema: pa.Schema) -> Column:
    """The expression over a DataFrame whose columns have the types of this schema."""
    if expr.node is None:
        raise UntranslatableError
    return _Translation(schema).column(expr.node)


class _Translation:
    """Each step has its type in Arrow, so that numbers round and overflow at the same steps."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def type(self, node: Node) -> pa.DataType:
        """The type that the node has as an Arrow expression."""
        return types([Expr(render(node), node)], self.schema)[0]

    def column(self, node: Node) -> Column:
        """The node as a Spark column."""
        match node.head:
            case "col":
                return quoted(str(node.value))
            case "lit":
                return f.lit(node.value)
            case "in":
                return self._among(node)
            case "length" if self.type(node.args[0]) == pa.string():
                return f.length(self.column(node.args[0]))
            case head if head in _LOGIC:
                return _LOGIC[head](*map(self.column, node.args))
            case head if head in _COMPARISONS:
                return self._compared(node)
        return self._calculated(node)

    def _calculated(self, node: Node) -> Column:
        kind = self.type(node)
        if not _is_number(kind) or not all(_is_number(self.type(arg)) for arg in node.args):
            raise UntranslatableError
        if node.head == "/":  # Arrow makes a float of the dividend, be it exact or not
            return self.column(node.args[0]).cast("double") / self._widened(node.args[1], kind)
        operands, whole = [self._widened(arg, kind) for arg in node.args], t.is_integer(kind)
        match node.head:
            case head if head in _ARITHMETIC:
                return _ARITHMETIC[head](*operands)
            case "divide":
                return _whole_quotient(operands[0], operands[1], kind) if whole else operands[0] / operands[1]
            case "%" if whole and _is_positive(node.args[1]):
                return f.pmod(*operands)
            case "//" if whole and _is_positive(node.args[1]):
                return _whole_quotient(operands[0] - f.pmod(*operands), operands[1], kind)
        raise UntranslatableError

    def _widened(self, node: Node, kind: pa.DataType) -> Column:
        """The node as a number of this type; Arrow refuses integers that a float cannot represent."""
        own = self.type(node)
        inexact = t.is_integer(own) and t.is_floating(kind) and 2 * own.bit_width > kind.bit_width
        if inexact and node.head != "lit":
            raise UntranslatableError
        return self.column(node).cast(from_arrow_type(kind))

    def _compared(self, node: Node) -> Column:
        kinds = [self.type(arg) for arg in node.args]
        compare = _COMPARISONS[node.head]
        if not all(map(_is_number, kinds)):
            if kinds[0] != kinds[1] or not _is_comparable(kinds[0]):
                raise UntranslatableError
            return compare(*map(self.column, node.args))
        both = self.type(Node("+", node.args))
        left, right = (self._widened(arg, both) for arg in node.args)
        if not t.is_floating(both):
            return compare(left, right)
        # In Spark NaN is equal to itself and larger than all numbers, in Arrow it differs from all.
        unknown = left.isNull() | right.isNull()
        unordered = f.isnan(left) | f.isnan(right)
        return (
            f.when(unknown, f.lit(None).cast("boolean"))
            .when(unordered, f.lit(node.head == "!="))
            .otherwise(compare(left, right))
        )

    def _among(self, node: Node) -> Column:
        kind, values = self.type(node.args[0]), node.value
        assert isinstance(values, tuple)
        if t.is_floating(kind) or not (_is_number(kind) or _is_comparable(kind)):
            raise UntranslatableError
        column = self.column(node.args[0])
        some = [value for value in values if value is not None]
        among = f.coalesce(column.isin(some), f.lit(False)) if some else f.lit(False)
        return among | column.isNull() if None in values else among


def _whole_quotient(dividend: Column, divisor: Column, kind: pa.DataType) -> Column:
    return f.call_function("div", dividend, divisor).cast(from_arrow_type(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(t.is_integer(kind) or kind in (pa.float32(), pa.float64()))


def _is_comparable(kind: pa.DataType) -> bool:
    return bool(kind in (pa.string(), pa.bool_(), pa.date32()) or t.is_timestamp(kind))


def _is_positive(node: Node) -> bool:
    return node.head == "lit" and isinstance(node.value, int) and node.value > 0
