"""The small expression language: a safe subset of Python's expressions, never `eval`.

`parse_node` reads a text into a tree, `render` writes the text back. Names are
columns. The operators mean what they mean in Python, except that nulls follow
SQL: a comparison with null is null, and a null predicate counts as false.
"""

from __future__ import annotations

import ast
import functools
import keyword
from collections.abc import Iterable
from dataclasses import dataclass, field

from muntin.errors import QueryError, nearest, value_text

FUNCTIONS = {
    "abs": (1, 1),
    "ceil": (1, 1),
    "divide": (2, 2),  # Arrow's own division: integers truncate
    "float": (1, 1),
    "floor": (1, 1),
    "length": (1, 1),
    "lower": (1, 1),
    "milliseconds": (1, 1),
    "round": (1, 2),
    "seconds": (1, 1),
    "upper": (1, 1),
}
"""Function name -> fewest and most arguments."""

# `a // b` holds `a` twice once it is an Arrow expression, so nesting could blow up.
_MAX_SIZE = 1_000

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
_OTHER = {
    ast.Pow: "**", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^",
    ast.BitAnd: "&",
}  # fmt: skip
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

# How tightly each head binds, as in Python; calls, columns and literals bind tightest.
_BINDS = {"or": 1, "and": 2, "not": 3} | dict.fromkeys(
    ["<", "<=", ">", ">=", "==", "!=", "in", "is None", "is not None"], 4
)
_BINDS |= {"+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "negative": 7}
_TIGHTEST = 8

_EXAMPLE = """write for example "price < 10 and side == 'buy'\""""
_LANGUAGE = (
    "there are names of columns, numbers, texts, + - * / // %, comparisons, and, or, not, in [...], "
    f"is None, and the functions {', '.join(FUNCTIONS)}"
)

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: its head ("col", "lit", an operator, a function) and arguments."""

    head: str
    args: tuple[Node, ...] = ()
    value: Value | tuple[Value, ...] = None
    size: int = field(default=1, compare=False, repr=False)

    def same(self, other: Node) -> bool:
        """Equal also in the types of its literals, where `==` takes 1, 1.0 and True for one."""
        return repr(self) == repr(other)


def parse_node(text: object) -> Node:
    """Read one expression; a QueryError says what is wrong and where."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f'an expression must be a text like "price < 10": got {value_text(text)}')
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _Reader(text.strip()).read(tree.body)
    except SyntaxError as error:
        at = error.offset or 0
        ends = at == 0 or at > len(text.strip())
        problem = "it ends too early" if ends else f"{error.msg} at position {at}"
        if "digits" in error.msg:  # of an integer, for which Python has a limit
            problem = "integers must fit into 64 bits, and one has thousands of digits"
        raise QueryError(f'cannot read the expression "{_shortened(text)}": {problem}; {_EXAMPLE}') from None
    except (RecursionError, MemoryError, ValueError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(
            f'cannot read the expression "{text[:60]}...": it is too deeply nested, or has a number of '
            "thousands of digits; integers must fit into 64 bits"
        ) from None


def _shortened(text: str) -> str:
    return text if len(text) <= 400 else f"{text[:397]}..."


def columns_of(node: Node) -> tuple[str, ...]:
    """The columns that the expression reads, each once, in order of appearance."""
    if node.head == "col":
        name: str = node.value  # type: ignore[assignment]  # a leaf may hold any literal, but not this one
        return (name,)
    return tuple(dict.fromkeys(name for arg in node.args for name in columns_of(arg)))


def render(node: Node) -> str:
    """The text of a tree, which `parse_node` reads back, with as few parentheses as Python needs.

    >>> render(parse_node("(a+1) * 2 < b  and not(c is None)"))
    '(a + 1) * 2 < b and not c is None'
    """
    head = node.head
    if head == "col":
        name = str(node.value)
        return name if name.isidentifier() and not keyword.iskeyword(name) else f"col({name!r})"
    if head == "lit":
        return repr(node.value)
    if head in FUNCTIONS:
        return f"{head}({', '.join(render(arg) for arg in node.args)})"
    binds = _BINDS[head]
    first = _operand(node.args[0], binds)
    if head == "in":
        assert isinstance(node.value, tuple)
        return f"{_operand(node.args[0], binds + 1)} in [{', '.join(map(repr, node.value))}]"
    if head in ("is None", "is not None"):
        return f"{_operand(node.args[0], binds + 1)} {head}"
    if head == "not":
        return f"not {first}"
    if head == "negative":
        return f"-{first}"
    if binds == _BINDS["<"]:  # a < b < c is a chain, not (a < b) < c
        first = _operand(node.args[0], binds + 1)
    return f"{first} {head} {_operand(node.args[1], binds + 1)}"


def _operand(node: Node, binds: int) -> str:
    text = render(node)
    own = _BINDS.get(node.head, _TIGHTEST)
    if node.head == "lit" and text.startswith("-"):
        own = _BINDS["negative"]
    return text if own >= binds else f"({text})"


class _Reader:
    """Converts Python's syntax tree to nodes; a QueryError for everything that is not in the language."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, tree: ast.expr) -> Node:
        match tree:
            case ast.Name(id=name):
                return Node("col", value=name)
            case ast.Constant():
                return self._literal(tree)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if (
                not isinstance(number, bool)
            ):
                return Node("lit", value=self._value(tree))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._node(tree, "negative", self.read(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._node(tree, "not", self.read(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._node(tree, _BINARY[type(op)], self.read(left), self.read(right))
            case ast.BoolOp(op=op, values=values):
                return self._fold(tree, "and" if isinstance(op, ast.And) else "or", map(self.read, values))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                lefts = [left, *rights[:-1]]
                tests = [self._compare(tree, *test) for test in zip(lefts, ops, rights, strict=True)]
                return self._fold(tree, "and", tests)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(tree, name, args)
        raise self._refused(tree, f"{_thing(tree)} is not part of the expression language; {_LANGUAGE}")

    def _node(self, tree: ast.expr, head: str, *args: Node) -> Node:
        size = 1 + sum(arg.size for arg in args) + (args[0].size + args[1].size if head == "//" else 0)
        if size > _MAX_SIZE:
            raise self._refused(tree, "the expression is too large")
        return Node(head, args, size=size)

    def _fold(self, tree: ast.expr, head: str, nodes: Iterable[Node]) -> Node:
        return functools.reduce(lambda left, right: self._node(tree, head, left, right), nodes)

    def _literal(self, tree: ast.Constant) -> Node:
        value = tree.value
        if value is None:
            raise self._refused(tree, 'None can only be tested with "is None" or "is not None"')
        return Node("lit", value=self._value(tree))

    def _value(self, tree: ast.expr) -> Value:
        match tree:
            case ast.Constant(value=bool() | str() | None as value):
                return value
            case ast.Constant(value=int() | float() as number):
                return self._number(tree, number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if (
                not isinstance(number, bool)
            ):
                return self._number(tree, -number)
        raise self._refused(tree, "only numbers, texts, True, False and None are literals")

    def _number(self, tree: ast.expr, number: int | float) -> int | float:
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            raise self._refused(tree, "integers must fit into 64 bits; write a float, like 1e30")
        if abs(number) == float("inf"):
            raise self._refused(tree, "the number is too large")
        return number

    def _compare(self, tree: ast.expr, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Node:
        if isinstance(op, ast.Is | ast.IsNot):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise self._refused(right, '"is" only tests for None; use == or != for values')
            return self._node(tree, "is None" if isinstance(op, ast.Is) else "is not None", self.read(left))
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.List | ast.Tuple | ast.Set):
                raise self._refused(right, '"in" needs a list of literals like ["a", "b"]')
            values = tuple(self._value(item) for item in right.elts)
            if len({type(value) for value in values if value is not None}) > 1:
                raise self._refused(right, "the values of a list must be of one type")
            node = Node("in", (self.read(left),), values)
            return self._node(tree, "not", node) if isinstance(op, ast.NotIn) else node
        return self._node(tree, _COMPARE[type(op)], self.read(left), self.read(right))

    def _call(self, tree: ast.expr, name: str, args: list[ast.expr]) -> Node:
        if name == "col":
            if len(args) == 1 and isinstance(args[0], ast.Constant) and isinstance(args[0].value, str):
                return Node("col", value=args[0].value)
            raise self._refused(tree, 'col takes the name of a column, col("my column")')
        if name not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise self._refused(tree, f"there is no function {name}; use {known}.{nearest(name, FUNCTIONS)}")
        fewest, most = FUNCTIONS[name]
        if not fewest <= len(args) <= most:
            number = fewest if fewest == most else f"{fewest} or {most}"
            raise self._refused(tree, f"{name} takes {number} argument(s), not {len(args)}")
        nodes = [self.read(arg) for arg in args]
        if name == "round" and len(nodes) == 2 and type(nodes[1].value) is not int:
            raise self._refused(args[1], "round takes a whole number of digits")
        return self._node(tree, name, *nodes)

    def _refused(self, tree: ast.expr, why: str) -> QueryError:
        before = self.text.encode()[: tree.col_offset].decode()  # Python counts bytes
        return QueryError(
            f'cannot read the expression "{_shortened(self.text)}" at position {len(before) + 1}: {why}'
        )


def _thing(tree: ast.expr) -> str:
    names = {
        ast.Call: "this call", ast.Attribute: "an attribute (a.b)", ast.Subscript: "a subscript (a[b])",
        ast.Lambda: "a lambda", ast.IfExp: "a conditional", ast.JoinedStr: "an f-string",
    }  # fmt: skip
    if isinstance(tree, ast.BinOp):
        return f"the operator {_OTHER[type(tree.op)]}"
    return names.get(type(tree), f"this ({type(tree).__name__})")
