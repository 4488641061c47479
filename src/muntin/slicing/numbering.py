"""The keys of a large batch get their ids on several threads, the same as on one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.memory import fresh
from muntin.slicing.keys import KeyTable
from muntin.slicing.parallel.threads import Threads

__all__ = ["number_keys"]

Ids = npt.NDArray[np.int64]

FIRST = 65_536
"""So many tuples show most keys of all,"""
SHARE = 4
"""where so many of them have the same key, or more."""
_NONE: Ids = np.zeros(0, dtype=np.int64)


def number_keys(keys: KeyTable, columns: list[pa.Array], threads: Threads) -> Ids:
    """As `KeyTable.encode`: each thread numbers a piece, and the pieces' keys are numbered in turn."""
    if keys.is_quick(columns):
        return _find(keys, columns[0], threads)
    rows = len(columns[0])
    size, all_ids = -(-rows // threads.number), fresh(rows)

    def number(begin: int) -> tuple[Ids, list[pa.Array]]:
        own = KeyTable(keys.types)
        codes = own.encode([column.slice(begin, size) for column in columns])
        return codes, own.values(np.arange(len(own)))

    def renumber(begin: int, codes: Ids, ids: Ids) -> None:
        np.take(ids, codes, out=all_ids[begin : begin + size], mode="clip")  # as "raise" takes a copy

    begins = range(0, rows, size)
    found = threads.map(number, begins)
    ids = [keys.encode(values) for _, values in found]
    threads.map(renumber, begins, [codes for codes, _ in found], ids)
    return all_ids


def _find(keys: KeyTable, column: pa.Array, threads: Threads) -> Ids:
    """Number the first keys, most likely all, and look up those of the other tuples on all threads."""
    ids = fresh(len(column))
    ids[:FIRST] = keys.encode([column.slice(0, FIRST)])
    if SHARE * len(keys) > FIRST:  # so many that there are likely more
        ids[FIRST:] = keys.encode([column.slice(FIRST)])
        return ids
    size = max(1, -(-(len(column) - FIRST) // threads.number))

    def find(begin: int) -> Ids:
        own = ids[begin : begin + size]
        return begin + np.flatnonzero(own < 0) if keys.find(column.slice(begin, size), own) else _NONE

    new = np.concatenate([_NONE, *threads.map(find, range(FIRST, len(column), size))])
    if len(new):  # in the order in which they come, as if all had been numbered in turn
        ids[new] = keys.encode([column.take(pa.array(new))])
    return ids
