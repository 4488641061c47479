"""Compiled operations that give the result of Python, or raise.

Compiled integers have 64 bits, compiled functions of `math` return NaN where Python's raise, and a compiled
comparison of an integer with a float rounds the integer. Each operation raises where the two would differ.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import intrinsic

from muntin.compiled_kernels import compiled


def _checked(instruction: str) -> Any:
    """An operation on 64-bit integers that raises instead of wrapping around."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pair = getattr(builder, instruction)(*args)
            with builder.if_then(builder.extract_value(pair, 1), likely=False):
                context.call_conv.return_user_exc(builder, OverflowError, ("an integer beyond 64 bits",))
            return builder.extract_value(pair, 0)

        return types.int64(types.int64, types.int64), generate

    return operation


# A test after `+`, `-` or `*` is too late: LLVM may assume that these do not overflow.
add_int = _checked("sadd_with_overflow")
sub_int = _checked("ssub_with_overflow")
mul_int = _checked("smul_with_overflow")


@compiled
def lshift_int(a: int, b: int) -> int:
    """`a << b`."""
    if b < 0 or b > 62 or (a << b) >> b != a:
        raise OverflowError("an integer beyond 64 bits")
    return a << b


@compiled
def rshift_int(a: int, b: int) -> int:
    """`a >> b`."""
    if b < 0:
        raise ValueError("a negative shift")
    return a >> min(b, 63)


@compiled
def exact_float(a: int) -> float:
    """An integer as a float; raises where that might round."""
    if a > 2**53 or a < -(2**53):
        raise OverflowError("an integer beyond 2**53 where a float is needed")
    return float(a)


@compiled
def narrow(a: float) -> float:
    """The float itself; raises where an integer next to it might exceed 64 bits."""
    if not -(2.0**53) < a < 2.0**53:  # nor is NaN
        raise OverflowError("a float beyond 2**53 where an integer is needed")
    return a


@compiled
def equal_float(a: float, b: float) -> bool:
    """`a == b`; raises for two NaNs, which Python takes for equal inside tuples if they are one object."""
    if math.isnan(a) and math.isnan(b):
        raise ValueError("a comparison of NaN with NaN")
    return a == b


@compiled
def pow_float(a: float, b: float) -> float:
    """`a ** b`."""
    if a < 0.0 and math.isfinite(b) and b != math.floor(b):
        raise ValueError("a power that is a complex number")
    if a == 0.0 and b < 0.0:
        raise ZeroDivisionError("zero to a negative power")
    return defined(math.pow(a, b), a, b)


@compiled
def defined(result: float, a: float, b: float) -> float:
    """The result of a function of `math` for one argument or two; raises where Python's function raises."""
    if math.isnan(result) and not (math.isnan(a) or math.isnan(b)):
        raise ValueError("math domain error")
    if math.isinf(result) and math.isfinite(a) and math.isfinite(b):
        raise OverflowError("math range error")
    return result
