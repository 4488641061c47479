"""A small table of results as one Arrow message, of which Arrow makes all columns in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.emission.message_kernels import ENDS, VALUES, filled

__all__ = ["MOST_ROWS", "ResultMessages"]

Column = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

MOST_ROWS = 256
"""The most rows of a message: a template is cached for each number of rows."""


class ResultMessages:
    """Makes tables of a schema from the windows that the compiled step lists.

    A message is a copy of a template, which Arrow itself makes, with other names, edges and values.
    """

    def __init__(self, schema: pa.Schema, keys: int, lowered: Column, longest: int, unit: int) -> None:
        """The first columns are `keys`, which are no part of a message. `longest`: bytes of a name."""
        self.schema = schema
        self.without_keys = pa.schema(list(schema)[keys:])
        self._lowered, self._longest, self._unit = lowered, max(longest, 1), unit
        self._template = lru_cache(MOST_ROWS)(self._make_template)

    def table(
        self, windows: Column, keys: Sequence[pa.Array], begins: Column, texts: Bytes
    ) -> pa.Table | None:
        """The table of these windows; None where an aggregate has no value. At most `MOST_ROWS` rows."""
        template, places = self._template(windows.shape[1])
        message = filled(template, places, windows, self._lowered, begins, texts, self._unit)
        if not len(message):
            return None
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), self.without_keys)
        if keys:
            return pa.Table.from_arrays([*keys, *batch.columns], schema=self.schema)
        return pa.Table.from_batches([batch])

    def _make_template(self, rows: int) -> tuple[Bytes, Column]:
        """A message with this number of rows, and where its columns begin."""
        columns = [_blank(field.type, rows) for field in self.without_keys]
        columns[0] = pa.repeat("x" * self._longest, rows)
        columns[-2] = pa.repeat("final", rows)
        message = pa.RecordBatch.from_arrays(columns, schema=self.without_keys).serialize()
        batch = pa.ipc.read_record_batch(message, self.without_keys)
        buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None]
        number = VALUES + len(self._lowered)
        assert len(buffers) > number > ENDS, "names have two buffers, edges and values one each"
        places = np.array([buffer.address - message.address for buffer in buffers[:number]])
        return np.frombuffer(message, np.uint8), places


def _blank(kind: pa.DataType, rows: int) -> pa.Array:
    """Zeros of a type of 64 bits, or of a struct of such types, without a null."""
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_blank(field.type, rows) for field in kind], fields=list(kind))
    if pa.types.is_string(kind):
        return pa.repeat("", rows)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(np.zeros(rows, dtype=np.int64))])
