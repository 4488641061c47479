# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so their items are Any)
"""Whole workloads of a store in one compiled loop, so that a measurement contains no interpreter time.

Times count up from ``t``; values are those of ``vs``, repeated. Every driver stops when the store has no
room left, and returns the number of entries or rounds done.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_bulk_kernels import append_many, insert_sorted
from muntin.stores.fiba_layout import NEWEST
from muntin.stores.vocabulary import *

insert: Any = None  # these four are replaced by the store's own
evict: Any = None
evict_before: Any = None
query: Any = None


def drive_fill(D: Any, n: int, t: int, vs: Any) -> int:
    """Insert n entries in order."""
    mask = len(vs) - 1
    for i in range(n):
        if insert(D, t + i, vs[i & mask]) == FULL:
            return i
    return n


def drive_rounds(D: Any, n: int, t: int, vs: Any, out: Any) -> int:
    """Rounds of evict oldest + insert + query; the last answer goes to ``out``."""
    mask = len(vs) - 1
    for i in range(n):
        evict(D)
        if insert(D, t + i, vs[i & mask]) == FULL:
            return i
        put(out, 0, query(D))
    return n


def drive_bulks(D: Any, X: Any, n: int, bulk: int, t: int, oldest: int, ts: Any, vs: Any, out: Any) -> int:
    """Rounds of FiBA's bulk evict + bulk insert + query, ``bulk`` entries each."""
    done = 0
    while done < n:
        for j in range(bulk):
            ts[j] = t + done + j
        evict_before(D, oldest + done + bulk)
        late = min(max(D[0][NEWEST] + 1 - ts[0], 0), bulk)
        if late > 0 and insert_sorted(D, X, ts, vs, late) == FULL:
            return done
        if append_many(D, ts, vs, late) < bulk:
            return done
        put(out, 0, query(D))
        done += bulk
    return done
