"""Functions that give in compiled code what they give in Python, or raise.

`CHECKED` names all that a compiled function may call; what is not in it runs in the interpreter.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from numba import njit, types

from muntin.aggregates.compiling.arithmetic_kernels import (
    CHECKED,
    checked,
    is_number,
    is_whole,
    minus,
    plus,
    real,
)

# --- conversions ------------------------------------------------------------------------------


@checked(bool, operator.truth)
def _bool(x: Any) -> Any:
    return (lambda x: bool(x)) if is_number(x) else None


@checked(float)
def _float(x: Any) -> Any:
    return (lambda x: real(x)) if is_number(x) else None


@njit(nogil=True)
def _fitting(x: float) -> int:
    """A whole float as an integer."""
    if not -(2.0**63) <= x < 2.0**63:  # NaN is not, either
        raise OverflowError("a float beyond 64-bit integers")
    return int(x)


@checked(int, math.trunc)
def _int(x: Any) -> Any:
    if is_whole(x):
        return lambda x: plus(x, 0)
    return (lambda x: _fitting(x)) if is_number(x) else None


@checked(math.floor)
def _floor(x: Any) -> Any:
    if is_whole(x):
        return lambda x: plus(x, 0)
    return (lambda x: _fitting(_down(x))) if is_number(x) else None


@checked(math.ceil)
def _ceil(x: Any) -> Any:
    if is_whole(x):
        return lambda x: plus(x, 0)
    return (lambda x: _fitting(-_down(-x))) if is_number(x) else None


@njit(nogil=True)
def _down(x: float) -> float:
    """The floor as a float: Numba's own goes through 64 bits, whatever they can hold."""
    if not abs(x) < 2.0**52:  # there are no fractions up there
        return x
    whole = float(int(x))
    return whole - 1.0 if whole > x else whole


@checked(round)
def _round(x: Any) -> Any:
    if is_whole(x):
        return lambda x: plus(x, 0)
    return (lambda x: _fitting(_nearest(x))) if is_number(x) else None


@njit(nogil=True)
def _nearest(x: float) -> float:
    """Halves go to the even neighbour."""
    low = _down(x)
    part = x - low
    if part > 0.5 or (part == 0.5 and low % 2.0 == 1.0):
        return low + 1.0
    return low


# --- choices ----------------------------------------------------------------------------------


@checked(abs, operator.abs)
def _abs(x: Any) -> Any:
    if is_whole(x):
        return lambda x: minus(0, x) if x < 0 else plus(x, 0)
    return (lambda x: math.fabs(x)) if is_number(x) else None


def _alike(*kinds: Any) -> bool:
    """Whether a choice among them has one type; an integer that is written out may be a float."""
    floats = [kind for kind in kinds if isinstance(kind, types.Float)]
    if not floats:
        return is_whole(*kinds) and len({types.unliteral(kind) for kind in kinds}) == 1
    rest = [kind for kind in kinds if kind not in floats]
    return all(isinstance(kind, types.IntegerLiteral) for kind in rest)


def _choice(original: Any, choose: Any) -> None:
    better = njit(nogil=True)(choose)

    @checked(original)
    def _of(a: Any, b: Any, c: Any = None) -> Any:
        kinds = [a, b] if c is None or isinstance(c, types.Omitted | types.NoneType) else [a, b, c]
        if not is_number(*kinds) or not _alike(*kinds):
            return None
        if len(kinds) == 2:
            return lambda a, b, c=None: better(a, b)
        return lambda a, b, c=None: better(better(a, b), c)


# Numba's own look at NaN in another way. Of equal ones Python takes the first.
_choice(max, lambda a, b: b if b > a else a)  # noqa: FURB136
_choice(min, lambda a, b: b if b < a else a)  # noqa: FURB136


@checked(divmod)
def _divmod(a: Any, b: Any) -> Any:
    quotient, remainder = CHECKED[operator.floordiv], CHECKED[operator.mod]
    return (lambda a, b: (quotient(a, b), remainder(a, b))) if is_number(a, b) else None


# --- mathematics: where there is no result, Python raises and compiled code gives NaN or infinity


def _function(original: Any) -> None:
    @checked(original)
    def _of(x: Any) -> Any:
        def compute(x: Any) -> Any:
            argument = real(x)
            result = original(argument)
            if math.isnan(result) and not math.isnan(argument):
                raise ValueError("math domain error")
            if math.isinf(result) and math.isfinite(argument):
                raise OverflowError("math range error")
            return result

        return compute if is_number(x) else None


for _original in (
    math.sqrt, math.exp, math.expm1, math.log, math.log2, math.log10, math.log1p, math.fabs,
    math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh,
):  # fmt: skip
    _function(_original)


def _function_of_two(original: Any) -> None:
    @checked(original)
    def _of(x: Any, y: Any) -> Any:
        def compute(x: Any, y: Any) -> Any:
            a, b = real(x), real(y)
            result = original(a, b)
            if math.isnan(result) and not (math.isnan(a) or math.isnan(b)):
                raise ValueError("math domain error")
            if math.isinf(result) and math.isfinite(a) and math.isfinite(b):
                raise OverflowError("math range error")
            return result

        return compute if is_number(x, y) else None


for _of_two in (math.pow, math.atan2, math.copysign):
    _function_of_two(_of_two)


def _test(original: Any) -> None:
    @checked(original)
    def _of(x: Any) -> Any:
        return (lambda x: original(real(x))) if is_number(x) else None


for _answering in (math.isnan, math.isinf, math.isfinite):
    _test(_answering)
