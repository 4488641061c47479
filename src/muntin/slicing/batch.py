"""A batch of tuples inside the operator: keys as ids, times as int64, inputs as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions import Expr

Column = npt.NDArray[np.int64]


class Extent(NamedTuple):
    """Smallest and largest time of a batch; whether times never go back; whether it has one key."""

    low: int
    high: int
    ordered: bool
    one_key: bool


@dataclass
class Batch:
    """Tuples in order of arrival, or sorted by (key, time, arrival) where a function says so."""

    key: Column
    time: Column
    seq: Column
    values: dict[Expr, pa.Array]

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def extent(self) -> Extent:
        """What one look at a batch of at least one tuple tells."""
        from muntin.slicing.cutting_kernels import extent

        return Extent(*extent(self.key, self.time))

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        own = self.key.nbytes + self.time.nbytes + self.seq.nbytes
        return own + sum(int(v.nbytes) for v in self.values.values())

    def take(self, index: Column) -> Batch:
        """The tuples at these positions."""
        where = pa.array(index)
        return Batch(
            self.key[index],
            self.time[index],
            self.seq[index],
            {e: v.take(where) for e, v in self.values.items()},
        )

    def with_columns(self, types: Mapping[Expr, pa.DataType]) -> Batch:
        """The same tuples with null in the columns that they lack: no query has asked for them so far.

        A column of another type has been null all the time, and its type was not known.
        """
        values = {e: pa.nulls(len(self), kind) for e, kind in types.items()}
        values |= {e: v for e, v in self.values.items() if e in types and v.type == types[e]}
        return Batch(self.key, self.time, self.seq, values)

    def order(self) -> Column:
        """Positions that sort the tuples by (key, time, arrival)."""
        return np.lexsort((self.seq, self.time, self.key))


def concat(batches: list[Batch]) -> Batch:
    """The tuples of several batches one after the other."""
    if len(batches) == 1:
        return batches[0]
    return Batch(
        np.concatenate([b.key for b in batches]),
        np.concatenate([b.time for b in batches]),
        np.concatenate([b.seq for b in batches]),
        {e: pa.concat_arrays([b.values[e] for b in batches]) for e in batches[0].values},
    )
