"""Operators that give in compiled code what they give in Python, or raise.

Compiled integers have 64 bits, where Python's have as many as they need; compiled comparisons of an
integer with a float round the integer first, where Python's are exact. Each operator here raises
where the two would differ, and whoever called the compiled code asks the interpreter instead.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import intrinsic, overload

CHECKED: dict[Any, Any] = {}
"""What takes the place of an operator or of a function in compiled code."""

EXACT = 2**53
"""Integers up to here are floats without rounding."""


def checked(*originals: Any) -> Callable[[Any], Any]:
    """Register a function from types to an implementation, as Numba's `overload` wants it."""

    def register(choose: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*args: Any) -> Any:
            raise NotImplementedError("replaced when a function is compiled")

        stand_in.__name__ = originals[0].__name__
        overload(stand_in, prefer_literal=True, strict=False)(choose)
        CHECKED.update(dict.fromkeys(originals, stand_in))
        return choose

    return register


def is_tuple(kind: Any) -> bool:
    """Whether it is a tuple."""
    return isinstance(kind, types.BaseTuple)


def is_whole(*kinds: Any) -> bool:
    """Whether all are integers or booleans, which are integers in Python."""
    return all(isinstance(types.unliteral(kind), types.Integer | types.Boolean) for kind in kinds)


def is_truth(*kinds: Any) -> bool:
    """Whether all are booleans."""
    return all(isinstance(types.unliteral(kind), types.Boolean) for kind in kinds)


def is_number(*kinds: Any) -> bool:
    """Whether all are integers, booleans or floats."""
    return all(is_whole(kind) or isinstance(kind, types.Float) for kind in kinds)


def _exact(instruction: str) -> Any:
    """An operation on 64-bit integers that raises instead of wrapping."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pair = getattr(builder, instruction)(*args)
            with builder.if_then(builder.extract_value(pair, 1), likely=False):
                context.call_conv.return_user_exc(builder, OverflowError, ("an integer beyond 64 bits",))
            return builder.extract_value(pair, 0)

        return types.int64(types.int64, types.int64), generate

    return operation


plus, minus, times = map(_exact, ("sadd_with_overflow", "ssub_with_overflow", "smul_with_overflow"))


def real(x: Any) -> Any:
    """A number as a float, also a boolean, which Numba's own does not take; only compiled."""


@overload(real, strict=False)
def _real(x: Any) -> Any:
    return (lambda x: 1.0 if x else 0.0) if is_truth(x) else lambda x: float(x)


@njit(nogil=True)
def exactly(i: int) -> Any:
    """An integer as a float, if that is no rounding."""
    if i > EXACT or i < -EXACT:
        raise OverflowError("an integer beyond 2**53 beside a float")
    return real(i)


# --- plus, minus, times ---------------------------------------------------------------------


@checked(operator.add, operator.iadd)
def _add(a: Any, b: Any) -> Any:
    if is_whole(a, b):
        return lambda a, b: plus(a, b)
    return (lambda a, b: real(a) + real(b)) if is_number(a, b) else None


@checked(operator.sub, operator.isub)
def _sub(a: Any, b: Any) -> Any:
    if is_whole(a, b):
        return lambda a, b: minus(a, b)
    return (lambda a, b: real(a) - real(b)) if is_number(a, b) else None


@checked(operator.mul, operator.imul)
def _mul(a: Any, b: Any) -> Any:
    if is_whole(a, b):
        return lambda a, b: times(a, b)
    return (lambda a, b: real(a) * real(b)) if is_number(a, b) else None


@checked(operator.neg)
def _neg(a: Any) -> Any:
    if is_whole(a):
        return lambda a: minus(0, a)
    return (lambda a: -a) if is_number(a) else None


@checked(operator.pos)
def _pos(a: Any) -> Any:
    if is_whole(a):
        return lambda a: plus(0, a)
    return (lambda a: a) if is_number(a) else None


# --- divisions: by zero they raise, which is Numba's Python error model -----------------------


@checked(operator.truediv, operator.itruediv)
def _truediv(a: Any, b: Any) -> Any:
    if is_whole(a, b):  # Python rounds the quotient once, also that of integers no float can hold
        return lambda a, b: exactly(a) / exactly(b)
    return (lambda a, b: real(a) / real(b)) if is_number(a, b) else None


