"""Key groups: a key belongs to one group, and each shuffle partition gets one group.

All keys of a group share one stateful call per micro-batch. Spark places a group by the Murmur3 hash
of its number; so the numbers are chosen such that no two groups meet in one partition.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["group_numbers", "murmur3_of_int"]

_MASK = 0xFFFFFFFF
_SEED = 42
"""Spark's."""


def group_numbers(partitions: int) -> list[int]:
    """One number for each partition that Spark's hash partitioning sends there.

    >>> numbers = group_numbers(4)
    >>> sorted(murmur3_of_int(n) % 4 for n in numbers)
    [0, 1, 2, 3]
    """
    found: dict[int, int] = {}
    for number in _naturals():
        found.setdefault(murmur3_of_int(number) % partitions, number)
        if len(found) == partitions:
            break
    return [found[p] for p in range(partitions)]


def _naturals() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def murmur3_of_int(value: int) -> int:
    """Murmur3 (x86, 32 bit) of one int with Spark's seed, as a signed number.

    >>> murmur3_of_int(0), murmur3_of_int(1)
    (933211791, -559580957)
    """
    k = _rotated(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    h = (_rotated(_SEED ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4  # the length in bytes
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
