"""Ranges of rows as lists of rows, for the partials that are reduced by Arrow or in Python."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Ints

__all__ = ["spread"]


def spread(rows: Ints | None, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Every row of every range, and the range that it belongs to.

    >>> spread(None, np.array([0, 1]), np.array([2, 4]))
    (array([0, 1, 1, 2, 3]), array([0, 0, 1, 1, 1]))
    """
    sizes = np.maximum(hi - lo, 0)
    which = np.repeat(np.arange(len(lo), dtype=np.int64), sizes)
    begin = np.cumsum(sizes) - sizes
    place = np.arange(len(which), dtype=np.int64) - begin[which] + lo[which]
    return (place if rows is None else rows[place]), which
