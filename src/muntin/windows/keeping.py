"""Python values as JSON-able ones and back, for contexts that must survive a snapshot.

JSON has no words for tuples, sets, decimals, dates and bytes: those become an object
with one member, the name of their type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from muntin.errors import UserCodeError

__all__ = ["pack", "unpack"]


def pack(value: Any) -> Any:
    """The value in JSON's words.

    >>> pack((1, {"a": 2.5}))
    {'tuple': [1, {'dict': [['a', 2.5]]}]}
    """
    value = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [pack(item) for item in value]
    name = type(value).__name__
    if name in _TYPES and type(value) is _TYPES[name][0]:
        return {name: _TYPES[name][1](value)}
    raise UserCodeError(
        f"a partial aggregate must last from batch to batch: {value!r:.80} is a {type(value).__qualname__}; "
        "use numbers, text, bytes, dates, and tuples, lists, sets, dicts of them"
    )


def unpack(value: Any) -> Any:
    """The value that `pack` was given.

    >>> unpack(pack((1, {"a": 2.5})))
    (1, {'a': 2.5})
    """
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if isinstance(value, dict):
        ((name, content),) = value.items()
        return _TYPES[name][2](content)
    return value


def _items(values: Any) -> list[Any]:
    return [pack(item) for item in values]


def _pairs(values: Any) -> list[Any]:
    return [[pack(key), pack(item)] for key, item in values.items()]


_TYPES: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (tuple, _items, lambda v: tuple(unpack(v))),
    "dict": (dict, _pairs, lambda v: {unpack(key): unpack(item) for key, item in v}),
    "set": (set, _items, lambda v: set(unpack(v))),
    "frozenset": (frozenset, _items, lambda v: frozenset(unpack(v))),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "Decimal": (Decimal, str, Decimal),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "timedelta": (dt.timedelta, lambda v: [v.days, v.seconds, v.microseconds], lambda v: dt.timedelta(*v)),
}
