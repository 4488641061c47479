"""Single records and small batches are buffered and sliced together, where that changes no result.

The buffer reads what the engine knows, and hands out (batch, watermark); the operator passes both on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.connectors.misspelt import misspelt_field
from muntin.connectors.values import sure_values, to_column
from muntin.query import EachBatch
from muntin.slicing.arrivals import Times
from muntin.slicing.binding import Binding
from muntin.slicing.next_result import next_result
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.parallel.compiled_queries import is_compiled
from muntin.timeline import INF, LIMIT, NEG_INF, TimeColumn, TimeExtent
from muntin.timeline.extent_kernels import extent as extent_of

__all__ = ["MOST_RECORDS", "InputBuffer"]

MOST_RECORDS = 16_384
"""The most records that are buffered; results do not depend on it."""

MOST_CHECKED = 64
"""The most records that are checked one by one: making a batch of them takes longer."""
LARGEST_BUFFERED = 16_384
"""The most tuples of a batch that is buffered; a larger one is sliced at once."""
MOST_TUPLES = 65_536
"""The most tuples in buffered batches."""

MOST_BYTES = 2**30
"""The most bytes of texts in buffered batches: twice as many do not fit into one Arrow column."""

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


class InputBuffer:
    """The records and the small batches that an operator has accepted and not yet sliced.

    Where `advance` sets the watermark, all records wait for it. Where the watermark follows the data,
    it moves with every record, but earlier tuples only show when a window is complete. So a record may
    wait if it is not late by the watermark that it finds, and if the watermark that it makes is below
    the next one that brings a result. Early results show every record at once.

    A batch may wait where slicing it cannot fail: its columns have the types that the query reads, all
    times are good, and nothing is computed from it. Batches lie in front of records: a batch that arrives
    behind records has these sliced first. Records that find a watermark become a batch, too.
    """

    def __init__(
        self, engine: SlicingOperator, lag: int | None = None, declared: Collection[str] = ()
    ) -> None:
        self.engine = engine
        self.records: list[Mapping[str, Any]] = []
        self.batches: list[pa.RecordBatch] = []
        self._times: npt.NDArray[np.int64] | None = None
        """The times of a single batch; of several they are read again when they are joined."""
        self._extent: TimeExtent = (INF, NEG_INF, True)
        self.promised: int | None = None
        self._rows = self._bytes = self._seen = 0
        self._fixed_width = True
        self._no_rows: pa.RecordBatch | None = None
        """A batch without rows: joined with it, a batch is copied."""
        self._judged: tuple[Binding | None, pa.Schema, bool, int] = (None, pa.schema([]), False, 0)
        self._lag = 0 if engine.settings.in_order else lag
        spec = engine.spec
        self.patient = self._lag is None and spec.idle_after is None and not isinstance(spec.early, EachBatch)
        """Whether records wait for `advance`, whenever they come."""
        self.waits_unchecked = self.patient and spec.max_ahead is None
        """Whether they wait without a check of their time, since `max_ahead` does not apply."""
        self._watermark = NEG_INF
        self._due = INF
        self._time: TimeColumn | None = None
        self._known: Binding | None = None
        self._units = self._micros = False
        self._declared, self._known_names = frozenset(declared), frozenset[str]()
        self._columns: list[tuple[str, pa.DataType, frozenset[type], int, int]] = []

    def for_engine(self, engine: SlicingOperator) -> InputBuffer:
        """A copy that hands out the same tuples to another engine."""
        new = copy(self)
        new.engine, new.records, new.batches = engine, self.records.copy(), self.batches.copy()
        return new

    @property
    def watermark(self) -> int:
        """The watermark that these records make, or that of the engine."""
        buffered = self._watermark if self.records else NEG_INF
        return max(
            self.engine.header.watermark, buffered, NEG_INF if self.promised is None else self.promised
        )

    def take(self, record: Mapping[str, Any]) -> bool:
        """Append a record to the buffer; False if it must be sliced alone, after those in the buffer."""
        if self._lag is not None:
            if not self.records:
                self._begin()
            time = self._read_time(record) if self._due > NEG_INF else None
            if time is None or time < self._watermark or not self._fits(record):
                return False
            self._watermark = max(self._watermark, time - self._lag)
            if len(self.engine.served.gaps):
                self._due = min(self._due, time + self.engine.served.gap + 1)
        elif self.engine.spec.max_ahead is not None and not self._is_near(record):
            return False
        self.records.append(dict(record))  # the caller may reuse the dict
        return True

    def _is_near(self, record: Mapping[str, Any]) -> bool:
        """Whether the time of a record is usable, and not too far ahead of the clock."""
        if self.engine.binding is None:
            return False
        self._learn(self.engine.binding)
        return self._read_time(record) is not None

    def keep(self, batch: pa.RecordBatch) -> bool:
        """Let a batch of a trusted schema wait behind the others; False if it must be sliced after them."""
        (_, _, sure, place), rows = self._judged, batch.num_rows
        if not sure or self.records or rows > LARGEST_BUFFERED or self._rows + rows > MOST_TUPLES:
            return False
        return self.engine.header.watermark < INF and self._append(batch, place)

    def packable(self, watermark: int) -> bool:
        """Whether the records before this watermark become a batch before they are checked.

        Many records are checked faster as a batch. And where the watermark slices them anyway, a batch and
        its watermark can be one call of compiled code.
        """
        engine = self.engine
        if not self.patient or engine.plan is None:
            return False
        if len(self.records) - self._seen > MOST_CHECKED:
            return True
        return engine.plan.numeric is not None and not engine.header.is_quiet(watermark)

    def pack(self, batch: pa.RecordBatch) -> bool:
        """Let this batch wait instead of the records that it was made of; False if they must be looked at.

        That is so, too, where batches wait that have other columns: they could not be joined.
        """
        if self.batches and not batch.schema.equals(self.batches[0].schema):
            return False
        self.trust(batch.schema)
        _, _, sure, place = self._judged
        if not sure or not self._append(batch, place):
            return False
        self.records.clear()
        self._seen = 0
        return True

    def _append(self, batch: pa.RecordBatch, place: int) -> bool:
        """Let a batch wait if all of its times are good, none of them is late, and all that waits fits."""
        engine = self.engine
        assert engine.binding is not None
        times, valid, extent = engine.binding.time.to_internal(batch.column(place), strict=False)
        if valid is not None or not len(times):
            return valid is None
        low, high, ordered = extent_of(times) if extent is None else extent
        bulk = 0 if self._fixed_width else self._bytes + batch.nbytes
        if low < engine.header.watermark or bulk > MOST_BYTES or engine.arrivals.is_too_far_ahead(high):
            return False
        if self.batches:
            least, most, in_order = self._extent
            low, high, ordered = min(low, least), max(high, most), in_order and ordered and most <= low
        # A copy of these rows: what lies under a batch may be a NumPy array that is filled again. Copied
        # behind the one before it, if that is not larger, it need not be joined with it later.
        if self.batches and self.batches[-1].num_rows <= len(times):
            self.batches[-1], self._times = pa.concat_batches([self.batches[-1], batch]), None
        else:
            self._times = None if self.batches else times.copy()
            self.batches.append(pa.concat_batches([batch, self._no_rows]))
        self._extent = low, high, ordered
        self._rows, self._bytes = self._rows + len(times), bulk
        return True

    @property
    def waiting(self) -> int:
        """The number of tuples that wait."""
        return len(self.records) + self._rows

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits: no record, no batch and no watermark."""
        return not self.records and not self.batches and self.promised is None

    def trusts(self, schema: pa.Schema) -> bool:
        """Whether a batch of this schema needs no conversion, as the last one that was sliced."""
        binding, known, _, _ = self._judged
        return binding is not None and binding is self.engine.binding and schema.equals(known)

    def trust(self, schema: pa.Schema) -> None:
        """Judge the columns of a batch that was sliced unchanged: others of the same schema may wait."""
        binding = self.engine.binding
        if binding is not self._judged[0] or not schema.equals(self._judged[1]):
            sure = binding is not None and self._cannot_fail(binding, schema)
            self._judged = (binding, schema, sure, schema.get_field_index(self.engine.spec.time))
            self._no_rows = pa.RecordBatch.from_pylist([], schema=schema) if sure else None
            self._fixed_width = all(map(pa.types.is_primitive, schema.types))

    def _cannot_fail(self, binding: Binding, schema: pa.Schema) -> bool:
        plain = not (binding.measures or binding.refusing) and all(
            expr.column is not None for expr in binding.inputs
        )
        settled = not binding.unknown and not any(map(_has_dictionary, schema.types))
        return self.patient and plain and settled and is_compiled(binding.spec)

    def promise(self, watermark: int) -> bool:
        """Defer a watermark until the buffer is sliced; False if results may be due, or a record is late.

        Results do not change as long as no edge lies between this watermark and the operator's: the same
        windows are complete, and no tuple that arrives in the meantime is late for them.
        """
        if (
            not (self.batches or self.records)
            or not self.patient
            or not self.engine.header.is_quiet(watermark)
        ):
            return False
        if self.records and not self._are_on_time():
            return False
        self.promised = watermark if self.promised is None else max(self.promised, watermark)
        return True

    def _are_on_time(self) -> bool:
        """Whether all records are good and not late; each is looked at once."""
        if self._seen == len(self.records):
            return True
        binding = self.engine.binding
        assert binding is not None  # since nothing is quiet before
        self._learn(binding)
        watermark = self.engine.header.watermark
        for record in self.records[self._seen :]:
            time = self._read_time(record)
            if time is None or time < watermark or not self._fits(record):
                return False
        self._seen = len(self.records)
        return True

    def take_promise(self) -> tuple[int | None, int]:
        """The deferred watermark, and the number of records that arrived before it."""
        if self.promised is not None:
            self._are_on_time()  # and those behind it, as long as none is late
        waiting = (self.promised, self._seen)
        self.promised, self._seen = None, 0
        return waiting

    def joined(self) -> tuple[pa.RecordBatch, Times]:
        """The buffered batches as one, and their times; they stay buffered in case that slicing fails."""
        data = self.batches[0] if len(self.batches) == 1 else pa.concat_batches(self.batches)
        times = self._times
        if times is None:
            assert self.engine.binding is not None
            times = self.engine.binding.time.trusted(data.column(self._judged[3]))
        times.flags.writeable = False  # as in Arrow's memory: then Numba has one type for both
        return data, (times, self._extent)

    @property
    def full(self) -> bool:
        """Whether the buffered batches are worth slicing."""
        return self._rows > MOST_TUPLES

    def forget_batches(self) -> None:
        """They were sliced."""
        self.batches, self._times, self._rows, self._bytes = [], None, 0, 0

    @property
    def over(self) -> bool:
        """Whether they must be sliced now."""
        return (
            self._watermark >= self._due
            or len(self.records) >= MOST_RECORDS
            or isinstance(self.engine.spec.early, EachBatch)
        )

    def _begin(self) -> None:
        """All were sliced: go on from what the operator knows."""
        engine = self.engine
        self._watermark = engine.header.watermark
        self._due = NEG_INF if engine.plan is None else next_result(engine.plan, engine.state)
        if engine.binding is not None:
            self._learn(engine.binding)

    def _learn(self, binding: Binding) -> None:
        """Look once at the types of the columns: questions to Arrow cost more than all the rest."""
        if binding is self._known:
            return
        self._known, self._time = binding, binding.time
        self._known_names = self._declared.union(binding.schema.names)
        self._units = binding.time.type == pa.int64()
        self._micros = binding.time.type == pa.timestamp("us")
        kinds = {name: binding.schema.field(name).type for name in binding.columns() - {binding.spec.time}}
        self._columns = [(name, kind, *sure_values(kind)) for name, kind in kinds.items()]

    def _read_time(self, record: Mapping[str, Any]) -> int | None:
        """The internal time; None if it is unusable, or too far ahead of the clock."""
        column, value = self._time, record[self.engine.spec.time]
        assert column is not None
        if type(value) is int and self._units:
            return value if -LIMIT <= value <= LIMIT else None
        if type(value) is dt.datetime and value.tzinfo is None and self._micros:
            time = (value - _EPOCH) // _MICROSECOND
        else:
            array, misfits = to_column([value], column.type)
            times, valid, _ = column.to_internal(array, strict=False)
            if misfits or (valid is not None and not valid.all()):
                return None
            time = int(times[0])
        return None if self.engine.arrivals.is_too_far_ahead(time) else time

    def _fits(self, record: Mapping[str, Any]) -> bool:
        """Whether all other values fit their columns."""
        for name, kind, classes, low, high in self._columns:
            value = record.get(name)
            if value is None and name not in record and misspelt_field(record, (name,), self._known_names):
                return False
            sure = low <= value <= high if type(value) is int else type(value) in classes
            if not sure and to_column([value], kind)[1]:
                return False
        return True


def _has_dictionary(kind: pa.DataType) -> bool:
    """Whether a type has a dictionary somewhere inside: those of two batches may not fit into one."""
    if isinstance(kind, pa.ExtensionType):
        return _has_dictionary(kind.storage_type)
    inside = (kind.field(i).type for i in range(kind.num_fields))
    return bool(pa.types.is_dictionary(kind)) or any(map(_has_dictionary, inside))
