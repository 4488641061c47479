"""Each operation and call of Python in compiled functions: its results, bit by bit, or no compilation."""

import itertools
import math
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muntin.aggregates.compiling.fold_kernels import build
from muntin.aggregates.compiling.reading import Reading
from muntin.aggregates.compiling.symbols import RefusedError
from muntin.aggregates.compiling.tracing import trace
from muntin.aggregates.partials.functions import Functions

sys.path.insert(0, str(Path(__file__).parent))
from bitwise import bits  # beside this file, not installed

INTS = [
    0,
    1,
    -1,
    2,
    -3,
    7,
    63,
    64,
    -64,
    2**31,
    2**53 - 1,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-300, 3.7, 2.0**53, 2.0**63, -(2.0**63), 1e300]
FLOATS += [math.inf, -math.inf, math.nan, 9007199254740993.0, 4503599627370497.5]
ARGUMENTS = {"int64": INTS, "float64": FLOATS, "bool": [False, True]}

LAST_DIGIT = {"pow", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
              "atan", "sinh", "cosh", "tanh", "atan2", "squared"}  # fmt: skip
"""Functions that the C library and the compiler may round differently in the last digit."""

UNARY: list[Callable[[Any], Any]] = [
    operator.neg, operator.pos, operator.invert, operator.not_, abs, bool, float, int, round,
    math.floor, math.ceil, math.trunc, math.sqrt, math.exp, math.expm1, math.log, math.log2, math.log10,
    math.log1p, math.fabs, math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.sinh,
    math.cosh, math.tanh, math.isnan, math.isinf, math.isfinite,
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, pow,
    max, min, divmod, math.atan2, math.copysign, math.pow,
]  # fmt: skip
OPERATOR_POW = operator.pow


def compiled(function: Any, kinds: tuple[str, ...]) -> Any:
    """The function as it runs in compiled code; None where it is not compiled for these kinds."""
    functions = Functions("operation", function, combine=lambda p, q: p)
    try:
        code = trace(functions, kinds, Reading())
    except RefusedError:
        return None

    def call(*args: Any) -> Any:
        out = code.form.zeros(1)
        values = tuple(np.array([arg], dtype=kind) for arg, kind in zip(args, kinds, strict=True))
        build(code).lift_each(values, np.array([0]), (np.zeros(1, np.int64), *out.columns))
        return out.tolist()[0]

    return call


def check(function: Any, kinds: tuple[str, ...]) -> bool:
    """Compare the compiled function with Python's over all arguments; False if it is not compiled."""
    fast = compiled(function, kinds)
    if fast is None:
        return False
    agreed = 0
    for args in itertools.product(*(ARGUMENTS[kind] for kind in kinds)):
        try:
            found = fast(*args)
        except (ArithmeticError, ValueError):
            continue  # the interpreter is asked
        want = function(*args)  # which must not raise where compiled code does not
        if function.__name__ in LAST_DIGIT and isinstance(want, float) and math.isfinite(want):
            assert math.isclose(found, want, rel_tol=1e-15), (function, args, found, want)
        else:
            assert bits(found) == bits(want), (function, args, found, want)
        agreed += 1
    assert agreed > 0
    return True


def squared(x: Any) -> Any:
    return x**2


def halved(x: Any) -> Any:
    return x**0.5


@pytest.mark.parametrize(
    "function", [operator.add, operator.mul, operator.floordiv, operator.lt, round, squared]
)
def test_some_operations_are_pythons(function: Any) -> None:
    arity = 1 if function in (round, squared) else 2
    assert check(function, ("int64",) * arity)
    assert check(function, ("float64",) * arity)


@pytest.mark.deep
@pytest.mark.parametrize("function", [*UNARY, squared, halved], ids=lambda f: f.__name__)
def test_every_unary_operation_is_pythons(function: Any) -> None:
    assert sum(check(function, (kind,)) for kind in ARGUMENTS) > 0


@pytest.mark.deep
@pytest.mark.parametrize("function", [f for f in BINARY if f is not pow], ids=lambda f: f.__name__)
def test_every_binary_operation_is_pythons(function: Any) -> None:
    assert sum(check(function, kinds) for kinds in itertools.product(ARGUMENTS, repeat=2)) > 0


@pytest.mark.deep
def test_powers_of_variables() -> None:
    assert check(OPERATOR_POW, ("float64", "float64"))
    assert not check(OPERATOR_POW, ("int64", "int64"))  # an integer or a float, by the sign
