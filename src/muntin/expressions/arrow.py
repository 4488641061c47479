"""Between the small expression language and Arrow's compute expressions.

Arrow has no functions to inspect an expression, but its pickled form is an Arrow
file whose schema metadata lists the calls, fields and literals in order. Reading
that list keeps what `str(expression)` loses, such as 2 against 2.0 in `qty / 2`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.errors import QueryError
from muntin.expressions.syntax import Node, Value, parse_node, render

if TYPE_CHECKING:
    import pyarrow.compute as pc

# Checked variants only: an overflow is an error, never a wrap.
_CALLS = {
    "+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "%": "modulo_checked",
    "divide": "divide_checked", "negative": "negate_checked", "abs": "abs_checked",
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
    "and": "and_kleene", "or": "or_kleene", "not": "invert", "is not None": "is_valid",
    "floor": "floor", "ceil": "ceil", "lower": "utf8_lower", "upper": "utf8_upper", "length": "utf8_length",
}  # fmt: skip
_HEADS = {call: head for head, call in _CALLS.items()}
# Arrow's unchecked variants read as the checked ones.
_HEADS |= {call.removesuffix("_checked"): head for head, call in _CALLS.items()}


def operator_of(call: str) -> str:
    """The operator or function of the small language for a function of Arrow.

    >>> operator_of("greater"), operator_of("and_kleene"), operator_of("bit_length")
    ('>', 'and', 'bit_length')
    """
    return {"negative": "-"}.get(head := _HEADS.get(call, call), head)


_WRAPPING = ("abs", "add", "divide", "multiply", "negate", "power", "shift_left", "subtract")
"""Functions of Arrow that wrap around on overflow; each has a variant with "_checked"."""

_DURATIONS = {"seconds": pa.duration("s"), "milliseconds": pa.duration("ms")}
_LITERALS = (pa.int64(), pa.float64(), pa.string(), pa.bool_())
_LINE = re.compile(r"^(call|field_ref|nested_field_ref|literal|options|end): '(.*)'$", re.MULTILINE)
_MATCH_NULLS = 0  # SetLookupOptions::MATCH
_HALF_TO_EVEN = 8  # RoundMode::HALF_TO_EVEN


def to_arrow(node: Node, as_written: bool = False) -> pc.Expression:
    """The Arrow expression of a tree, with numbers that keep their type unless wanted `as_written`.

    Arrow takes a literal for the smallest type that holds it: `x * 0.5` would be computed in 32 bits,
    and refused for integers above 2**24, `x * 0.1` in 64. So literals with a point are cast, which
    Arrow leaves alone. Integers may shrink: arithmetic stays in the type of the column.
    """
    import pyarrow.compute as pc

    if node.head == "col":
        return pc.field(node.value)
    if node.head == "lit":
        literal = pc.scalar(node.value)
        return literal.cast(pa.float64()) if isinstance(node.value, float) and not as_written else literal
    first, *rest = (to_arrow(arg, as_written) for arg in node.args)
    match node.head:
        case "in":
            assert isinstance(node.value, tuple)
            return first.isin(pa.array(node.value))
        case "is None":
            return first.is_null()
        case "float":
            return first.cast(pa.float64())
        case "seconds" | "milliseconds":
            return first.cast(_DURATIONS[node.head])
        case "round":
            return pc.round(first, ndigits=node.args[1].value if rest else 0)
        case "/":  # Python's division: two integers give a fraction
            return pc.divide_checked(first.cast(pa.float64(), safe=False), rest[0])
        case "//":  # exact for integers; the rounding takes the last bit of noise from floats
            rest_of = _function("modulo_checked")(first, rest[0])
            return pc.round(pc.divide_checked(pc.subtract_checked(first, rest_of), rest[0]))
    return _function(_CALLS[node.head])(first, *rest)


def _function(name: str) -> Callable[..., pc.Expression]:
    import pyarrow.compute as pc

    try:
        return getattr(pc, name)  # type: ignore[no-any-return]  # pyarrow has no types
    except AttributeError:
        raise QueryError(
            f'pyarrow {pa.__version__} has no function "{name}"; % and // need a newer pyarrow'
        ) from None


def from_arrow(expression: pc.Expression) -> Node | None:
    """The tree of an Arrow expression, None where the small language cannot say it."""
    table = _unpack(expression)
    tokens = iter(_LINE.findall(table.schema.to_string(truncate_metadata=False)))
    try:
        node = _read(next(tokens), tokens, table)
        # Names with quotes or line ends may fool the reading above; then the text would differ.
        return node if parse_node(render(node)).same(node) and _reads_same(node, expression) else None
    except (_UnsaidError, StopIteration, QueryError, RecursionError):
        return None


def describe(expression: pc.Expression) -> tuple[str, tuple[str, ...]]:
    """A text that differs for different expressions, and the columns that the expression reads."""
    table = _unpack(expression)
    schema = table.schema.to_string(truncate_metadata=False)
    for kind, call in _LINE.findall(schema):
        if kind == "call" and call in _WRAPPING:
            raise QueryError(
                f"the expression {expression} must not wrap around: it calls {call}; "
                f"use {call}_checked or an operator such as *"
            )
    exact = f"{schema}{[column.to_pylist() for column in table.columns]}"
    digest = hashlib.sha256(exact.encode()).hexdigest()[:8]
    return f"{' '.join(str(expression).split())} #{digest}", _columns(_LINE.findall(schema))


class _UnsaidError(Exception):
    """Something that the small language has no words for."""


def _unpack(expression: pc.Expression) -> pa.Table:
    return pa.ipc.open_file(expression.__reduce__()[1][0]).read_all()


def _columns(tokens: list[tuple[str, str]]) -> tuple[str, ...]:
    names, inside = [], 0
    for kind, value in tokens:
        if kind == "nested_field_ref":
            names.append(tokens[tokens.index((kind, value)) + 1][1])
            inside = int(value)
        elif kind == "field_ref":
            if inside:
                inside -= 1
            else:
                names.append(value)
    return tuple(dict.fromkeys(names))


def _read(token: tuple[str, str], tokens: Iterator[tuple[str, str]], table: pa.Table) -> Node:
    kind, text = token
    if kind == "field_ref":
        return Node("col", value=text)
    if kind == "literal":
        return Node("lit", value=_literal(table.column(int(text))))
    if kind != "call":
        raise _UnsaidError
    args: list[Node] = []
    options: dict[str, object] = {}
    types: pa.DataType | None = None
    for kind, value in tokens:
        if kind == "end":
            break
        if kind == "options":
            column = table.column(int(value))
            options, types = column[0].as_py(), column.type
        else:
            args.append(_read((kind, value), tokens, table))
    return _call(text, tuple(args), options, types)


def _call(call: str, args: tuple[Node, ...], options: dict[str, object], types: pa.DataType | None) -> Node:
    if call in _HEADS:
        return Node(_HEADS[call], args)
    if call == "is_null" and not options["nan_is_null"]:
        return Node("is None", args)
    if call == "round" and options["round_mode"] == _HALF_TO_EVEN:
        digits = options["ndigits"]
        assert isinstance(digits, int)
        return Node("round", (*args, Node("lit", value=digits)) if digits else args)
    if call == "is_in" and options["null_matching_behavior"] == _MATCH_NULLS:
        assert types is not None
        values = options["value_set"]
        if types.field("value_set").type.value_type in _LITERALS and isinstance(values, list):
            return Node("in", args, tuple(values))
    if call == "cast" and types is not None:
        casts = {"float": pa.float64(), **_DURATIONS}
        for name, kind in casts.items():
            if types.field("to_type").type == kind:
                return Node(name, args)
    raise _UnsaidError


def _literal(column: pa.ChunkedArray) -> Value:
    value: Value = column[0].as_py()
    if column.type not in _LITERALS or value is None:
        raise _UnsaidError
    return value


def _reads_same(node: Node, expression: pc.Expression) -> bool:
    # Arrow writes a checked and an unchecked call differently; nothing else may differ.
    mine, theirs = (str(e).replace("_checked", "") for e in (to_arrow(node, as_written=True), expression))
    return mine == theirs


_NO_KERNEL = re.compile(r"Function '(\w+)' has no kernel matching input types \((.*)\)")
_NO_MEMBER = re.compile(r"Array type doesn't match type of values set: (\S+) vs (\S+)")

_ONE_KIND = "both sides must be of one kind (texts stand in quotes, numbers and True or False without)"
_CURES = {
    "divide by zero": "leave the tuples out where the divisor is 0, or make it null there",
    "overflow": "cast the column to float64 or to a decimal",
}


def failure(text: str, columns: tuple[str, ...], schema: pa.Schema, error: Exception) -> str:
    """The message: the expression, the types of its columns, what does not fit, and the cure.

    >>> error = pa.ArrowInvalid("Function 'greater' has no kernel matching input types (string, int8)")
    >>> failure("kind > 5", ("kind",), pa.schema({"kind": pa.string()}), error)
    'cannot compute "kind > 5" (kind is string): ">" does not take string and int8; both sides must be of \
one kind (texts stand in quotes, numbers and True or False without), or cast the column'
    """
    kinds = ", ".join(f"{name} is {schema.field(name).type}" for name in columns)
    problem, cure = _problem(str(error))
    return f'cannot compute "{text}"{f" ({kinds})" if kinds else ""}: {problem}; {cure}'


def _problem(message: str) -> tuple[str, str]:
    if match := _NO_KERNEL.search(message):
        types = re.split(r", (?![^<]*>)", match[2])
        cure = f"{_ONE_KIND}, or cast the column" if len(types) > 1 else "cast the column"
        return f'"{operator_of(match[1])}" does not take {" and ".join(types)}', cure
    if match := _NO_MEMBER.search(message):
        return f'"in" does not find {match[2]} among {match[1]}', _ONE_KIND
    for words, cure in _CURES.items():
        if words in message:
            return words, cure
    return message, "check the types of the columns"
