"""Monoids: what a store combines.

A monoid has an associative ``combine`` with a neutral ``identity``; ``lift`` turns an input into a
partial, ``lower`` turns a partial into the answer. Neither commutative nor invertible is assumed.
A partial of the compiled form is one number or a tuple of up to four; of the Python form, anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from muntin.errors import DataError, QueryError, nearest
from muntin.scalars import (
    COUNT,
    INTEGER_SUM,
    LARGEST,
    LARGEST_INTEGER,
    LIMB,
    MASK,
    SMALLEST,
    SMALLEST_INTEGER,
    Function,
    Scalars,
    add,
    add_pairs,
    same,
    subtract,
    subtract_pairs,
)
from muntin.stores.bloom import BloomFilter, bits_of
from muntin.stores.columns import ACCESSORS, type_names


class _Nothing:
    """Neutral element for a user's operator without one (the paper's bottom marker)."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


@dataclass(frozen=True, slots=True, eq=False)
class Monoid:
    """An operator for the stores. See `monoid` for your own, `named` for the built-in ones.

    ``invert(p, q)`` removes the prefix ``q`` from ``p``: ``invert(combine(q, x), q) == x``, exactly.
    ``columns`` are the NumPy types of the partial in the compiled form; empty: interpreted only.
    ``python`` is the operator over Python objects, run by the interpreter.
    """

    name: str
    lift: Function
    combine: Function
    lower: Function
    identity: Any
    python: Scalars
    columns: tuple[str, ...] = ()
    input: str = "float64"
    invert: Function | None = None
    commutative: bool = False
    empty: Any = None
    named: bool = field(default=False)
    pairs: bool = field(default=False)
    """Whether an input is a pair of numbers."""

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

    With ``columns`` (NumPy type names of the partial's numbers, "float64" or "int64") you say that the
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
    python = Scalars(identity, lift, combine, invert)
    if bare:
        python = Scalars(identity, lift, _skipping(combine), _keeping(invert))
    empty = None if bare else lower(identity)
    return Monoid(
        name, lift, combine, lower, identity, python, tuple(columns), input, invert, commutative, empty
    )


def _check_columns(columns: tuple[str, ...], identity: Any, input: str) -> None:
    unknown = [name for name in (*columns, input) if name not in type_names]
    if unknown:
        raise QueryError(f'columns of a partial are "float64" or "int64": got "{unknown[0]}"')
    if len(columns) > len(ACCESSORS):
        raise QueryError(f"a compiled partial has at most {len(ACCESSORS)} columns: got {len(columns)}")
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


# --- the named monoids: declarations that both Numba and the interpreter run ---------------------


def _earlier(a: Any, b: Any) -> Any:
    return a if a[1] else b


def _later(a: Any, b: Any) -> Any:
    return b if b[1] else a


def _with_one(v: Any) -> Any:
    return v, 1


def _float_with_one(v: Any) -> Any:
    return float(v), 1


def _log_with_one(v: Any) -> Any:
    return math.log(v), 1


def _max_pairs(a: Any, b: Any) -> Any:
    if a[1] == 0 or b[1] == 0:
        return b if a[1] == 0 else a
    if a[0] == b[0] or (a[0] != a[0] and b[0] != b[0]):
        return a[0], a[1] + b[1]
    return a if a[0] > b[0] or a[0] != a[0] else b


def _ranked(v: Any) -> Any:
    return v[0], v[1], 1


def _highest(a: Any, b: Any) -> Any:
    # The first of equals; NaN is the largest number, as in Spark.
    if a[2] == 0 or b[2] == 0:
        return b if a[2] == 0 else a
    return b if b[0] > a[0] or (b[0] != b[0] and a[0] == a[0]) else a


def _lowest(a: Any, b: Any) -> Any:
    if a[2] == 0 or b[2] == 0:
        return b if a[2] == 0 else a
    return b if b[0] < a[0] or (a[0] != a[0] and b[0] == b[0]) else a


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


def _limbs_with_one(v: Any) -> Any:
    return v & MASK, v >> LIMB, 1


def _add_triples(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _subtract_triples(a: Any, b: Any) -> Any:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _exact(p: Any) -> int:
    return int(p[0]) + (int(p[1]) << LIMB) if isinstance(p, tuple) else int(p)


def _checked(p: Any) -> int:
    total = _exact(p)
    if not SMALLEST_INTEGER <= total <= LARGEST_INTEGER:
        raise DataError(f"the sum {total} does not fit into 64 bits; use float64 values")
    return total


def _ratio(p: Any) -> float | None:
    return p[0] / p[1] if p[1] else None


def _exact_ratio(p: Any) -> float | None:
    n = int(p[-1])
    return _exact(p[:-1] if len(p) == 3 else p[0]) / n if n else None


def _first_part(p: Any) -> Any:
    return p[0] if p[1] else None


def _ranked_value(p: Any) -> Any:
    return p[1] if p[2] else None


def _either(p: int, q: int) -> int:
    return p | q


def _second_part(p: Any) -> int:
    return int(p[1])


def _exponential(p: Any) -> float | None:
    return math.exp(p[0] / p[1]) if p[1] else None


def _variance(p: Any) -> float | None:
    return p[2] / (p[0] - 1) if p[0] > 1 else None


def _deviation(p: Any) -> float | None:
    return math.sqrt(p[2] / (p[0] - 1)) if p[0] > 1 else None


_FLOAT_MEAN = Scalars((0.0, 0), _float_with_one, add_pairs)
_LOG_MEAN = Scalars((0.0, 0), _log_with_one, add_pairs)
_MOMENTS = Scalars((0, 0.0, 0.0), _moments, _add_moments)
_INTEGER_MEAN = Scalars((0, 0, 0), _limbs_with_one, _add_triples, _subtract_triples)
_PLAIN_SUM = Scalars(0, same, add, subtract)
_PLAIN_MEAN = Scalars((0, 0), _with_one, add_pairs, subtract_pairs)
_INTERPRETED = {INTEGER_SUM: _PLAIN_SUM, _INTEGER_MEAN: _PLAIN_MEAN}
"""Python's integers do not overflow, so interpreted sums need no limbs."""

NAMES = (
    "sum", "count", "min", "max", "mean", "geometric_mean", "variance", "stddev",
    "first", "last", "min_count", "max_count", "arg_min", "arg_max", "bloom",
)  # fmt: skip


@cache
def named(name: str, input: str = "float64") -> Monoid:
    """A built-in monoid over "float64" or "int64" inputs.

    "arg_min" and "arg_max" take pairs (by, value) and give the value with the least or greatest `by`, the
    first one of equals. "bloom" takes any values and gives a `BloomFilter` of 2^14 bits; its partial is one
    large integer, so that it is interpreted.

    >>> named("mean").lower(named("mean").combine((3.0, 1), (5.0, 1)))
    4.0
    """
    if input not in type_names:
        raise QueryError(f'values of a compiled store are "float64" or "int64": got "{input}"')
    if name not in NAMES:
        raise QueryError(f'unknown monoid "{name}".{nearest(name, NAMES)}')
    if name == "bloom":
        return replace(
            monoid(_either, identity=0, lift=bits_of, lower=BloomFilter, commutative=True), name=name
        )
    integer = input == "int64"
    zero = 0 if integer else 0.0
    nothing, no_pair = (zero, 0), (zero, zero, 0)
    rows: dict[str, tuple[Scalars, Function]] = {
        "sum": (INTEGER_SUM, _checked) if integer else (Scalars(0.0, same, add), same),
        "count": (COUNT, same),
        "min": (SMALLEST if integer else replace(SMALLEST, identity=math.nan), same),
        "max": (LARGEST if integer else replace(LARGEST, identity=-math.inf), same),
        "mean": (_INTEGER_MEAN, _exact_ratio) if integer else (_FLOAT_MEAN, _ratio),
        "geometric_mean": (_LOG_MEAN, _exponential),
        "variance": (_MOMENTS, _variance),
        "stddev": (_MOMENTS, _deviation),
        "first": (Scalars(nothing, _with_one, _earlier), _first_part),
        "last": (Scalars(nothing, _with_one, _later), _first_part),
        "min_count": (Scalars(nothing, _with_one, _min_pairs), _second_part),
        "max_count": (Scalars(nothing, _with_one, _max_pairs), _second_part),
        "arg_min": (Scalars(no_pair, _ranked, _lowest), _ranked_value),
        "arg_max": (Scalars(no_pair, _ranked, _highest), _ranked_value),
    }
    return _built(name, *rows[name], input)


def _built(name: str, scalars: Scalars, lower: Function, input: str) -> Monoid:
    identity = scalars.identity
    numbers = identity if isinstance(identity, tuple) else (identity,)
    columns = tuple("int64" if isinstance(number, int) else "float64" for number in numbers)
    python = _INTERPRETED.get(scalars, scalars)
    ordered = name in ("first", "last", "arg_min", "arg_max")
    return Monoid(
        name, scalars.lift, scalars.combine, lower, identity, python, columns, input, scalars.invert,
        commutative=not ordered, empty=lower(identity), named=True, pairs=name in ("arg_min", "arg_max"),
    )  # fmt: skip


@cache
def plain_sum() -> Monoid:
    """Sum of int64 in 64 bits, for callers that know that no sum overflows."""
    return _built("plain_sum", _PLAIN_SUM, int, "int64")
