"""Integer keys: a compiled hash table beside the values that are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.memory import fresh
from muntin.slicing.key_kernels import fill, find_codes, look_up, look_up_known
from muntin.timeline.extent_kernels import extent

Codes = npt.NDArray[np.int64]

_SMALLEST = 1024
_DENSE = 2
"""A table of so many entries per tuple of a batch is made in less time than it saves."""
_FIRST = 65_536
_LEAST, _MOST = -(2**63), 2**63 - 1

_NONE: Codes = np.zeros(0, dtype=np.int64)
_NONE.flags.writeable = False


def is_indexable(kind: pa.DataType) -> bool:
    """Whether values of this type are stored as integers of up to 64 bits, one for each value."""
    return bool(t.is_integer(kind) or (t.is_temporal(kind) and not t.is_interval(kind)))


class KeyIndex:
    """Finds the codes of integers, or of what is stored as such.

    Every entry is compared with the value that it stands for, and a table made for other known values
    is made anew. So it may be shared by all that is made from one `KeyColumn`, and nothing has to be
    put back when a step fails. A batch whose values lie close together, as numbers given one after the
    other do, is looked up in a plain table of its own.

    >>> index = KeyIndex()
    >>> known, codes = index.encode(pa.array([7, 5]), pa.array([5, 9, 5, 7]))
    >>> known.to_pylist(), codes.tolist()
    ([7, 5, 9], [1, 2, 1, 0])
    """

    def __init__(self) -> None:
        self._known: pa.Array | None = None
        self._slots = np.zeros(0, dtype=np.int64)

    def encode(self, known: pa.Array, column: pa.Array) -> tuple[pa.Array, Codes]:
        """Codes of the values of a column without nulls in `known`, which grows by those it lacks."""
        values = _stored(column)
        codes = fresh(len(values))
        known, done = _look_up(known, column, values, codes)
        if done == len(values):
            return known, codes
        if known is not self._known:
            self._build(known, _SMALLEST)
        while True:
            first = np.empty(len(self._slots) // 2, dtype=np.int64)
            done, added = find_codes(values, _stored(known), _null_in(known), self._slots, done, codes, first)
            if added:
                known = pa.concat_arrays([known, column.take(pa.array(first[:added]))])
            if done == len(values):
                self._known = known
                return known, codes
            self._build(known, 4 * len(self._slots))

    def _build(self, known: pa.Array, smallest: int) -> None:
        """A table with room for twice as many entries, at least."""
        self._known = None  # until the table is whole
        self._slots = np.full(max(smallest, 1 << (4 * len(known)).bit_length()), -1, dtype=np.int64)
        fill(_stored(known), _null_in(known), self._slots)
        self._known = known


def look_dense(column: pa.Array) -> bool:
    """Whether the values, by their first ones, lie so close together that a plain table is quickest."""
    low, high = _range(_stored(column)[:_FIRST])
    return _spare(low, high, 0, len(column)) > 0


def find_dense(known: pa.Array, column: pa.Array, codes: Codes) -> int:
    """Fill in the codes of values without nulls in `known`, which lie close together; -1 for others.

    Returns how many others there are.
    """
    stored = _stored(known)
    low, high = _range(stored)
    table = np.full(high - low + 1, -1, dtype=np.int64)
    return look_up_known(_stored(column), stored, low, table, codes)


def _spare(low: int, high: int, known: int, size: int) -> int:
    """How many more places a table may have that begins with these; none where values are too far apart."""
    return max(0, _DENSE * size - (high - low) - known)


def _look_up(known: pa.Array, column: pa.Array, values: Codes, codes: Codes) -> tuple[pa.Array, int]:
    """Fill in the codes of values that lie close together, up to the first that does not.

    Returns the values that are known now, and how many codes are filled in. The first values tell
    where the others may lie; to look at all of them costs half as much as all the rest.
    """
    done = 0
    for sample in (_FIRST, len(values)):
        low, high = _range(values[:sample])
        spare = _spare(low, high, len(known), len(values))
        if not spare:
            break
        if sample < len(values):  # the others may lie a little beside the first
            room = min(high - low, spare) // 2
            low, high = max(low - room, _LEAST), min(high + room, _MOST)
        table = np.full(high - low + 1, -1, dtype=np.int64)
        first = np.empty(min(len(table), len(values)), dtype=np.int64)
        done, added = look_up(values, _stored(known), _null_in(known), low, done, table, codes, first)
        if added:
            known = pa.concat_arrays([known, column.take(pa.array(first[:added]))])
        if done == len(values):
            break
    return known, done


def _range(values: Codes) -> tuple[int, int]:
    return extent(values)[:2] if len(values) else (0, 0)


def _null_in(known: pa.Array) -> int:
    """The code of the null, or -1."""
    return int(np.argmax(known.is_null().to_numpy(zero_copy_only=False))) if known.null_count else -1


def _stored(array: pa.Array) -> npt.NDArray[np.int64]:
    """The integers that the values are stored as; anything for a null."""
    if not len(array):
        return _NONE
    dtype = np.dtype(f"{'u' if t.is_unsigned_integer(array.type) else 'i'}{array.type.bit_width // 8}")
    raw = np.frombuffer(array.buffers()[1], dtype, count=array.offset + len(array))[array.offset :]
    stored: npt.NDArray[np.int64] = raw.astype(np.int64, copy=False)
    # Kernels are compiled once, for read-only arrays: most are views of Arrow's memory.
    stored = stored.view()
    stored.flags.writeable = False
    return stored
