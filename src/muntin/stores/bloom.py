"""Bloom filters of 2^14 bits: which values a window may contain, in 2,048 bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

BITS = 2**14
HASHES = 4


def bits_of(value: Any) -> int:
    """The bits that a value sets, as one integer; equal numbers set the same bits, whatever their type."""
    bits = 0
    for place in _places(value):
        bits |= 1 << place
    return bits


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The set of a window's values: it contains all of them, and few others.

    >>> seen = BloomFilter(bits_of("ada") | bits_of("bob"))
    >>> "ada" in seen, "eve" in seen
    (True, False)
    >>> round(seen.count)
    2
    """

    bits: int

    def __contains__(self, value: object) -> bool:
        return all(self.bits >> place & 1 for place in _places(value))

    @property
    def count(self) -> float:
        """The estimated number of distinct values."""
        ones = self.bits.bit_count()
        return math.inf if ones == BITS else -BITS / HASHES * math.log1p(-ones / BITS)


def _places(value: Any) -> Iterator[int]:
    """Double hashing: two numbers of 32 bits give all places."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    digest = int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "little")
    first, step = digest & 0xFFFFFFFF, digest >> 32 | 1
    return ((first + i * step) % BITS for i in range(HASHES))
