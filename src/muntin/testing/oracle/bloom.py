"""A Bloom filter in plain Python, bit by bit as the format of Apache DataSketches describes it."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

__all__ = ["bloom_filter"]

_ALL = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_SEED = 9001
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def bloom_filter(values: list[Any], size: int, error: float) -> bytes:
    """The filter of these values, for `size` distinct ones and that rate of false positives."""
    words = math.ceil(math.ceil(-size * math.log(error) / math.log(2) ** 2) / 64)
    hashes = math.ceil(-math.log2(error))
    bits = 0
    for value in values:
        data = _bytes(value)
        if not data:
            continue
        first = xxh64(data, _SEED)
        second = xxh64(data, first)
        for i in range(1, hashes + 1):
            bits |= 1 << (((first + i * second) & _ALL) >> 1) % (64 * words)
    if not bits:
        return struct.pack("<BBBBHHQII", 3, 1, 21, 4, hashes, 0, _SEED, words, 0)
    head = struct.pack("<BBBBHHQIIQ", 4, 1, 21, 0, hashes, 0, _SEED, words, 0, bits.bit_count())
    return head + bits.to_bytes(8 * words, "little")


def _bytes(value: Any) -> bytes:
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, float):
        return struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
    if isinstance(value, Decimal):
        return str(value).encode()
    return struct.pack("<q", _counted(value))


def _counted(value: Any) -> int:
    """Whole numbers as they are, days and microseconds since the epoch (or midnight) for times."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days
    if isinstance(value, dt.time):
        return (dt.datetime.combine(_EPOCH, value, dt.UTC) - _EPOCH) // _MICROSECOND
    return value // _MICROSECOND if isinstance(value, dt.timedelta) else int(value)


def xxh64(data: bytes, seed: int) -> int:
    """The hash XXH64, as specified.

    >>> hex(xxh64(b"", 0)), hex(xxh64(b"abc", 0))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    rest = data
    if len(data) >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while len(rest) >= 32:
            lanes = [
                _mixed(lane, word) for lane, word in zip(lanes, struct.unpack("<4Q", rest[:32]), strict=True)
            ]
            rest = rest[32:]
        digest = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            digest = (digest ^ _mixed(0, lane)) * _P1 + _P4
    else:
        digest = seed + _P5
    digest += len(data)
    while len(rest) >= 8:
        digest = _rotated(digest ^ _mixed(0, int.from_bytes(rest[:8], "little")), 27) * _P1 + _P4
        rest = rest[8:]
    if len(rest) >= 4:
        digest = _rotated(digest ^ int.from_bytes(rest[:4], "little") * _P1, 23) * _P2 + _P3
        rest = rest[4:]
    for byte in rest:
        digest = _rotated(digest ^ byte * _P5, 11) * _P1
    for shift, prime in ((33, _P2), (29, _P3), (32, 1)):
        digest &= _ALL
        digest = (digest ^ digest >> shift) * prime
    return digest & _ALL


def _mixed(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2, 31) * _P1 & _ALL


def _rotated(x: int, by: int) -> int:
    x &= _ALL
    return (x << by | x >> 64 - by) & _ALL
