"""Keys as dense numbers: every key of the stream gets an id, batch by batch, without a loop over keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.key_columns import KeyColumn, plain_type
from muntin.slicing.key_index import KeyIndex, is_dense

Ids = npt.NDArray[np.int64]


class KeyTable:
    """Maps the values of the key columns to ids 0, 1, 2, ... in order of first appearance.

    Several columns are folded pairwise: each column has a dictionary of its own, and each pair of
    (id so far, code of the next column) is looked up in a dictionary of pairs. A null is a key like
    any other. A query without key columns has the single key 0.

    >>> keys = KeyTable((pa.string(),))
    >>> keys.encode([pa.array(["a", "b", "a", None])]).tolist()
    [0, 1, 0, 2]
    >>> keys.encode([pa.array(["b", "c"])]).tolist()
    [1, 3]
    >>> keys.values(np.array([3, 0]))[0].to_pylist()
    ['c', 'a']
    """

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        self.types = tuple(plain_type(kind) for kind in types)
        self._columns = [KeyColumn.of(kind) for kind in self.types]
        self._pairs: list[pa.Array] = [pa.array([], type=pa.int64()) for _ in types[1:]]
        self._indexes = [KeyIndex() for _ in types[1:]]

    def draft(self) -> KeyTable:
        """A copy to which keys may be added; indexes are shared, and forget keys that were taken back."""
        if not self.types:
            return self
        new = object.__new__(KeyTable)
        new.types, new._columns, new._pairs = self.types, self._columns.copy(), self._pairs.copy()
        new._indexes = self._indexes.copy()
        return new

    def __len__(self) -> int:
        if not self.types:
            return 1
        return len(self._pairs[-1]) if self._pairs else len(self._columns[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the dictionaries."""
        return sum(int(c.nbytes) for c in (*self._columns, *self._pairs))

    def encode(self, columns: list[pa.Array], out: Ids | None = None) -> Ids:
        """The id of each tuple's key, in `out` if given; keys that are not known are added."""
        last = len(columns) - 1
        self._columns[0], ids = self._columns[0].encode(columns[0], None if last else out)
        for k in range(1, len(columns)):
            self._columns[k], codes = self._columns[k].encode(columns[k])
            pair = pa.array((ids << 32) | codes)
            into = out if k == last else None
            self._pairs[k - 1], ids = self._indexes[k - 1].encode(self._pairs[k - 1], pair, into)
        return ids

    def is_dense(self, columns: list[pa.Array]) -> bool:
        """Whether a plain table serves these keys."""
        indexed = len(columns) == 1 and self._columns[0].index is not None and not columns[0].null_count
        return indexed and columns[0].type == self.types[0] and is_dense(columns[0])

    def copy(self) -> KeyTable:
        """An independent copy with the same keys."""
        copy = KeyTable(self.types)
        copy._columns = [
            replace(old, index=new.index) for old, new in zip(self._columns, copy._columns, strict=True)
        ]
        copy._pairs = list(self._pairs)
        return copy

    def values(self, ids: Ids) -> list[pa.Array]:
        """The key columns' values for these ids."""
        if not self.types:
            return []
        codes: list[Ids] = []
        rest = ids
        for pairs in reversed(self._pairs):
            pair = pairs.to_numpy()[rest]
            codes.append(pair & 0xFFFFFFFF)
            rest = pair >> 32
        codes.append(rest)
        return [column.values(code) for column, code in zip(self._columns, reversed(codes), strict=True)]

    def all_values(self) -> list[pa.Array]:
        """The key columns' values for all ids, in turn."""
        return self.values(np.arange(len(self), dtype=np.int64))

    def keep(self, ids: Ids) -> KeyTable:
        """A table of only these keys, renumbered 0, 1, 2, ... in the given order."""
        compacted = KeyTable(self.types)
        if self.types and len(ids):
            compacted.encode(self.values(ids))
        return compacted

    def retyped(self, types: tuple[pa.DataType, ...]) -> KeyTable:
        """The same keys, with a type for columns that were null all the time."""
        typed = KeyTable(types)
        typed._pairs = self._pairs
        typed._columns = [
            old if old.kind == new.kind else new.encode(pa.nulls(len(old), new.kind))[0]
            for old, new in zip(self._columns, typed._columns, strict=True)
        ]
        return typed
