"""Lists as results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Aggregate, Ints
from muntin.errors import DataError, PlacedError

__all__ = ["list_array"]


class ListError(DataError, PlacedError):
    """Lists that do not fit into one column."""


def list_array(aggregate: Aggregate, offsets: Ints, items: pa.Array, type_: pa.DataType) -> pa.Array:
    """One list for each row `offsets[j]:offsets[j + 1]` of the items."""
    if len(items) >= 2**31:
        raise ListError(
            f"the lists of one column must hold less than 2**31 values: got {len(items):,} of "
            f"{aggregate.constructor}; advance the watermark in smaller steps"
        )
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items, type=type_)
