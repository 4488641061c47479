"""bloom: a filter that knows which values a window may contain."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import Accepted, require
from muntin.aggregates.arguments import BETWEEN_0_AND_1, must, whole_within
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Groups, Ints, Order
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ArrayPartial
from muntin.aggregates.partials.extrema import has_arrow_order
from muntin.aggregates.sketches.items import hash_integers, is_hashed
from muntin.aggregates.texts import Bytes, texts
from muntin.deferred_import import DeferredImport
from muntin.errors import DataError
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.sketches import bloom_kernels
else:
    bloom_kernels = DeferredImport("muntin.aggregates.sketches.bloom_kernels")

__all__ = ["Bloom", "might_contain"]

Words = npt.NDArray[np.uint64]

_SEED = 9001
_FAMILY, _VERSION, _EMPTY = 21, 1, 4
_HEAD = struct.Struct("<BBBBHxxQIxxxx")
_ONES = struct.Struct("<Q")

_hashes_bytes = has_arrow_order
"""Whether values are hashed as bytes: strings, binaries, and decimals as they are written."""
_HASHED = Accepted("numbers, times, strings or bytes", lambda type_: is_hashed(type_) or _hashes_bytes(type_))


@dataclass(frozen=True, slots=True)
class FilterBits(ArrayPartial):
    """The bits of all values that are not null. State: (rows, words) of 64 bits."""

    expr: Expr
    words: int
    hashes: int

    def lift(self, g: Groups, needs: States) -> Words:
        out = np.zeros((g.n, self.words), dtype=np.uint64)
        array, valid = g.array(self.expr), g.valid(self.expr)
        if _hashes_bytes(array.type):
            bloom_kernels.add_texts(*_texts(array), valid, g.ids(), self.hashes, np.uint64(_SEED), out)
        else:
            bloom_kernels.add_words(_numbers(array), valid, g.ids(), self.hashes, np.uint64(_SEED), out)
        return out

    def reduce(self, state: Words, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Words:
        out = np.zeros((len(lo), self.words), dtype=np.uint64)
        bloom_kernels.unite_rows(state, rows, lo, hi, out)
        return out

    def to_arrow(self, state: Words) -> dict[str, pa.Array]:
        return {"bits": pa.FixedSizeListArray.from_arrays(pa.array(state.reshape(-1)), self.words)}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Words:
        return arrays.read_numbers(columns["bits"].flatten(), np.uint64).reshape(-1, self.words)


@dataclass(frozen=True, slots=True)
class Bloom(Aggregate):
    """A Bloom filter of the values, as bytes: `might_contain` never says no to one of them.

    To other values it says yes with the probability `error`, as long as there are at most `size`
    distinct values; with more, more often. It takes 1.44 * log2(1 / error) bits for each of `size`,
    in every slice: 12 KB by default. The bytes are a Bloom filter of Apache DataSketches (for Java and
    C++), with the seed 9001. Equal integers of any width have the same hash, strings hash as UTF-8; the
    empty string is ignored.

    >>> seen = Bloom("user")
    >>> users = seen.lower(seen.combine(seen.lift("ann"), seen.lift("bob")))
    >>> might_contain(users, "bob"), might_contain(users, "eve")
    (True, False)
    """

    column: ColumnLike
    size: int = field(default=10_000, metadata=whole_within(1, 10**9, "1 to 10**9"))
    error: float = field(default=0.01, metadata=must(BETWEEN_0_AND_1))

    empty = 0

    def _partial(self) -> FilterBits:
        bits = math.ceil(-self.size * math.log(self.error) / math.log(2) ** 2)
        hashes = math.ceil(-math.log2(self.error))
        return FilterBits(self.inputs[0], max(1, math.ceil(bits / 64)), max(1, hashes))

    def lift(self, value: Any, at: Order = ORIGIN) -> int:
        """The bits as one large integer."""
        one = np.zeros(1, dtype=np.int64)
        column = pa.array([value], pa.string() if value is None else None)
        state = self._partial().lift(Groups(1, one, True, one, one, {self.inputs[0]: column}), ())
        return int.from_bytes(state.astype("<u8").tobytes(), "little")

    def combine(self, p: int, q: int) -> int:
        return p | q

    def lower(self, p: int) -> bytes:
        words = self._partial().words
        return _image(np.frombuffer(p.to_bytes(8 * words, "little"), "<u8"), self._partial().hashes)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require(self, types, _HASHED)
        partial = self._partial()

        def lower(states: States) -> pa.Array:
            return pa.array([_image(bits, partial.hashes) for bits in states[0]], pa.binary())

        return Bound(pa.binary(), (partial,), lower)


def might_contain(bloom: bytes, value: Any) -> bool:
    """Whether the window of a `bloom` filter may contain the value; if not, it surely does not.

    >>> visitors = Bloom("user", size=100, error=0.001)
    >>> might_contain(visitors.lower(visitors.lift(7)), 7)
    True
    """
    if len(bloom) < _HEAD.size or bloom[1] != _VERSION or bloom[2] != _FAMILY:
        raise DataError("this is no Bloom filter as the aggregate bloom gives it")
    _, _, _, flags, hashes, seed, words = _HEAD.unpack_from(bloom)
    if flags & _EMPTY:
        return False
    bits = np.frombuffer(bloom, "<u8", count=words, offset=_HEAD.size + _ONES.size)
    array = pa.array([value])
    if _hashes_bytes(array.type):
        _, data = _texts(array)
        return bool(len(data) and bloom_kernels.has_text(bits, data, hashes, np.uint64(seed)))
    return bool(bloom_kernels.has_word(bits, _numbers(array)[0], hashes, np.uint64(seed)))


def _image(bits: Words, hashes: int) -> bytes:
    """The filter in the binary form of Apache DataSketches."""
    ones = int(np.bitwise_count(bits).sum())
    if not ones:
        return _HEAD.pack(3, _VERSION, _FAMILY, _EMPTY, hashes, _SEED, len(bits))
    head = _HEAD.pack(4, _VERSION, _FAMILY, 0, hashes, _SEED, len(bits))
    return head + _ONES.pack(ones) + bits.astype("<u8").tobytes()


def _texts(array: pa.Array) -> tuple[Ints, Bytes]:
    return texts(array.cast(pa.string()) if arrays.is_decimal(array.type) else array)


def _numbers(array: pa.Array) -> Words:
    """The 64 bits of each number that are hashed; anything where null."""
    if t.is_floating(array.type):
        values = arrays.floats(array) + 0.0  # -0.0 is 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return hash_integers(array).view(np.uint64)
