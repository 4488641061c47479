"""Lists as results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Aggregate, Ints
from muntin.errors import DataError

__all__ = ["list_array"]


def list_array(aggregate: Aggregate, offsets: Ints, items: pa.Array, type_: pa.DataType) -> pa.Array:
    """One list for each row `offsets[j]:offsets[j + 1]` of the items."""
    if len(items) >= 2**31:
        raise DataError(
            f"{aggregate.constructor} found {len(items)} values at once; a list array holds less than 2**31"
        )
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items, type=type_)
