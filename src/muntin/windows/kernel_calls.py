"""From tuples and contexts to the arguments of kernels, and from their rows to `Cuts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from muntin.deferred_import import DeferredImport
from muntin.windows.base import Ints
from muntin.windows.columns import Numbers, owned
from muntin.windows.tuple_driven import Contexts, Cuts, Tuples

if TYPE_CHECKING:
    from muntin.windows import cut_kernels
else:
    cut_kernels = DeferredImport("muntin.windows.cut_kernels")

__all__ = ["arrays", "cuts_of_rows", "matrix"]

_NO_PAIRS = np.zeros((2, 0), np.int64)


def arrays(tuples: Tuples) -> tuple[Ints, Ints, Ints]:
    """Offsets, times and ranks, with which the arguments of a kernel begin."""
    return owned(tuples.offsets), owned(tuples.time), owned(tuples.rank)


def matrix(contexts: Contexts, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Contexts as a matrix of numbers, one row each, that shares their memory.

    A context is laid out before the first tuple shows the type of a column, so the
    8 bytes of a field hold either an int64 or a float64.
    """
    if not contexts.flags.c_contiguous:
        raise ValueError("contexts must be contiguous, to be advanced in place")
    rows: npt.NDArray[Any] = contexts.view(dtype).reshape(len(contexts), contexts.itemsize // 8)
    return rows


def cuts_of_rows(rows: Ints, marks: Numbers | None = None, opened: Ints = _NO_PAIRS) -> Cuts:
    """Cuts from rows (segment, begin, end, start, stop, due), marks (low, high), opened (segment, begin)."""
    # Copies of the columns in use: the matrix behind them has room for more.
    segment, begin, end, start, stop, due = rows.copy()
    low, high = (None, None) if marks is None else marks.copy()
    edge_segment, edge_rank = cut_kernels.merged_edges(segment, begin, end, opened).copy()
    return Cuts(segment, begin, end, start, stop, due, low, high, edge_segment, edge_rank)
