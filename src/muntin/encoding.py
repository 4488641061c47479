"""Python values as JSON text and back, for the states of user-defined aggregates and windows in snapshots.

A value of a type that JSON lacks is written as an object with one member, named after the type. Reading
it runs no code, unlike unpickling.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from muntin.errors import SnapshotError


def encode(value: Any) -> str:
    """The value as text.

    >>> encode((1, {"a": {2.5}}))
    '{"tuple":[1,{"dict":[["a",{"set":[2.5]}]]}]}'
    """
    return json.dumps(_pack(value), separators=(",", ":"))


def decode(text: str) -> Any:
    """The value that `encode` wrote.

    >>> decode(encode((1, {"a": {2.5}})))
    (1, {'a': {2.5}})
    """
    try:
        return _unpack(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise SnapshotError(f"damaged state of user code: {text[:80]!r}") from error


def _pack(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_pack(item) for item in value]
    for type_, (write, _) in _TYPES.items():
        if type(value) is type_:
            return {type_.__name__: write(value)}
    raise SnapshotError(
        f"the state of user code cannot be written into a snapshot: {value!r:.80} is a "
        f"{type(value).__qualname__}; use numbers, text, bytes, dates, and tuples, lists, sets, dicts of them"
    )


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if isinstance(value, dict):
        ((name, content),) = value.items()
        return _READERS[name](content)
    return value


def _items(values: Any) -> list[Any]:
    return [_pack(item) for item in values]


def _pairs(values: Any) -> list[Any]:
    return [[_pack(key), _pack(item)] for key, item in values.items()]


def _sorted(values: Any) -> list[Any]:
    return sorted(_items(values), key=json.dumps)  # equal sets give equal snapshots


_TYPES: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    tuple: (_items, lambda v: tuple(_unpack(v))),
    dict: (_pairs, lambda v: {_unpack(key): _unpack(item) for key, item in v}),
    set: (_sorted, lambda v: set(_unpack(v))),
    frozenset: (_sorted, lambda v: frozenset(_unpack(v))),
    Counter: (_pairs, lambda v: Counter({_unpack(key): _unpack(item) for key, item in v})),
    deque: (_items, lambda v: deque(_unpack(v))),
    bytes: (lambda v: base64.b64encode(v).decode(), lambda v: base64.b64decode(v, validate=True)),
    complex: (lambda v: [v.real, v.imag], lambda v: complex(*v)),
    Decimal: (str, Decimal),
    Fraction: (str, Fraction),
    dt.datetime: (dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: (dt.date.isoformat, dt.date.fromisoformat),
    dt.time: (dt.time.isoformat, dt.time.fromisoformat),
    dt.timedelta: (lambda v: [v.days, v.seconds, v.microseconds], lambda v: dt.timedelta(*v)),
}
_READERS = {type_.__name__: read for type_, (_, read) in _TYPES.items()}
