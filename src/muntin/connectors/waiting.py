"""Single records that wait to be sliced together, as long as nobody can tell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from muntin.connectors.values import sure_values, to_column
from muntin.query import EachBatch
from muntin.slicing.binding import Binding
from muntin.slicing.due import is_foreseeable, next_due
from muntin.slicing.operator import SlicingOperator
from muntin.timeline import INF, LIMIT, NEG_INF, TimeColumn

__all__ = ["MANY", "Waiting"]

MANY = 4096
"""So many records are sliced even if nothing is due; results do not depend on it."""

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


class Waiting:
    """The records that an operator has taken and not yet sliced.

    Where `advance` sets the watermark, all records wait for it. Where the watermark follows the data,
    it moves with every record, but what was taken in before only shows when a window is due. So a
    record may wait if it is not late by the watermark that it finds, and if the watermark that it
    makes is below the next one at which something is due. Early results show every record at once.
    """

    def __init__(self, engine: SlicingOperator) -> None:
        self.engine = engine
        self.records: list[Mapping[str, Any]] = []
        self._lag = 0 if engine.in_order else engine.lag
        self._watermark = NEG_INF
        self._due = INF
        self._time: TimeColumn | None = None
        self._known: Binding | None = None
        self._units = self._micros = False
        self._columns: list[tuple[str, pa.DataType, frozenset[type], int, int]] = []

    @property
    def watermark(self) -> int:
        """The watermark that these records make, or the operator's own."""
        return max(self.engine.watermark, self._watermark if self.records else NEG_INF)

    def take(self, record: Mapping[str, Any]) -> bool:
        """Let a record wait behind the others; False if it must be sliced after them, by itself."""
        if self._lag is not None:
            if not self.records:
                self._begin()
            time = self._read_time(record) if self._due > NEG_INF else None
            if time is None or time < self._watermark or not self._fits(record):
                return False
            self._watermark = max(self._watermark, time - self._lag)
            if len(self.engine.live.gaps):
                self._due = min(self._due, time + self.engine.live.gap + 1)
        self.records.append(dict(record))  # programs use one dict again and again
        return True

    @property
    def patient(self) -> bool:
        """Whether records wait for `advance`, whatever they hold and whenever they come."""
        spec = self.engine.spec
        return self._lag is None and spec.idle_after is None and not isinstance(spec.early, EachBatch)

    @property
    def over(self) -> bool:
        """Whether they must be sliced now."""
        return (
            self._watermark >= self._due
            or len(self.records) >= MANY
            or isinstance(self.engine.spec.early, EachBatch)
        )

    def _begin(self) -> None:
        """All were sliced: go on from what the operator knows."""
        engine = self.engine
        self._watermark = engine.watermark
        self._due = next_due(engine) if is_foreseeable(engine) else NEG_INF
        if engine.binding is not None:
            self._time = engine.binding.time
            if engine.binding is not self._known:
                self._learn(engine.binding)

    def _learn(self, binding: Binding) -> None:
        """Look once at the types of the columns: questions to Arrow cost more than all the rest."""
        self._known = binding
        self._units = binding.time.type == pa.int64()
        self._micros = binding.time.type == pa.timestamp("us")
        kinds = {name: binding.schema.field(name).type for name in binding.columns() - {binding.spec.time}}
        self._columns = [(name, kind, *sure_values(kind)) for name, kind in kinds.items()]

    def _read_time(self, record: Mapping[str, Any]) -> int | None:
        """The time inside; None if it is no good one."""
        column, value = self._time, record[self.engine.spec.time]
        assert column is not None
        if type(value) is int and self._units:
            return value if -LIMIT <= value <= LIMIT else None
        if type(value) is dt.datetime and value.tzinfo is None and self._micros:
            return (value - _EPOCH) // _MICROSECOND
        array, misfits = to_column([value], column.type)
        times, valid = column.to_internal(array, strict=False)
        return None if misfits or (valid is not None and not valid.all()) else int(times[0])

    def _fits(self, record: Mapping[str, Any]) -> bool:
        """Whether all other values fit their columns."""
        for name, kind, classes, low, high in self._columns:
            value = record.get(name)
            sure = low <= value <= high if type(value) is int else type(value) in classes
            if not sure and to_column([value], kind)[1]:
                return False
        return True
