"""One table on several threads, which share the time or the keys.

Compiled code, Arrow and NumPy let other threads run, so that parts are served at the same time. Where
tuples are aggregated as they come, threads slice pieces of time. If all windows come out in the order of
their ends, each piece is a part of its own (`time_parts`). Otherwise, and where tuples are kept or
sorted, parts have some of the keys each (`key_parts`). The results are those of one operator, in the same
order and bit for bit: tuples are cut into slices as in the whole batch, and slices are combined one by
one, in order of time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.sketches.base import SketchAggregate
from muntin.aggregates.udaf import UserDefined
from muntin.errors import MuntinError
from muntin.query import QuerySpec
from muntin.slicing.batch import Batch
from muntin.slicing.filling import Emission
from muntin.slicing.key_parts import KeyParts, key_bounds
from muntin.slicing.numbering import number_keys
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.pieces import Blocks, Piece, Sliced, pieces_of, slice_pieces
from muntin.slicing.portions import Held, stops
from muntin.slicing.table import SliceTable
from muntin.slicing.threads import Threads
from muntin.slicing.time_parts import TimeParts
from muntin.slicing.window_values import report_errors
from muntin.timeline import NEG_INF, TimeExtent
from muntin.timeline.extent_kernels import extent

__all__ = ["PartedOperator", "is_compiled"]

Column = npt.NDArray[np.int64]

FEW = 65_536
"""So few tuples are sliced and numbered by one thread."""
FEW_SLICES = 32_768
"""So few slices are combined by one thread."""
FEW_ROWS = 32_768
"""So few rows of results are put together by one thread."""


def is_compiled(spec: QuerySpec) -> bool:
    """Whether nothing of the query runs in the interpreter, which serves one thread at a time.

    >>> from muntin import aggregates as a, windows as w
    >>> is_compiled(QuerySpec((("ten", w.tumbling(10)),), (("n", a.count()),)))
    True
    """
    interpreted = (UserDefined, SketchAggregate)
    return not any(isinstance(aggregate, interpreted) for _, aggregate in spec.aggregates) and not any(
        window.interpreted for _, window in spec.windows
    )


class PartedOperator(SlicingOperator):
    """Serves one batch and the end of the stream, as `run` does, on so many threads.

    If a part fails, everything is done again without parts: the error is the same then.
    """

    IN_PLACE = (*SlicingOperator.IN_PLACE, "_taken")

    def __init__(self, spec: QuerySpec, threads: Threads) -> None:
        super().__init__(spec)
        self._threads = threads
        self._by_key: KeyParts | None = None
        self._by_time: TimeParts | None = None
        self._taken: list[tuple[Batch, pa.RecordBatch | None]] = []
        self._looked = False
        self._reached = NEG_INF
        self._blocks: Blocks | None = None
        self.arrivals.look = self._look

    # Input. -----------------------------------------------------------------------------------------

    def _look(self, times: Column) -> TimeExtent:
        """The extent of all times, found by all threads."""
        if len(times) < FEW:
            return extent(times)
        self._blocks = Blocks.of(times, self._threads)
        return self._blocks.extent

    def _encode(self, data: pa.RecordBatch) -> Column | None:
        if len(data) < FEW or not self.spec.keys:
            return super()._encode(data)
        return number_keys(self.keys, [data.column(k) for k in self.spec.keys], self._threads)

    def add(self, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
        assert not self._seq, "there is one batch, and then the end of the stream"
        if len(batch) < FEW:
            super().add(batch, raw)
            return
        self._taken = [(batch, raw)]
        try:
            tables = self._share(batch)
        except MuntinError:
            tables = None
        if tables is None:
            self._without_parts()
        elif tables:
            self._taken = []  # there are no parts, and nothing to do again
            for table in tables:
                self.slices.add_slices(table)

    def _share(self, batch: Batch) -> list[SliceTable] | None:
        """Slice the batch in parts, or give each part its tuples; None where there is one part.

        Returns slices that parts have not got, since they are few.
        """
        slices = self.slices
        edges = slices.edges_around(batch.extent.low, batch.extent.high, batch.time)
        pieces = self._pieces(batch, edges)
        if pieces is not None and self.divides and TimeParts.serve(slices.live, pieces):
            by_time = TimeParts.of(batch, pieces, edges, slices, self._threads)
            if by_time.size < FEW_SLICES:
                return by_time.tables
            self._by_time = by_time
            return []
        sliced = self._slice(batch, pieces, edges)
        if sliced is not None and sliced.size < FEW_SLICES:
            return [sliced.rows(0, len(self.keys))]
        number = self._threads.number if self.alike and len(self.keys) > 1 else 1
        bounds = key_bounds(batch, sliced, len(self.keys), number)
        if sliced is None and len(bounds) == 2:
            return None
        parts = [self._part(len(bounds) - 1) for _ in bounds[1:]]
        self._by_key = KeyParts.of(batch, sliced, bounds, parts, self._threads)
        return []

    def _pieces(self, batch: Batch, edges: Column) -> list[Piece] | None:
        """Pieces of the batch, as many as there are threads; None where it has none, or tuples are kept."""
        if self.slices.kept is not None or self.slices.live.spanned:
            return None
        if self._blocks is None or self._blocks.times is not batch.time:  # bad tuples, or another unit
            self._look(batch.time)
        assert self._blocks is not None
        return pieces_of(batch, edges, self.slices.live.gap, self._blocks, self._threads.number)

    def _slice(self, batch: Batch, pieces: list[Piece] | None, edges: Column) -> Sliced | None:
        """The slices of a batch; None where parts need the tuples, or must sort them anyway."""
        slices, partials = self.slices, self.slices.partials
        if pieces is None or any(partials.growing(partials.empty())):
            return None
        return slice_pieces(batch, pieces, edges, slices.live.gap, partials, self._threads)

    def _part(self, shares: int) -> SlicingOperator:
        """An operator without slices; so many of them share the keys."""
        assert self.binding is not None
        part = SlicingOperator(self.spec)
        part.live, part.keys, part.results = self.live, self.keys, self.results
        part.shares = shares
        part.begin(self.binding, self.plan)
        part.slices.keys = len(self.keys)
        part.slices.newest = self._taken[0][0].extent.high
        part.slices.skips_errors = False  # a step that fails runs again without parts, and reports there
        return part

    # Results. ---------------------------------------------------------------------------------------

    def emitted(self, watermark: int, closing: bool = False, more: bool = False) -> pa.Table:
        shared = self._by_time or self._by_key
        # A part sees only its own windows: near the limit, the whole is counted without parts.
        if shared is not None and shared.size * self.live.most_overlapping > self.slices.limit.most(
            shared.size
        ):
            self._without_parts()
        if self._by_time is not None:
            try:
                return pa.concat_tables(self._by_time.results(lambda: self._part(1), self._threads))
            except MuntinError:
                self._without_parts()
        return super().emitted(watermark, closing, more)

    def stops(self, watermark: int) -> list[int]:
        if self._by_key is None:
            return super().stops(watermark)
        extent = self._taken[0][0].extent
        held = Held(self._by_key.size, len(self.keys), extent.low, extent.high)
        return stops(self.live, held, NEG_INF, watermark) if self.divides else []

    def complete(self, watermark: int, closing: bool, more: bool = False) -> list[Emission]:
        if self._by_key is not None:
            try:
                found = self._by_key.emissions(lambda part: part.complete(watermark, closing, more))
                self._reached = watermark
                return found
            except MuntinError:
                self._without_parts()
        return super().complete(watermark, closing, more)

    def look_early(self) -> list[Emission]:
        if self._by_key is not None:
            try:
                found = self._by_key.emissions(lambda part: part.look_early())
                self._looked = True
                return found
            except MuntinError:
                self._without_parts()
        return super().look_early()

    def table(self, emissions: list[Emission]) -> pa.Table:
        report_errors(self)
        many = sum(len(e.windows) for e in emissions) >= FEW_ROWS
        return self.results.table(emissions, self.keys, self._threads if many else None)

    def _without_parts(self) -> None:
        """Give up the parts, and do here what they did."""
        self._by_key = self._by_time = None
        taken, self._taken = self._taken, []
        for batch, raw in taken:
            super().add(batch, raw)
            if self._looked:
                super().look_early()
            self.slices.watermark = self._reached
