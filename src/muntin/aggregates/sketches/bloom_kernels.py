"""Compiled Bloom filters: XXH64 of integers and of bytes, and the bits that a value sets.

The hashes and their use are those of Apache DataSketches, so that its filters and these agree. All
arithmetic is modulo 2**64; Numba makes a float of a mixture of signed and unsigned integers, so every
number here is unsigned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.arrays import Bools, Ints
from muntin.compiled_kernels import compiled

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_WORD = np.uint64(64)
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_SIXTY_THREE = np.uint64(63)


@compiled
def _rotated(x: np.uint64, bits: int) -> np.uint64:
    left = np.uint64(bits)
    return (x << left) | (x >> (_WORD - left))


@compiled
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotated(lane + word * _P2, 31) * _P1


@compiled
def _finished(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    return h ^ (h >> np.uint64(32))


@compiled
def hash_word(word: np.uint64, seed: np.uint64) -> np.uint64:
    """XXH64 of the eight bytes of an integer."""
    h = seed + _P5 + np.uint64(8)
    h ^= _round(np.uint64(0), word)
    return _finished(_rotated(h, 27) * _P1 + _P4)


@compiled
def _read(data: Bytes, at: int, size: int) -> np.uint64:
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return word


@compiled
def hash_bytes(data: Bytes, begin: int, end: int, seed: np.uint64) -> np.uint64:
    """XXH64 of the bytes begin:end."""
    i = begin
    if end - begin >= 32:
        a = seed + _P1 + _P2
        b = seed + _P2
        c = seed + np.uint64(0)
        d = seed - _P1
        while end - i >= 32:
            a = _round(a, _read(data, i, 8))
            b = _round(b, _read(data, i + 8, 8))
            c = _round(c, _read(data, i + 16, 8))
            d = _round(d, _read(data, i + 24, 8))
            i += 32
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        h = seed + _P5
    h += np.uint64(end - begin)
    while end - i >= 8:
        h = _rotated(h ^ _round(np.uint64(0), _read(data, i, 8)), 27) * _P1 + _P4
        i += 8
    if end - i >= 4:
        h = _rotated(h ^ (_read(data, i, 4) * _P1), 23) * _P2 + _P3
        i += 4
    while i < end:
        h = _rotated(h ^ (np.uint64(data[i]) * _P5), 11) * _P1
        i += 1
    return _finished(h)


@compiled
def _set(bits: Words, first: np.uint64, second: np.uint64, hashes: int) -> None:
    size = np.uint64(bits.size) * _WORD
    h = first
    for _ in range(hashes):
        h += second
        place = (h >> _ONE) % size
        bits[place >> _SIX] |= _ONE << (place & _SIXTY_THREE)


@compiled
def _all_set(bits: Words, first: np.uint64, second: np.uint64, hashes: int) -> bool:
    size = np.uint64(bits.size) * _WORD
    h = first
    for _ in range(hashes):
        h += second
        place = (h >> _ONE) % size
        if not (bits[place >> _SIX] >> (place & _SIXTY_THREE)) & _ONE:
            return False
    return True


@compiled
def add_words(
    words: Words, valid: Bools | None, group: Ints, hashes: int, seed: np.uint64, out: Words
) -> None:
    """Set the bits of each integer in the row of its group."""
    for i in range(words.size):
        if group[i] < 0 or (valid is not None and not valid[i]):
            continue
        first = hash_word(words[i], seed)
        _set(out[group[i]], first, hash_word(words[i], first), hashes)


@compiled
def add_texts(
    offsets: Ints,
    data: Bytes,
    valid: Bools | None,
    group: Ints,
    hashes: int,
    seed: np.uint64,
    out: Words,
) -> None:
    """Set the bits of each text in the row of its group; empty ones are left out, as in DataSketches."""
    for i in range(offsets.size - 1):
        if group[i] < 0 or (valid is not None and not valid[i]) or offsets[i] == offsets[i + 1]:
            continue
        first = hash_bytes(data, offsets[i], offsets[i + 1], seed)
        _set(out[group[i]], first, hash_bytes(data, offsets[i], offsets[i + 1], first), hashes)


@compiled
def has_word(bits: Words, word: np.uint64, hashes: int, seed: np.uint64) -> bool:
    """Whether all bits of an integer are set."""
    first = hash_word(word, seed)
    return _all_set(bits, first, hash_word(word, first), hashes)


@compiled
def has_text(bits: Words, data: Bytes, hashes: int, seed: np.uint64) -> bool:
    """Whether all bits of a text are set."""
    first = hash_bytes(data, 0, data.size, seed)
    return _all_set(bits, first, hash_bytes(data, 0, data.size, first), hashes)


@compiled
def unite_rows(state: Words, rows: Ints | None, lo: Ints, hi: Ints, out: Words) -> None:
    """The bits of a range of rows, for each output row."""
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            for k in range(state.shape[1]):
                out[j, k] |= state[r, k]
