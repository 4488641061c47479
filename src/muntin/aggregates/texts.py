"""Strings and binaries as bytes and back."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from muntin.aggregates.arrays import Bools, Ints

__all__ = ["Bytes", "from_texts", "texts"]

Bytes: TypeAlias = npt.NDArray[np.uint8]


def texts(array: pa.Array) -> tuple[Ints, Bytes]:
    """Where each string or binary begins, and the bytes of all."""
    plain = array.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    if offsets is None or len(plain) == 0:
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    starts = np.frombuffer(offsets, np.int64, count=plain.offset + len(plain) + 1)[plain.offset :]
    return starts, np.frombuffer(data or b"", np.uint8)


def from_texts(starts: Ints, data: Bytes, ok: Bools, type_: pa.DataType) -> pa.Array:
    """Strings from what `texts` gives; null where not `ok`."""
    large = types.is_large_string(type_)
    offsets = pa.py_buffer(starts if large else starts.astype(np.int32))
    bitmap = pa.py_buffer(np.packbits(ok, bitorder="little"))
    return pa.Array.from_buffers(type_, len(starts) - 1, [bitmap, offsets, pa.py_buffer(data)])
