"""The edges of periodic windows as arithmetic progressions (offset, period)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import lcm

import numpy as np

Progression = tuple[int, int]
COUNTED_EDGES = 20_000
"""Bounds the edges that `edges_per_unit` lists and sorts."""


def fuse(progressions: Iterable[Progression]) -> list[Progression]:
    """Drop every progression whose members another one has as well.

    The query fusion of [scotty Alg. 2].

    >>> fuse([(0, 2), (0, 6), (1, 6)])
    [(0, 2), (1, 6)]
    """
    return list(_fused(tuple(sorted({(p, o % p) for o, p in progressions}))))


@lru_cache(maxsize=32)  # quadratic, and a plan and its edges ask for it several times
def _fused(by_period: tuple[tuple[int, int], ...]) -> tuple[Progression, ...]:
    distinct = [(o, p) for p, o in by_period]
    offsets, periods = np.array(distinct, dtype=np.int64).reshape(-1, 2).T
    is_distinct = np.ones(len(distinct), dtype=np.bool_)
    for i, (offset, period) in enumerate(distinct):
        if is_distinct[i]:
            covered = (periods % period == 0) & ((offsets - offset) % period == 0)
            is_distinct[i + 1 :] &= ~covered[i + 1 :]
    return tuple(pair for pair, keep in zip(distinct, is_distinct.tolist(), strict=True) if keep)


def edges_per_unit(progressions: list[Progression]) -> float:
    """Distinct edges per unit of time, counted over the common multiple of the periods, or a part of it.

    Edges whose period exceeds that part are counted as distinct: few of them coincide with others.

    >>> edges_per_unit([(0, 2), (0, 3)])
    0.6666666666666666
    """
    return _density(tuple(fuse(progressions)))


@lru_cache(maxsize=32)
def _density(fused: tuple[Progression, ...]) -> float:
    density = sum(1 / period for _, period in fused)
    if len(fused) < 2:
        return float(density)
    whole = lcm(*(period for _, period in fused))
    most = int(COUNTED_EDGES / density)  # the common multiple of many periods is beyond any float
    stretch = min(whole, most)
    edges = [np.arange(offset, stretch, period) for offset, period in fused if period <= stretch]
    merged = np.sort(np.concatenate(edges))
    distinct = 1 + np.count_nonzero(merged[1:] != merged[:-1])
    return float(distinct / stretch) + sum(1 / period for _, period in fused if period > stretch)
