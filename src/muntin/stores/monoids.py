"""Monoids: what a store combines.

A monoid has an associative ``combine`` with a neutral ``identity``; ``lift`` turns an input into a
partial, ``lower`` turns a partial into the answer. Neither commutative nor invertible is assumed.
A partial of the compiled form is one number or a tuple of up to four; of the Python form, anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from muntin.errors import DataError, QueryError, nearest
from muntin.stores.columns import MOST_COLUMNS, type_names

Function = Callable[..., Any]


class _Nothing:
    """Neutral element of a user's operator that has none of its own (the paper's bottom marker)."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


def same(x: Any) -> Any:
    """Lift or lower that changes nothing."""
    return x


@dataclass(frozen=True, slots=True, eq=False)
class PythonForm:
    """The monoid over Python objects, run by the interpreter."""

    lift: Function
    combine: Function
    identity: Any
    invert: Function | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Monoid:
    """An operator for the stores. See `monoid` for your own, `named` for the built-in ones.

    ``invert(p, q)`` removes the prefix ``q`` from ``p``: ``invert(combine(q, x), q) == x``, exactly.
    ``columns`` are the NumPy types of the partial in the compiled form; empty: interpreted only.
    """

    name: str
    lift: Function
    combine: Function
    lower: Function
    identity: Any
    python: PythonForm
    columns: tuple[str, ...] = ()
    input: str = "float64"
    invert: Function | None = None
    commutative: bool = False
    empty: Any = None
    named: bool = field(default=False)

    def __repr__(self) -> str:
        return f"Monoid({self.name!r})"


def monoid(
    combine: Function,
    *,
    identity: Any = NOTHING,
    lift: Function = same,
    lower: Function = same,
    invert: Function | None = None,
    commutative: bool = False,
    columns: tuple[str, ...] = (),
    input: str = "float64",
    name: str = "user",
) -> Monoid:
    """Your own operator, from plain Python functions.

    With ``columns`` (NumPy type names of the partial's parts, "float64" or "int64") you say that the
    partial is made of machine numbers: ``lift`` and ``combine`` are then compiled if Numba can compile
    them (`Store.compiled` tells), and integers wrap around beyond 64 bits.

    >>> from muntin.stores import FiBA, monoid
    >>> words = FiBA(monoid(lambda p, q: p + q, identity="", lower=str.title))
    >>> words.insert(2, " pane")
    >>> words.insert(1, "window")
    >>> words.query()
    'Window Pane'
    """
    if columns:
        _check_columns(columns, identity, input)
    bare = identity is NOTHING
    python = PythonForm(
        lift, _skipping(combine) if bare else combine, identity, _keeping(invert) if bare else invert
    )
    empty = None if bare else lower(identity)
    return Monoid(
        name, lift, combine, lower, identity, python, tuple(columns), input, invert, commutative, empty
    )


def _check_columns(columns: tuple[str, ...], identity: Any, input: str) -> None:
    unknown = [name for name in (*columns, input) if name not in type_names]
    if unknown:
        raise QueryError(f'columns of a partial are "float64" or "int64": got "{unknown[0]}"')
    if len(columns) > MOST_COLUMNS:
        raise QueryError(f"a compiled partial has at most {MOST_COLUMNS} columns: got {len(columns)}")
    width = len(identity) if isinstance(identity, tuple) else 1
    if identity is NOTHING or width != len(columns):
        raise QueryError(f"a compiled monoid needs an identity of {len(columns)} columns: got {identity!r}")


def _skipping(combine: Function) -> Function:
    def combine_or_skip(p: Any, q: Any) -> Any:
        if p is NOTHING:
            return q
        return p if q is NOTHING else combine(p, q)

    return combine_or_skip


def _keeping(invert: Function | None) -> Function | None:
    if invert is None:
        return None

    def invert_or_keep(p: Any, q: Any) -> Any:
        return p if q is NOTHING else invert(p, q)

    return invert_or_keep


# --- the named monoids: small functions that both Numba and the interpreter run -----------------


