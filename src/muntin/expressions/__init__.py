"""Columns, predicates and computed inputs: texts or Arrow expressions, hashable by text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from keyword import iskeyword
from typing import TYPE_CHECKING, TypeAlias, Union

import pyarrow as pa

from muntin.errors import ColumnError, DataError, QueryError, nearest, value_text
from muntin.expressions.foreign import plain_name
from muntin.expressions.syntax import FUNCTIONS, Node, columns_of, parse_node, render

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = ["ColumnLike", "Expr", "as_expr", "as_predicate", "evaluate", "parse", "types"]


@dataclass(frozen=True)
class Expr:
    """An expression over the columns of a batch; equal when its text is equal.

    `Expr(text)` reads the small expression language (see `parse`); `as_expr` also
    takes Arrow expressions and plain column names.

    >>> Expr("price*2 > cost") == Expr("price * 2 > cost")
    True
    >>> Expr("price * 2 > cost").columns
    ('price', 'cost')
    """

    text: str
    node: Node | None = field(default=None, compare=False, repr=False)
    arrow: pc.Expression | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.node is None and self.arrow is None:
            node = parse_node(self.text)
            object.__setattr__(self, "node", node)
            object.__setattr__(self, "text", render(node))

    @cached_property
    def column(self) -> str | None:
        """The name, when the expression is nothing but a column."""
        return str(self.node.value) if self.node is not None and self.node.head == "col" else None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it reads."""
        if self.node is not None:
            return columns_of(self.node)
        from muntin.expressions.arrow import describe

        return describe(self.arrow)[1]

    @cached_property
    def expression(self) -> pc.Expression:
        """The same as an Arrow compute expression."""
        if self.node is None:
            return self.arrow
        from muntin.expressions.arrow import to_arrow

        return to_arrow(self.node)

    def to_text(self) -> str:
        """Text that `parse` reads back; a QueryError if the small language cannot say it."""
        if self.node is None:
            raise QueryError(
                f"the expression {self.text} has no text form; use operators, comparisons and the "
                f"functions {', '.join(FUNCTIONS)} only"
            )
        return self.text

    def __str__(self) -> str:
        return self.text


ColumnLike: TypeAlias = Union[str, Expr, "pc.Expression"]
"""What users may write for a column: its name, an Arrow expression, an `Expr`; for Spark also a `Column`."""


def as_expr(value: ColumnLike, name: str = "column") -> Expr:
    """An `Expr` from a column's name (any text), an Arrow expression or an `Expr`.

    >>> as_expr("unit price").text
    "col('unit price')"
    """
    if isinstance(value, Expr):
        return value
    if not isinstance(value, str):
        value = plain_name(value)
    if isinstance(value, str):
        if not value:
            raise QueryError(f"{name} must be the name of a column: got an empty text")
        node = Node("col", value=value)
        is_own_text = value.isidentifier() and not iskeyword(value)
        return Expr(str(value) if is_own_text else render(node), node)
    import pyarrow.compute as pc

    if isinstance(value, pc.Expression):
        from muntin.expressions.arrow import describe, from_arrow

        known = from_arrow(value)
        return Expr(render(known), known) if known else Expr(describe(value)[0], arrow=value)
    raise QueryError(
        f'{name} must be the name of a column or an expression like mt.col("price") * 2: '
        f"got {value_text(value)}"
    )


def as_predicate(value: ColumnLike, name: str = "predicate") -> Expr:
    """A condition: an Arrow expression, or text in the small expression language.

    >>> as_predicate("price < 10").columns
    ('price',)
    """
    return parse(value) if isinstance(value, str) else as_expr(value, name)


def parse(text: str) -> Expr:
    """Read the small expression language: `price * 2 < 10 and side == "buy"`.

    Columns by name (`col("my column")` for odd names), numbers, texts, True and
    False; + - * / // %, comparisons, and, or, not, `in [...]`, `is None`, and the
    functions abs, ceil, divide, float, floor, length, lower, milliseconds, round, seconds, upper.
    As in Python `/` gives a fraction; `divide` is Arrow's division, which
    truncates integers, and is what `mt.col("a") / mt.col("b")` means. `seconds` and
    `milliseconds` make durations of integers.
    """
    return Expr(text)


def evaluate(exprs: Sequence[Expr], batch: pa.RecordBatch | pa.Table) -> list[pa.Array]:
    """The value of every expression for every row; a plain column costs nothing."""
    result = [None if expr.column is None else _column(expr, batch) for expr in exprs]
    computed = [i for i, array in enumerate(result) if array is None]
    if computed:
        for i in computed:
            _check_columns(exprs[i], batch.schema)
        for i, array in zip(computed, _project([exprs[i] for i in computed], batch), strict=True):
            result[i] = array
    return result


def types(exprs: Sequence[Expr], schema: pa.Schema) -> list[pa.DataType]:
    """The type that every expression has over columns of this schema."""
    return [array.type for array in evaluate(exprs, schema.empty_table())]


_OPERATORS = re.compile(r"[-+*/%<>=()]")
_EXPRESSION = (
    ' If it is an expression: in Python write mt.col("price") * 2, in a query file expression = "price * 2"'
)


def _column(expr: Expr, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    try:
        return _array(batch.column(expr.column))
    except KeyError:
        _check_columns(expr, batch.schema)
        raise


def _check_columns(expr: Expr, schema: pa.Schema) -> None:
    for name in expr.columns:
        indices = schema.get_all_field_indices(name)
        if len(indices) != 1:
            problem = "there is no column" if not indices else "there is more than one column"
            within = "" if expr.column else f" (in {expr.text})"
            raise ColumnError(
                f'{problem} "{name}"{within}; the columns are {", ".join(schema.names) or "none"}.'
                + ("" if indices else nearest(name, schema.names))
                + (_EXPRESSION if expr.column and not indices and _OPERATORS.search(name) else "")
            )


def _project(exprs: list[Expr], batch: pa.RecordBatch | pa.Table) -> list[pa.Array]:
    from pyarrow import acero

    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    needed = list(dict.fromkeys(name for expr in exprs for name in expr.columns))
    # An expression without columns still needs the number of rows.
    table = table.select(needed or table.column_names)
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    names = [str(i) for i in range(len(exprs))]
    options = acero.ProjectNodeOptions([expr.expression for expr in exprs], names)
    try:
        # One thread: the rows must keep their order.
        plan = acero.Declaration("project", options, [source])
        projected = plan.to_table(use_threads=False)
    except (pa.ArrowException, TypeError, NotImplementedError) as error:
        if len(exprs) > 1:  # find the one to blame
            return [_project([expr], batch)[0] for expr in exprs]
        from muntin.expressions.arrow import failure

        raise DataError(failure(exprs[0].text, exprs[0].columns, table.schema, error)) from error
    return [_array(column) for column in projected.columns]


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
