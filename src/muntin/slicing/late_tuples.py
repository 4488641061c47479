"""Tuples before the final time, which wait until the watermark moves and judges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.schema import Change, Role, Schema, Table
from muntin.slicing.slice_table import SliceTable

__all__ = ["LateTuples", "RawTuples"]

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RawTuples(Table):
    """Tuples as they arrived, with the key and the time of each."""

    SCHEMA: ClassVar[Schema] = Schema({"key": Role.KEY, "time": Role.TIME})

    key: Column
    time: Column
    tuples: pa.RecordBatch

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers and the tuples."""
        return int(self.key.nbytes + self.time.nbytes + self.tuples.nbytes)


@dataclass(frozen=True, slots=True)
class LateTuples:
    """Tuples that wait to be judged: as slices, and as they arrived where late ones are routed."""

    rows: SliceTable
    raw: RawTuples | None = None

    def changed(self, change: Change) -> LateTuples:
        """The same tuples in other tables."""
        return LateTuples(change(self.rows), None if self.raw is None else change(self.raw))
