"""Rows of results whose table is made when it is first read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.partials import PartialSet

if TYPE_CHECKING:
    from muntin.slicing.emission.results import ResultShape

__all__ = ["DeferredRows"]

EDGES = 6
"""The columns of a window before its partials."""


@dataclass(slots=True)
class DeferredRows:
    """Windows that are emitted for the first time, as the compiled step lists them: `table` cannot fail.

    They refer to no state of the operator. Until the table is made, a row takes 48 bytes and 8 for each
    word of its partials, and the memory of the values of its keys.
    """

    shape: ResultShape
    partials: PartialSet
    windows: npt.NDArray[np.int64]
    """Start, end, the number of the window, the key and the slices, and the words of the partials."""
    keys: list[pa.Array]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.windows[0])

    def table(self) -> pa.Table:
        """The rows as a table, with the values of the aggregates."""
        table = self.shape.in_one_message(self.windows, self.keys, flat=False)
        if table is not None:
            return table
        values, shown = self.partials.lower(self.partials.from_words(self.windows[EDGES:])), self.shape.shown
        if not shown.everywhere:
            values = shown.masked(values, number=self.windows[2], start=self.windows[0])
        return self.shape.first_rows(self.windows, values, self.keys)

    def flat_table(self) -> pa.Table | None:
        """The same with plain columns for the edges; None where it must be made of `table`."""
        return self.shape.in_one_message(self.windows, self.keys, flat=True)
