"""Symbolic values: a function that is called with symbols records its operations on them.

Python runs the function, so calls, tuples, loops and closures need no rules. A symbol has a rule for each
operation that compiled code computes as Python does, and refuses all others. The trace decides which branch
follows a condition on a symbol.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

__all__ = ["EXACT", "NATURAL", "NUMBERS", "REPLACED", "RefusedError", "Symbol", "cast", "kind_of"]

EXACT = 2**53
"""The largest integer up to which floats represent all integers exactly."""

_KINDS: dict[Any, str] = {bool: "bool", int: "int64", float: "float64"}
NUMBERS = {kind: number for number, kind in _KINDS.items()}
"""The Python types of the kinds of numbers that are compiled."""
_WIDER = {"bool": "int64", "int64": "float64"}


class RefusedError(Exception):
    """The reason why a function must stay in the interpreter."""


def _rules(*texts: str) -> dict[str, tuple[str, str]]:
    """Rules from `kind: expression` or `kind: expression -> kind of the result`."""
    rules: dict[str, tuple[str, str]] = {}
    for text in texts:
        kind, _, rest = text.partition(": ")
        expression, _, result = rest.partition(" -> ")
        rules[kind] = expression, result or kind
    return rules


_RULES: dict[str, dict[str, tuple[str, str]]] = {
    "add": _rules("int64: add_int({}, {})", "float64: {} + {}"),
    "sub": _rules("int64: sub_int({}, {})", "float64: {} - {}"),
    "mul": _rules("int64: mul_int({}, {})", "float64: {} * {}"),
    "truediv": _rules("int64: exact_float({}) / exact_float({}) -> float64", "float64: {} / {}"),
    "floordiv": _rules("int64: sub_int(0, {0}) if {1} == -1 else {0} // {1}", "float64: {} // {}"),
    "mod": _rules("int64: 0 if {1} == -1 else {0} % {1}", "float64: {} % {}"),
    "pow": _rules("float64: pow_float({}, {})"),
    "lshift": _rules("int64: lshift_int({}, {})"),
    "rshift": _rules("int64: rshift_int({}, {})"),
    "eq": _rules("int64: {} == {} -> bool", "float64: equal_float({}, {}) -> bool"),
    "neg": _rules("int64: sub_int(0, {})", "float64: -{}"),
    "pos": _rules("int64: {}", "float64: {}"),
    "invert": _rules("int64: ~{}"),
    "abs": _rules("int64: sub_int(0, {0}) if {0} < 0 else {0}", "float64: math.fabs({})"),
    "trunc": _rules("int64: {}", "float64: int(narrow({})) -> int64"),
    "floor": _rules("int64: {}", "float64: int(math.floor(narrow({}))) -> int64"),
    "ceil": _rules("int64: {}", "float64: int(math.ceil(narrow({}))) -> int64"),
    "round": _rules("int64: {}", "float64: int(round(narrow({}))) -> int64"),
    "bool": _rules("bool: {}", "int64: {} != 0 -> bool", "float64: {} != 0.0 -> bool"),
    "int": _rules("int64: {}", "float64: int(narrow({})) -> int64"),
    "float": _rules("float64: {}"),
}
"""For each operation, by the widest kind of its operands, the compiled expression."""

_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "ne": "!="}
_BITS = {"and_": "&", "or_": "|", "xor": "^"}
_TESTS = ("isnan", "isinf", "isfinite")
_OF_ONE = (
    "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "fabs", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh",
)  # fmt: skip
_OF_TWO = ("pow", "atan2", "copysign")
for _name, _sign in _COMPARISONS.items():
    _RULES[_name] = _rules(*(f"{kind}: {{}} {_sign} {{}} -> bool" for kind in ("int64", "float64")))
for _name, _sign in _BITS.items():
    _RULES[_name] = _rules(*(f"{kind}: {{}} {_sign} {{}}" for kind in ("bool", "int64")))
for _name, _sign in (("max", ">"), ("min", "<")):
    _RULES[_name] = _rules(*(f"{kind}: {{1}} if {{1}} {_sign} {{0}} else {{0}}" for kind in NUMBERS))
for _name in _TESTS:
    _RULES[f"math.{_name}"] = _rules(f"float64: math.{_name}({{}}) -> bool")
for _name in _OF_ONE:
    _RULES[f"math.{_name}"] = _rules(f"float64: defined(math.{_name}({{0}}), {{0}}, 0.0)")
for _name in _OF_TWO:
    _RULES[f"math.{_name}"] = _rules(f"float64: defined(math.{_name}({{0}}, {{1}}), {{0}}, {{1}})")


class Symbol:
    """A boolean, an integer of 64 bits or a float, of unknown value."""

    __slots__ = ("_kind", "_name", "_trace")

    def __init__(self, trace: Any, kind: str, name: str) -> None:
        self._trace, self._kind, self._name = trace, kind, name

    def __bool__(self) -> bool:
        truth: bool = self._trace.decide((self if self._kind == "bool" else _operation("bool", self))._name)
        return truth

    def __eq__(self, other: object) -> Any:
        if other is self and self._kind == "float64":  # never asked by a tuple: the two are one object
            return self._trace.record("bool", f"{self._name} == {self._name}")
        return _operation("eq", self, other)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if type(exponent) is int and exponent >= 0 and modulus is None and self._kind != "float64":
            return functools.reduce(operator.mul, [self] * exponent, 1)
        return _power(self, exponent, modulus)

    def __rpow__(self, base: Any, modulus: Any = None) -> Any:
        return _power(base, self, modulus)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __round__(self, digits: Any = None) -> Any:
        if digits is not None:
            raise RefusedError("round to digits is not compiled")
        return _operation("round", self)

    def __getattr__(self, name: str) -> Any:
        raise RefusedError(f"the attribute {name} is not compiled")

    def __index__(self) -> int:
        raise RefusedError("a place in a tuple, or a length, that is computed from a value is not compiled")

    def __hash__(self) -> int:
        raise RefusedError("a value in a set, or as a key of a dict, is not compiled")

    def __repr__(self) -> str:
        raise ValueError("a number as text is not compiled")

    def __format__(self, spec: str) -> str:
        return repr(self)


def _dunder(name: str, reflected: bool = False) -> Any:
    def method(self: Symbol, *others: Any) -> Any:
        return _operation(name, *others, self) if reflected else _operation(name, self, *others)

    return method


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift", *_BITS)
_UNARY = ("neg", "pos", "invert", "abs", "trunc", "floor", "ceil")
for _name in (*_BINARY, *_UNARY, *_COMPARISONS):
    setattr(Symbol, f"__{_name.strip('_')}__", _dunder(_name))
for _name in _BINARY:
    setattr(Symbol, f"__r{_name.strip('_')}__", _dunder(_name, reflected=True))


def kind_of(value: Any) -> str:
    """The kind of a symbol or of a number of Python; of anything else its type."""
    return value._kind if type(value) is Symbol else _KINDS.get(type(value), type(value).__name__)


def cast(value: Any, kind: str, exact: bool = False) -> str:
    """The expression for a symbol or a number as a value of the same or a wider kind."""
    if type(value) is not Symbol:
        if type(value) is int and (abs(value) >= 2**63 or (exact and abs(value) > EXACT)):
            raise RefusedError(f"the integer {value} is too large")
        return f"({NUMBERS[kind](value)!r})"
    if value._kind == kind:
        return value._name
    whole = f"int({value._name})" if value._kind == "bool" else value._name
    return whole if kind == "int64" else f"exact_float({whole})" if exact else f"float({whole})"


def _operation(name: str, *operands: Any) -> Any:
    """The symbol for an operation on symbols and numbers."""
    kinds = [kind_of(operand) for operand in operands]
    rules = _RULES[name]
    wanted = next((kind for kind in ("float64", "int64", "bool") if kind in kinds), "")
    while wanted in _WIDER and wanted not in rules:
        wanted = _WIDER[wanted]
    if wanted not in rules or not set(kinds) <= set(NUMBERS):
        raise RefusedError(f"{name}({', '.join(kinds)}) is not compiled")
    expression, result = rules[wanted]
    exact = name == "eq" or name in _COMPARISONS
    texts = [cast(operand, wanted, exact) for operand in operands]
    trace = next(operand._trace for operand in operands if type(operand) is Symbol)
    return trace.record(result, expression.format(*texts))


def _power(base: Any, exponent: Any, modulus: Any) -> Any:
    if modulus is not None:
        raise RefusedError("pow with three arguments is not compiled")
    if "float64" not in (kind_of(base), kind_of(exponent)):  # an integer or a float, by the sign
        raise RefusedError(f"pow({kind_of(base)}, {kind_of(exponent)}) is not compiled")
    return _operation("pow", base, exponent)


# --- functions ------------------------------------------------------------------------------------


def _replaced(original: Any, name: str) -> Any:
    """The function for symbols; for numbers, the original."""

    def function(*args: Any, **options: Any) -> Any:
        symbols = any(type(arg) is Symbol for arg in args)
        return _operation(name, *args) if symbols else original(*args, **options)

    return function


def _chosen(original: Any, name: str) -> Any:
    """`max` or `min`: one operation among numbers of one kind, branches among other values."""

    def function(*args: Any, **options: Any) -> Any:
        kinds = {kind_of(arg) for arg in args}
        one_kind = len(kinds) == 1 < len(args) and kinds <= set(NUMBERS) and not options
        if one_kind and any(type(arg) is Symbol for arg in args):
            return functools.reduce(functools.partial(_operation, name), args)
        return original(*args, **options)

    return function


_NAMED = {f"math.{name}": getattr(math, name) for name in _TESTS + _OF_ONE + _OF_TWO}
REPLACED: dict[Any, Any] = {original: _replaced(original, name) for name, original in _NAMED.items()}
REPLACED |= {kind: _replaced(kind, kind.__name__) for kind in (bool, int, float)}
REPLACED |= {max: _chosen(max, "max"), min: _chosen(min, "min")}
"""Replacements of functions that do not accept symbols, or branch on them without need."""

NATURAL = {
    abs, all, any, divmod, enumerate, len, list, pow, range, reversed, round, sorted, tuple, zip,
    math.floor, math.ceil, math.trunc, operator.not_, operator.truth, operator.pow, operator.ipow,
    *(getattr(operator, name) for name in (*_BINARY, *_COMPARISONS, "eq", "neg", "pos", "invert", "abs")),
    *(getattr(operator, f"i{name.strip('_')}") for name in _BINARY),
}  # fmt: skip
"""Functions that call the methods of symbols as they call those of numbers."""
