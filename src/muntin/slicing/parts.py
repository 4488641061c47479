"""One table on several threads: each part has some of the keys, and an operator of its own.

Compiled code, Arrow and NumPy let other threads run, so that parts are served at the same time. Where
tuples are aggregated as they come, threads slice pieces of time first, and the parts share the slices.
Where tuples are kept or sorted, each part gets its own and slices them. The results are those of one
operator, in the same order and bit for bit: tuples are cut into slices as in the whole batch, and
slices are combined one by one, in order of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.sketches.base import SketchAggregate
from muntin.aggregates.udaf import UserDefined
from muntin.errors import MuntinError
from muntin.memory import fresh, rows_at
from muntin.planning.workload import Workload
from muntin.query import QuerySpec
from muntin.slicing.batch import Batch, values_at
from muntin.slicing.combining.base import Lazy
from muntin.slicing.filling import Emission
from muntin.slicing.key_kernels import share
from muntin.slicing.keys import KeyTable
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.pieces import Blocks, Piece, Sliced, pieces_of, slice_pieces
from muntin.slicing.portions import Held, stops
from muntin.slicing.result_order import Runs
from muntin.slicing.table import SliceTable
from muntin.slicing.threads import Threads
from muntin.slicing.time_parts import TimeParts
from muntin.timeline import NEG_INF, TimeExtent
from muntin.timeline.extent_kernels import extent
from muntin.windows import ContextFree, Until
from muntin.windows.base import Window

__all__ = ["PartedOperator", "is_compiled"]

Found = TypeVar("Found")

SHARE = 4
"""With so many tuples per key, or more, the first tuples show most keys of all."""
SAMPLE = 262_144
"""Of so many tuples the keys tell where parts begin."""
NONE: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
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
        _is_interpreted(window) for _, window in spec.windows
    )


def _is_interpreted(window: Window) -> bool:
    if isinstance(window, Until):
        return not window.compiled
    return isinstance(window, ContextFree) or window.wants_records


class PartedOperator(SlicingOperator):
    """Serves one batch and the end of the stream, as `run` does, on so many threads.

    Each part has a range of keys, as its keys 0, 1, 2, ..., with about as many slices or tuples as the
    others. If one fails, everything is done again without parts: the error is the same then.
    """

    IN_PLACE = (*SlicingOperator.IN_PLACE, "_parts", "_begins", "_taken")

    def __init__(self, spec: QuerySpec, threads: Threads) -> None:
        super().__init__(spec)
        self._threads = threads
        self._parts: list[SlicingOperator] = []
        self._begins: list[int] = []
        self._taken: list[tuple[Batch, pa.RecordBatch | None]] = []
        self._time_parts: TimeParts | None = None
        self._held = Held(0, 0, 0, 0)
        self._filling: Callable[[int, SlicingOperator], None] | None = None
        self._looked = False
        self._reached = NEG_INF
        self._blocks: Blocks | None = None
        self.arrivals.look = self._look

    def add(self, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
        assert not self._seq, "there is one batch, and then the end of the stream"
        if len(batch) < FEW:
            super().add(batch, raw)
            return
        self._taken = [(batch, raw)]
        self._held = Held(0, len(self.keys), batch.extent.low, batch.extent.high)
        pieces = self._pieces(batch)
        if pieces is not None and self._by_time(batch, pieces):
            return
        sliced = self._slice(batch, pieces)
        if sliced is not None and sliced.size < FEW_SLICES:
            self._add_all([sliced.rows(0, len(self.keys))])
            return
        bounds = self._bounds(batch, sliced)
        if sliced is not None or len(bounds) > 2:
            self._parts = [self._part(len(bounds) - 1) for _ in pairwise(bounds)]
        self._begins = bounds[:-1]

        def fill(p: int, part: SlicingOperator) -> None:
            begin, end = bounds[p], bounds[p + 1]
            part.slices.keys = end - begin
            if sliced is None:
                _add_share(part, batch, begin, end)
            else:
                part.slices.add_slices(sliced.rows(begin, end))

        self._filling = fill
        if sliced is not None:  # each part is filled right before it completes its windows
            self._held = self._held._replace(slices=sliced.size)
        else:
            sizes = self._on_parts(lambda _, part: len(part.slices.table))
            if sizes is None:
                self._without_parts()
                return
            self._held = self._held._replace(slices=sum(sizes))

    def _look(self, times: npt.NDArray[np.int64]) -> TimeExtent:
        """The extent of all times, found by all threads."""
        if len(times) < FEW:
            return extent(times)
        self._blocks = Blocks.of(times, self._threads)
        return self._blocks.extent

    def _pieces(self, batch: Batch) -> list[Piece] | None:
        """Pieces of the batch, as many as there are threads; None where it has none, or tuples are kept."""
        if self.slices.kept is not None or self.slices.live.spanned:
            return None
        if self._blocks is None or self._blocks.times is not batch.time:  # bad tuples, or another unit
            self._look(batch.time)
        assert self._blocks is not None
        return pieces_of(batch, self._edges(batch), self.slices.live.gap, self._blocks, self._threads.number)

    def _edges(self, batch: Batch) -> npt.NDArray[np.int64]:
        return self.slices.edges_around(batch.extent.low, batch.extent.high, batch.time)

    def _by_time(self, batch: Batch, pieces: list[Piece]) -> bool:
        """Whether the pieces are sliced, and can be served each by itself."""
        slices = self.slices
        if self.windows.early or not TimeParts.serve(slices.live, pieces) or not self._splits():
            return False
        try:
            parts = TimeParts.of(batch, pieces, self._edges(batch), slices, self._threads)
        except MuntinError:
            return False  # other parts will fail as well
        if parts.size < FEW_SLICES:
            self._add_all(parts.tables)
        else:
            self._time_parts = parts
        return True

    def _add_all(self, tables: list[SliceTable]) -> None:
        """Go on without parts: there are few slices."""
        self._taken = []  # there is nothing to do again
        for table in tables:
            self.slices.add_slices(table)

    def _slice(self, batch: Batch, pieces: list[Piece] | None) -> Sliced | None:
        """The slices of a batch; None where parts need the tuples, or must sort them anyway."""
        slices, partials = self.slices, self.slices.partials
        if pieces is None or any(partials.growing(partials.empty())):
            return None
        try:
            edges, gap = self._edges(batch), slices.live.gap
            return slice_pieces(batch, pieces, edges, gap, partials, self._threads)
        except MuntinError:
            return None  # parts will fail as well

    def _bounds(self, batch: Batch, sliced: Sliced | None) -> list[int]:
        """Where the keys of one part end and those of the next begin, by slices, or by some of the tuples."""
        if len(self.keys) == 1 or not self._splits():
            return [0, len(self.keys)]
        if sliced is None:
            some = batch.key[:: 1 + len(batch) // SAMPLE]
            before = np.append(0, np.cumsum(np.bincount(some, minlength=len(self.keys))))
        else:
            before = sliced.offsets
        n = self._threads.number
        shares = [before[-1] * i // n for i in range(1, n)]
        found: list[int] = np.unique([0, *np.searchsorted(before, shares), len(self.keys)]).tolist()
        return found

    def _encode(self, data: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        """Each thread numbers the keys of a piece of the batch, and the pieces' keys are numbered in turn."""
        size = -(-len(data) // self._threads.number)
        columns = [data.column(k) for k in self.spec.keys]
        if size < FEW or not columns:
            return super()._encode(data)
        if self.keys.is_quick(columns):
            return self._find(columns[0])
        kinds, all_ids = self.keys.types, fresh(len(data))

        def number(begin: int) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
            keys = KeyTable(kinds)
            codes = keys.encode([column.slice(begin, size) for column in columns])
            return codes, keys.values(np.arange(len(keys)))

        def renumber(begin: int, codes: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> None:
            np.take(ids, codes, out=all_ids[begin : begin + size], mode="clip")  # as "raise" takes a copy

        begins = range(0, len(data), size)
        found = self._threads.map(number, begins)
        ids = [self.keys.encode(values) for _, values in found]
        self._threads.map(renumber, begins, (codes for codes, _ in found), ids)
        return all_ids

    def _find(self, column: pa.Array) -> npt.NDArray[np.int64]:
        """Number the first keys, most likely all, and look up those of the other tuples on all threads."""
        ids = fresh(len(column))
        ids[:FEW] = self.keys.encode([column.slice(0, FEW)])
        if SHARE * len(self.keys) > FEW:  # so many that there are likely more
            ids[FEW:] = self.keys.encode([column.slice(FEW)])
            return ids
        size = -(-(len(column) - FEW) // self._threads.number)

        def find(begin: int) -> npt.NDArray[np.int64]:
            own = ids[begin : begin + size]
            return begin + np.flatnonzero(own < 0) if self.keys.find(column.slice(begin, size), own) else NONE

        new = np.concatenate(self._threads.map(find, range(FEW, len(column), size)))
        if len(new):  # in the order in which they come, as if all had been numbered in turn
            ids[new] = self.keys.encode([column.take(pa.array(new))])
        return ids

    def emitted(self, watermark: int, closing: bool = False, more: bool = False) -> pa.Table:
        if self._time_parts is None:
            return super().emitted(watermark, closing, more)
        try:
            live, keys = self.live, len(self.keys)
            tables = self._time_parts.results(live, keys, lambda: self._part(1), self._threads)
            return pa.concat_tables(tables)
        except Exception:  # noqa: BLE001  # whatever it is: what one thread does alone will tell
            self._without_parts()
            return super().emitted(watermark, closing, more)

    def look_early(self) -> list[Emission]:
        found = self._emissions(lambda part: part.look_early())
        if found is None:
            self._without_parts()
            return super().look_early()
        self._looked = True
        return found

    def stops(self, watermark: int) -> list[int]:
        if not self._parts:
            return super().stops(watermark)
        return [] if self.windows.early else stops(self.live, self._held, NEG_INF, watermark)

    def complete(self, watermark: int, closing: bool, more: bool = False) -> list[Emission]:
        found = self._emissions(lambda part: part.complete(watermark, closing, more))
        if found is None:
            self._without_parts()
            return super().complete(watermark, closing, more)
        self._reached = watermark
        return found

    def table(self, emissions: list[Emission]) -> pa.Table:
        many = sum(len(e.windows) for e in emissions) >= FEW_ROWS
        return self.results.table(emissions, self.keys, self._threads if many else None)

    def _splits(self) -> bool:
        """Whether results do not depend on how the slices of other keys lie beside those of a key.

        A tree over all slices would combine them in another order, where another key has its place.
        """
        assert self.binding is not None
        exact = Workload.of(self.spec, False, self.binding.partials.bound).exact
        return exact or isinstance(self.windows.store, Lazy)

    def _part(self, n: int) -> SlicingOperator:
        """An operator for one of n parts that share the keys, without slices."""
        assert self.binding is not None
        part = SlicingOperator(self.spec)
        part.live, part.keys, part.results = self.live, self.keys, self.results
        part.shares = n
        part.begin(self.binding, self.plan)
        part.slices.keys = len(self.keys)
        part.slices.newest = self._held.high
        return part

    def _emissions(self, work: Callable[[SlicingOperator], list[Emission]]) -> list[Emission] | None:
        """The windows that come out of all parts, with the keys of the whole; None as in `_on_parts`."""

        def renumbered(p: int, part: SlicingOperator) -> list[Emission]:
            return [_among_others(e, self._begins[p]) for e in work(part)]

        found = self._on_parts(renumbered)
        return None if found is None else [e for emissions in found for e in emissions]

    def _on_parts(self, work: Callable[[int, SlicingOperator], Found]) -> list[Found] | None:
        """What the work gives for each part, filled if it is not; None where there are none, or one fails."""
        filling, self._filling = self._filling, None

        def one(p: int, part: SlicingOperator) -> Found:
            if filling is not None:
                filling(p, part)
            return work(p, part)

        if not self._parts:
            return None
        try:
            return self._threads.map(one, range(len(self._parts)), self._parts)
        except Exception:  # noqa: BLE001  # whatever it is: what one thread does alone will tell
            return None

    def _without_parts(self) -> None:
        """Give up the parts, and do here what they did."""
        self._parts, self._time_parts = [], None
        taken, self._taken = self._taken, []
        for batch, raw in taken:
            super().add(batch, raw)
            if self._looked:
                super().look_early()
            self.slices.watermark = self._reached


def _among_others(emission: Emission, before: int) -> Emission:
    """The windows of a part that has so many keys before its own, ready to be put among those of others."""
    windows = emission.windows
    runs = Runs.of(windows.end, windows.start, windows.query) if emission.ordered else None
    return replace(emission, windows=windows.behind(before) if before else windows, runs=runs)


def _add_share(part: SlicingOperator, batch: Batch, begin: int, end: int) -> None:
    """The tuples of the keys from `begin` to `end` go into this part."""
    index = fresh(len(batch) + 1)
    index = index[: share(batch.key, begin, end, index)]
    ids = rows_at(batch.key, index)
    ids -= begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # Where tuples come one by one, they do so in a part as well; only their order counts.
    arrival = 0 if isinstance(batch.arrival, int) else batch.arrival[index]
    part.add(Batch(ids, rows_at(batch.time, index), arrival, values, batch, among=end - begin))