@checked(operator.floordiv, operator.ifloordiv)
def _floordiv(a: Any, b: Any) -> Any:
    if is_whole(a, b):
        return lambda a, b: minus(0, a) if b == -1 else int(a) // int(b)
    return (lambda a, b: real(a) // real(b)) if is_number(a, b) else None


@checked(operator.mod, operator.imod)
def _mod(a: Any, b: Any) -> Any:
    if is_whole(a, b):
        return lambda a, b: 0 if b == -1 else int(a) % int(b)
    return (lambda a, b: real(a) % real(b)) if is_number(a, b) else None


# --- powers -----------------------------------------------------------------------------------


@checked(operator.pow, operator.ipow)
def _pow(a: Any, b: Any) -> Any:
    if is_whole(a, b):  # of a negative exponent Python makes a float
        known = isinstance(b, types.IntegerLiteral) and b.literal_value >= 0
        return _whole_power if known else None
    return _power if is_number(a, b) else None


def _whole_power(a: Any, b: Any) -> Any:
    result = 1
    for _ in range(b):
        result = times(result, a)
    return result


def _power(a: Any, b: Any) -> Any:
    x, y = real(a), real(b)
    if x < 0.0 and math.isfinite(y) and y != math.floor(y):
        raise ValueError("a power that is a complex number")
    if x == 0.0 and y < 0.0:
        raise ZeroDivisionError("zero to a negative power")
    result = math.pow(x, y)
    if math.isinf(result) and math.isfinite(x) and math.isfinite(y):
        raise OverflowError("a power beyond the largest float")
    return result


# --- comparisons ------------------------------------------------------------------------------


def _comparison(original: Any) -> None:
    compare = njit(nogil=True)(_COMPARE[original])

    @checked(original)
    def _choose(a: Any, b: Any) -> Any:
        if is_whole(a, b):
            return lambda a, b: compare(int(a), int(b))
        if not is_number(a, b):
            return None
        if is_whole(a):
            return lambda a, b: compare(exactly(a), b)
        return (lambda a, b: compare(a, exactly(b))) if is_whole(b) else lambda a, b: compare(a, b)


_COMPARE: dict[Any, Any] = {
    operator.lt: lambda a, b: a < b,
    operator.le: lambda a, b: a <= b,
    operator.gt: lambda a, b: a > b,
    operator.ge: lambda a, b: a >= b,
    operator.eq: lambda a, b: a == b,
    operator.ne: lambda a, b: a != b,
}
for _original in _COMPARE:
    _comparison(_original)


# --- bits -------------------------------------------------------------------------------------


@checked(operator.and_, operator.iand)
def _and(a: Any, b: Any) -> Any:
    if is_truth(a, b):
        return lambda a, b: a & b
    return (lambda a, b: int(a) & int(b)) if is_whole(a, b) else None


@checked(operator.or_, operator.ior)
def _or(a: Any, b: Any) -> Any:
    if is_truth(a, b):
        return lambda a, b: a | b
    return (lambda a, b: int(a) | int(b)) if is_whole(a, b) else None


@checked(operator.xor, operator.ixor)
def _xor(a: Any, b: Any) -> Any:
    if is_truth(a, b):
        return lambda a, b: a ^ b
    return (lambda a, b: int(a) ^ int(b)) if is_whole(a, b) else None


@checked(operator.invert)
def _invert(a: Any) -> Any:
    return (lambda a: ~int(a)) if is_whole(a) else None


@checked(operator.lshift, operator.ilshift)
def _lshift(a: Any, b: Any) -> Any:
    return _shift_left if is_whole(a, b) else None


def _shift_left(a: Any, b: Any) -> Any:
    x, n = int(a), int(b)
    if n < 0 or n > 62 or (x << n) >> n != x:
        raise OverflowError("an integer beyond 64 bits")
    return x << n


@checked(operator.rshift, operator.irshift)
def _rshift(a: Any, b: Any) -> Any:
    return _shift_right if is_whole(a, b) else None


def _shift_right(a: Any, b: Any) -> Any:
    if b < 0:
        raise ValueError("a negative shift")
    return int(a) >> min(int(b), 63)


@checked(operator.not_)
def _not(a: Any) -> Any:
    return (lambda a: not a) if is_number(a) else None
