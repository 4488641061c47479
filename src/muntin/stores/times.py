"""The times of entries: inside a store they are integers in the same order, or objects with an order."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError, QueryError, nearest

_MAGNITUDE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimeType:
    """How times of one type become integers of 64 bits in the same order, and times again."""

    name: str
    encode: Callable[[Any], Any]
    encode_many: Callable[[Iterable[Any]], Any]
    decode: Callable[[Any], Any] = int

    def __reduce__(self) -> tuple[Any, ...]:
        return time_type, (self.name,)


def time_type(name: str) -> TimeType:
    """The type of times with this name.

    >>> floats = time_type("float64")
    >>> [floats.decode(floats.encode(t)) for t in (-2.5, 0.0, 1e300)]
    [-2.5, 0.0, 1e+300]
    >>> floats.encode(-2.5) < floats.encode(-1.0) < floats.encode(0.0) < floats.encode(0.5)
    True
    """
    if name not in _TYPES:
        names = ", ".join(f'"{known}"' for known in _TYPES)
        raise QueryError(f'times of a store are one of {names}: got "{name}".{nearest(name, tuple(_TYPES))}')
    return _TYPES[name]


class Bound:
    """An object before all times, or after all."""

    __slots__ = ("_after",)

    def __init__(self, after: bool) -> None:
        self._after = after

    def __lt__(self, other: object) -> bool:
        return not self._after and other is not self

    def __gt__(self, other: object) -> bool:
        return self._after and other is not self

    def __le__(self, other: object) -> bool:
        return not self._after or other is self

    def __ge__(self, other: object) -> bool:
        return self._after or other is self

    def __repr__(self) -> str:
        return "LATEST" if self._after else "EARLIEST"


BOUNDS = {"EARLIEST": Bound(after=False), "LATEST": Bound(after=True)}
"""What takes the place of the smallest and the largest integer where times are objects."""


def _integer(t: Any) -> int:
    try:
        return index(t)
    except TypeError:
        raise DataError(
            f'times of this store are integers: got {t!r}; times="float64", "datetime64[us]" or "object" '
            "takes others"
        ) from None


def _integers(ts: Iterable[Any]) -> Any:
    times = _array(ts)
    if len(times) and times.dtype.kind not in "iu":
        _integer(times.tolist()[0])  # an error that names the time
    return np.ascontiguousarray(times, np.int64)


# The bits of floats, read as integers, are in the order of floats, those of negative ones in reverse order.


def _float(t: Any) -> int:
    t = float(t) + 0.0  # -0.0 becomes 0.0
    if t != t:
        raise DataError("a time must not be NaN, which has no place in an order")
    bits: int = struct.unpack("<q", struct.pack("<d", t))[0]
    return bits if bits >= 0 else bits ^ _MAGNITUDE


def _floats(ts: Iterable[Any]) -> Any:
    times = np.asarray(_array(ts), np.float64) + 0.0
    if np.isnan(times).any():
        raise DataError("a time must not be NaN, which has no place in an order")
    bits = times.view(np.int64)
    return np.where(bits >= 0, bits, bits ^ _MAGNITUDE)


def _as_float(code: Any) -> float:
    code = int(code)
    t: float = struct.unpack("<d", struct.pack("<q", code if code >= 0 else code ^ _MAGNITUDE))[0]
    return t


_FROM_EPOCH = "datetime64[us]"


def _microseconds(t: Any) -> int:
    if isinstance(t, datetime) and t.tzinfo is not None:
        t = t.astimezone(UTC).replace(tzinfo=None)
    if not isinstance(t, (datetime, np.datetime64)):
        raise DataError(f'times of this store are "{_FROM_EPOCH}": got {t!r}; pass a datetime or datetime64')
    moment = np.datetime64(t)
    if np.isnat(moment):
        raise DataError("a time must not be NaT, which has no place in an order")
    return int(moment.astype(_FROM_EPOCH).astype(np.int64))


def _many_microseconds(ts: Iterable[Any]) -> Any:
    times = ts if isinstance(ts, np.ndarray) else list(ts)
    if isinstance(times, np.ndarray) and times.dtype.kind == "M" and not np.isnat(times).any():
        return times.astype(_FROM_EPOCH).astype(np.int64)
    return np.array([_microseconds(t) for t in times], np.int64)


def _as_datetime64(code: Any) -> Any:
    return np.datetime64(int(code), "us")


def _unchanged(t: Any) -> Any:
    return t


def _array(items: Iterable[Any]) -> npt.NDArray[Any]:
    return items if isinstance(items, np.ndarray) else np.asarray(list(items))


_TYPES = {
    each.name: each
    for each in (
        TimeType("int64", _integer, _integers),
        TimeType("float64", _float, _floats, _as_float),
        TimeType(_FROM_EPOCH, _microseconds, _many_microseconds, _as_datetime64),
        TimeType("object", _unchanged, list, _unchanged),
    )
}
