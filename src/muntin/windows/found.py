"""From the rows that a kernel wrote, or that the interpreter collected, to `Cuts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.windows.base import Ints
from muntin.windows.columns import Numbers
from muntin.windows.tuple_driven import Cuts

if TYPE_CHECKING:
    from muntin.windows import row_kernels
else:
    row_kernels = DeferredImport("muntin.windows.row_kernels")

__all__ = ["cuts_of_rows", "cuts_of_user_code"]

NO_PAIRS = np.zeros((2, 0), np.int64)


def cuts_of_rows(rows: Ints, marks: Numbers | None = None, opened: Ints = NO_PAIRS) -> Cuts:
    """Cuts from rows (segment, begin, end, start, stop, due), marks (low, high), opened (segment, begin)."""
    # Copies of the part that was written: the matrix behind it had room for more.
    segment, begin, end, start, stop, due = (row.copy() for row in rows)
    low, high = (None, None) if marks is None else (row.copy() for row in marks)
    edge_segment, edge_rank = (row.copy() for row in row_kernels.merged_edges(segment, begin, end, opened))
    return Cuts(segment, begin, end, start, stop, due, low, high, edge_segment, edge_rank)


def cuts_of_user_code(rows: list[tuple[int, ...]], opened: Iterable[tuple[int, int]] = ()) -> Cuts:
    """The same from lists, in any order of begins: what the user's code says needs no order."""
    columns = np.array(rows, np.int64).reshape(-1, 6)
    pairs = {(row[0], rank) for row in rows for rank in row[1:3]} | set(opened)
    edges = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    segment, begin, end, start, stop, due = np.ascontiguousarray(columns.T)
    edge_segment, edge_rank = np.ascontiguousarray(edges.T)
    return Cuts(segment, begin, end, start, stop, due, None, None, edge_segment, edge_rank)