def _add(a: Any, b: Any) -> Any:
    return a + b


def _subtract(a: Any, b: Any) -> Any:
    return a - b


def _one(v: Any) -> Any:
    return 1


def _larger(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b  # NaN is the largest value, as in Spark


def _smaller(a: Any, b: Any) -> Any:
    return a if a <= b or b != b else b


def _earlier(a: Any, b: Any) -> Any:
    return a if a[1] else b


def _later(a: Any, b: Any) -> Any:
    return b if b[1] else a


def _with_one(v: Any) -> Any:
    return v, 1


def _float_with_one(v: Any) -> Any:
    return float(v), 1


def _add_pairs(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


def _log_with_one(v: Any) -> Any:
    return math.log(v), 1


def _max_pairs(a: Any, b: Any) -> Any:
    if a[1] == 0 or b[1] == 0:
        return b if a[1] == 0 else a
    if a[0] == b[0] or (a[0] != a[0] and b[0] != b[0]):
        return a[0], a[1] + b[1]
    return a if a[0] > b[0] or a[0] != a[0] else b


def _min_pairs(a: Any, b: Any) -> Any:
    if a[1] == 0 or b[1] == 0:
        return b if a[1] == 0 else a
    if a[0] == b[0] or (a[0] != a[0] and b[0] != b[0]):
        return a[0], a[1] + b[1]
    return a if a[0] < b[0] or b[0] != b[0] else b


def _moments(v: Any) -> Any:
    return 1, float(v), 0.0


def _add_moments(a: Any, b: Any) -> Any:
    # Chan's update: (n, mean, sum of squared distances) loses nothing to cancellation.
    n = a[0] + b[0]
    if a[0] == 0 or b[0] == 0:
        return b if a[0] == 0 else a
    delta = b[1] - a[1]
    return n, a[1] + delta * (b[0] / n), a[2] + b[2] + delta * delta * (a[0] * (b[0] / n))


# Exact sums of int64: the partial is a 128-bit number (low word, high word), so no sum of any part
# of the window can overflow; only an answer beyond 64 bits does, and that is an error.
_SIGN = -(2**63)


def _wide(v: Any) -> Any:
    return v, v >> 63


def _add_wide(a: Any, b: Any) -> Any:
    low = a[0] + b[0]
    carry = 1 if (low ^ _SIGN) < (a[0] ^ _SIGN) else 0  # unsigned comparison
    return low, a[1] + b[1] + carry


def _subtract_wide(a: Any, b: Any) -> Any:
    borrow = 1 if (a[0] ^ _SIGN) < (b[0] ^ _SIGN) else 0
    return a[0] - b[0], a[1] - b[1] - borrow


def _wide_with_one(v: Any) -> Any:
    return v, v >> 63, 1


def _add_wide_with_n(a: Any, b: Any) -> Any:
    low = a[0] + b[0]
    carry = 1 if (low ^ _SIGN) < (a[0] ^ _SIGN) else 0
    return low, a[1] + b[1] + carry, a[2] + b[2]


def _subtract_wide_with_n(a: Any, b: Any) -> Any:
    borrow = 1 if (a[0] ^ _SIGN) < (b[0] ^ _SIGN) else 0
    return a[0] - b[0], a[1] - b[1] - borrow, a[2] - b[2]


def _exact(p: Any) -> int:
    if not isinstance(p, tuple):
        return int(p)
    return (int(p[1]) << 64) + (int(p[0]) & (2**64 - 1))


def _checked(p: Any) -> int:
    total = _exact(p)
    if not -(2**63) <= total < 2**63:
        raise DataError(f"the sum {total} does not fit into 64 bits; use float64 values")
    return total


def _ratio(p: Any) -> float | None:
    return p[0] / p[1] if p[1] else None


def _wide_ratio(p: Any) -> float | None:
    n = int(p[-1])
    return _exact(p[:-1] if len(p) == 3 else p[0]) / n if n else None


def _first_part(p: Any) -> Any:
    return p[0] if p[1] else None


def _second_part(p: Any) -> int:
    return int(p[1])


def _exponential(p: Any) -> float | None:
    return math.exp(p[0] / p[1]) if p[1] else None


def _variance(p: Any) -> float | None:
    return p[2] / (p[0] - 1) if p[0] > 1 else None


def _deviation(p: Any) -> float | None:
    return math.sqrt(p[2] / (p[0] - 1)) if p[0] > 1 else None


NAMES = (
    "sum", "count", "min", "max", "mean", "geometric_mean", "variance", "stddev",
    "first", "last", "min_count", "max_count",
)  # fmt: skip


@cache
def named(name: str, input: str = "float64") -> Monoid:
    """A built-in monoid over "float64" or "int64" inputs.

    >>> named("mean").lower(named("mean").combine((3.0, 1), (5.0, 1)))
    4.0
    """
    if input not in type_names:
        raise QueryError(f'values of a compiled store are "float64" or "int64": got "{input}"')
    if name not in NAMES:
        raise QueryError(f'unknown monoid "{name}".{nearest(name, NAMES)}')
    integer = input == "int64"
    extreme, highest = (-(2**63), 2**63 - 1) if integer else (-math.inf, math.nan)
    zero = 0 if integer else 0.0
    pair = (input, "int64")
    if integer and name in ("sum", "mean"):
        return _wide_sum(name)
    rows: dict[str, tuple[Function, Function, Function, Any, tuple[str, ...], bool]] = {
        # name: lift, combine, lower, identity, columns, commutative
        "sum": (same, _add, same, zero, (input,), True),
        "count": (_one, _add, same, 0, ("int64",), True),
        "min": (same, _smaller, same, highest, (input,), True),
        "max": (same, _larger, same, extreme, (input,), True),
        "mean": (_float_with_one, _add_pairs, _ratio, (0.0, 0), ("float64", "int64"), True),
        "geometric_mean": (_log_with_one, _add_pairs, _exponential, (0.0, 0), ("float64", "int64"), True),
        "variance": (_moments, _add_moments, _variance, (0, 0.0, 0.0), ("int64", "float64", "float64"), True),
        "stddev": (_moments, _add_moments, _deviation, (0, 0.0, 0.0), ("int64", "float64", "float64"), True),
        "first": (_with_one, _earlier, _first_part, (zero, 0), pair, False),
        "last": (_with_one, _later, _first_part, (zero, 0), pair, False),
        "min_count": (_with_one, _min_pairs, _second_part, (zero, 0), pair, True),
        "max_count": (_with_one, _max_pairs, _second_part, (zero, 0), pair, True),
    }
    lift, combine, lower, identity, columns, commutative = rows[name]
    invert = _subtract if name == "count" else None
    empty = 0 if name in ("count", "min_count", "max_count") else None
    return Monoid(
        name, lift, combine, lower, identity, PythonForm(lift, combine, identity, invert),
        columns, input, invert, commutative, empty, named=True,
    )  # fmt: skip


def _subtract_pairs(a: Any, b: Any) -> Any:
    return a[0] - b[0], a[1] - b[1]


def _wide_sum(name: str) -> Monoid:
    if name == "sum":
        python = PythonForm(same, _add, 0, _subtract)
        return Monoid(
            name, _wide, _add_wide, _checked, (0, 0), python,
            ("int64", "int64"), "int64", _subtract_wide, True, None, named=True,
        )  # fmt: skip
    python = PythonForm(_with_one, _add_pairs, (0, 0), _subtract_pairs)
    return Monoid(
        name, _wide_with_one, _add_wide_with_n, _wide_ratio, (0, 0, 0), python,
        ("int64", "int64", "int64"), "int64", _subtract_wide_with_n, True, None, named=True,
    )  # fmt: skip


@cache
def plain_sum() -> Monoid:
    """Sum of int64 in 64 bits, for callers that know that no sum overflows."""
    python = PythonForm(same, _add, 0, _subtract)
    return Monoid(
        "plain_sum", same, _add, int, 0, python, ("int64",), "int64", _subtract, True, None, named=True
    )
