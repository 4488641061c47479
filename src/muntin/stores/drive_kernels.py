# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""Whole workloads in one compiled loop, so that a measurement sees the store and not the interpreter.

Times are made from a counter that starts at ``t``; values come from ``vs``, over and over. Every
driver stops when the store has no room left, and returns how far it came.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import put
from muntin.stores.queue_kernels import FULL


def insert(D: Any, t: int, v: Any) -> int:
    """Bound to the store's own."""
    raise NotImplementedError


def evict(D: Any) -> int:
    """Bound to the store's own."""
    raise NotImplementedError


def query(D: Any) -> Any:
    """Bound to the store's own."""
    raise NotImplementedError


def evict_before(D: Any, t: int) -> int:
    """Bound to the store's own."""
    raise NotImplementedError


def insert_bulk(D: Any, X: Any, ts: Any, vs: Any) -> int:
    """Bound to FiBA's own."""
    raise NotImplementedError


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
    """Rounds of bulk evict + bulk insert + query, ``bulk`` entries each; entries done."""
    done = 0
    while done < n:
        for j in range(bulk):
            ts[j] = t + done + j
        evict_before(D, oldest + done + bulk)
        if insert_bulk(D, X, ts, vs) == FULL:
            return done
        put(out, 0, query(D))
        done += bulk
    return done
