"""Tuples at the door: times are read, bad tuples are found and treated by policy."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError
from muntin.slicing.binding import Binding
from muntin.timeline import LIMIT

LOG = logging.getLogger("muntin")
SAMPLE = 3


def _measurable(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are positions on a measure: numbers below 2**62, no null, no NaN."""
    there: npt.NDArray[np.bool_] = pc.is_valid(column).to_numpy(zero_copy_only=False).copy()
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
    there &= (values < LIMIT) & (values > -LIMIT)
    return there


class Arrivals:
    """Separates tuples without a usable time (or measure) from the others."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.bad = 0
        self.routed: list[pa.RecordBatch] = []

    def timeless(self, data: pa.RecordBatch, time: str) -> bool:
        """Whether the first tuples have no time at all, so that not even its type is known; counts them."""
        if time not in data.schema.names or not pa.types.is_null(data.column(time).type) or not len(data):
            return False
        shown = [data.slice(i, 1).to_pylist()[0] for i in range(min(SAMPLE, len(data)))]
        if self.policy == "fail":
            raise DataError(
                f"every tuple needs a value in {time}: none of {len(data)} has one, first row 0: {shown[0]}; "
                'repair them, or choose bad="skip" or bad="route"'
            )
        self._set_aside(data, time, shown)
        return True

    def _set_aside(self, wrong: pa.RecordBatch, columns: str, shown: list[dict[str, Any]]) -> None:
        LOG.warning("%d bad tuples (no usable value in %s), such as %s", len(wrong), columns, shown)
        self.bad += len(wrong)
        if self.policy == "route":
            self.routed.append(wrong)

    def good(self, data: pa.RecordBatch, binding: Binding) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
        """The usable tuples and their times; with the policy "fail" an error before anything changes."""
        strict = self.policy == "fail"
        time, valid = binding.time.to_internal(data.column(binding.spec.time), strict=strict)
        for name in binding.measures:
            there = _measurable(data.column(name))
            valid = there if valid is None else valid & there
        if valid is None or valid.all():
            return data, time
        wrong = np.flatnonzero(~valid)
        shown = [data.slice(int(i), 1).to_pylist()[0] for i in wrong[:SAMPLE]]
        columns = ", ".join([binding.spec.time, *binding.measures])
        if strict:
            raise DataError(
                f"every tuple needs a value in {columns}: {len(wrong)} of {len(data)} have no usable one, "
                f'first row {wrong[0]}: {shown[0]}; repair them, or choose bad="skip" or bad="route"'
            )
        self._set_aside(data.take(pa.array(wrong)), columns, shown)
        return data.take(pa.array(np.flatnonzero(valid))), time[valid]
