"""One table on several threads: each part has some of the keys, and an operator of its own.

Compiled code, Arrow and NumPy let other threads run, so that parts are served at the same time. Where
tuples are aggregated as they come, threads slice pieces of time first, and the parts share the slices.
Where tuples are kept or sorted, each part gets its own and slices them. The results are those of one
operator, in the same order and bit for bit: tuples are cut into slices as in the whole batch, and
slices are combined one by one, in order of time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.sketches.base import SketchAggregate
from muntin.aggregates.udaf import UserDefined
from muntin.errors import MuntinError
from muntin.planning.workload import Workload
from muntin.query import QuerySpec
from muntin.slicing.batch import Batch, values_at
from muntin.slicing.combining.base import Lazy
from muntin.slicing.emission import Emission
from muntin.slicing.keys import KeyTable
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.pieces import Blocks, slice_pieces
from muntin.slicing.table import SliceTable, joined
from muntin.timeline import TimeExtent
from muntin.windows import ContextFree, Until
from muntin.windows.base import Window

__all__ = ["PartedOperator", "is_compiled"]

Found = TypeVar("Found")

SHARE = 8
"""With so many tuples per key, or more, the first tuples show most keys of all."""
NONE: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
FEW = 65_536
"""The keys of so few tuples are numbered in one piece, and so few slices are combined by one thread."""


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

    def __init__(self, spec: QuerySpec, threads: int) -> None:
        super().__init__(spec)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)  # its threads end when nobody has it any more
        self._parts: list[SlicingOperator] = []
        self._begins: list[int] = []
        self._taken: list[tuple[Batch, pa.RecordBatch | None]] = []
        self._looked = False
        self._blocks: Blocks | None = None
        self.arrivals.look = self._look

    def add(self, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
        self._without_parts()  # a second batch, if there ever is one
        self._taken = [(batch, raw)]
        rows = self._slice(batch)
        if rows is not None and len(rows) < FEW:
            self._taken = []  # there are no parts to give up, and nothing to do again
            self.slices.add_slices(rows)
            return
        bounds = self._bounds(batch, rows)
        if rows is not None or len(bounds) > 2:
            self._parts = [self._part(len(bounds) - 1, batch.extent.high) for _ in pairwise(bounds)]
        self._begins = bounds[:-1]

        def fill(p: int, part: SlicingOperator) -> None:
            if rows is None:
                _add_share(part, batch, bounds[p], bounds[p + 1])
            else:
                _add_rows(part, rows, bounds[p], bounds[p + 1])

        if self._on_parts(fill) is None:
            self._without_parts()

    def _look(self, times: npt.NDArray[np.int64]) -> TimeExtent:
        """The extent of all times, found by all threads."""
        self._blocks = Blocks.of(times, self._threads, self._pool.map)
        return self._blocks.extent

    def _slice(self, batch: Batch) -> SliceTable | None:
        """The slices of a batch; None where parts need the tuples, or must sort them anyway."""
        assert self.binding is not None
        slices, partials = self.slices, self.binding.partials
        if slices.kept is not None or slices.live.spanned or any(partials.growing(partials.empty())):
            return None
        edges = slices.edges_around(batch.extent.low, batch.extent.high, batch.time)
        if self._blocks is None or self._blocks.times is not batch.time:  # bad tuples, or another unit
            self._look(batch.time)
        blocks, gap, each = self._blocks, slices.live.gap, self._pool.map
        assert blocks is not None
        try:
            return slice_pieces(batch, edges, gap, blocks, partials, self._threads, each)
        except MuntinError:
            return None  # parts will fail as well

    def _bounds(self, batch: Batch, rows: SliceTable | None) -> list[int]:
        """Where the keys of one part end and those of the next begin."""
        if len(self.keys) == 1 or not self._splits():
            return [0, len(self.keys)]
        if rows is None:
            before = np.append(0, np.cumsum(np.bincount(batch.key, minlength=len(self.keys))))
        else:
            before = rows.offsets(len(self.keys))
        shares = [before[-1] * i // self._threads for i in range(1, self._threads)]
        found: list[int] = np.unique([0, *np.searchsorted(before, shares), len(self.keys)]).tolist()
        return found

    def _encode(self, data: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        """Each thread numbers the keys of a piece of the batch, and the pieces' keys are numbered in turn."""
        size = -(-len(data) // self._threads)
        columns = [data.column(k) for k in self.spec.keys]
        if size < FEW or not columns:
            return super()._encode(data)
        if self.keys.is_quick(columns):
            return self._find(columns[0])
        kinds, all_ids = self.keys.types, np.empty(len(data), dtype=np.int64)

        def number(begin: int) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
            keys = KeyTable(kinds)
            codes = keys.encode([column.slice(begin, size) for column in columns])
            return codes, keys.values(np.arange(len(keys)))

        def renumber(begin: int, codes: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> None:
            np.take(ids, codes, out=all_ids[begin : begin + size], mode="clip")  # as "raise" takes a copy

        begins = range(0, len(data), size)
        found = list(self._pool.map(number, begins))
        ids = [self.keys.encode(values) for _, values in found]
        list(self._pool.map(renumber, begins, (codes for codes, _ in found), ids))
        return all_ids

    def _find(self, column: pa.Array) -> npt.NDArray[np.int64]:
        """Number the first keys, most likely all, and look up those of the other tuples on all threads."""
        ids = np.empty(len(column), dtype=np.int64)
        ids[:FEW] = self.keys.encode([column.slice(0, FEW)])
        if SHARE * len(self.keys) > FEW:  # so many that there are likely more
            ids[FEW:] = self.keys.encode([column.slice(FEW)])
            return ids
        size = -(-(len(column) - FEW) // self._threads)

        def find(begin: int) -> npt.NDArray[np.int64]:
            own = ids[begin : begin + size]
            return begin + np.flatnonzero(own < 0) if self.keys.find(column.slice(begin, size), own) else NONE

        new = np.concatenate(list(self._pool.map(find, range(FEW, len(column), size))))
        if len(new):  # in the order in which they come, as if all had been numbered in turn
            ids[new] = self.keys.encode([column.take(pa.array(new))])
        return ids

    def look_early(self) -> list[Emission]:
        found = self._on_parts(lambda _, part: part.look_early())
        if found is None:
            self._without_parts()
            return super().look_early()
        self._looked = True
        return self._together(found)

    def complete(self, watermark: int, closing: bool) -> list[Emission]:
        found = self._on_parts(lambda _, part: part.complete(watermark, closing))
        if found is None:
            self._without_parts()
            return super().complete(watermark, closing)
        return self._together(found)

    def table(self, emissions: list[Emission]) -> pa.Table:
        return self.results.table(emissions, self.keys, self._pool.map)

    def _splits(self) -> bool:
        """Whether results do not depend on how the slices of other keys lie beside those of a key.

        A tree over all slices would combine them in another order, where another key has its place.
        """
        assert self.binding is not None
        exact = Workload.of(self.spec, False, self.binding.partials.bound).exact
        return exact or isinstance(self.windows.store, Lazy)

    def _part(self, n: int, newest: int) -> SlicingOperator:
        """An operator for one of n parts of a stream that has come to `newest`."""
        assert self.binding is not None
        part = SlicingOperator(self.spec)
        part.live = self.live
        part.shares = n
        part.open_with(self.binding)
        part.slices.newest = newest
        return part

    def _on_parts(self, work: Callable[[int, SlicingOperator], Found]) -> list[Found] | None:
        """What the work gives for each part; None if there are no parts, or one of them failed."""
        futures = [self._pool.submit(work, p, part) for p, part in enumerate(self._parts)]
        wait(futures)
        if not futures or any(future.exception() is not None for future in futures):
            return None
        return [future.result() for future in futures]

    def _without_parts(self) -> None:
        """Give up the parts, and do here what they did."""
        self._parts = []
        taken, self._taken = self._taken, []
        for batch, raw in taken:
            super().add(batch, raw)
            if self._looked:
                super().look_early()

    def _together(self, found: list[list[Emission]]) -> list[Emission]:
        """The windows of all parts, with the keys of the whole."""
        return [
            replace(e, windows=replace(e.windows, key=e.windows.key + begin))
            for begin, emissions in zip(self._begins, found, strict=True)
            for e in emissions
        ]


def _add_share(part: SlicingOperator, batch: Batch, begin: int, end: int) -> None:
    """The tuples of the keys from `begin` to `end` go into this part."""
    from muntin.slicing.key_kernels import share

    index = np.empty(len(batch) + 1, dtype=np.int64)
    index = index[: share(batch.key, begin, end, index)]
    ids = batch.key.take(index)
    ids -= begin
    part.slices.keys = end - begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # Where tuples come one by one, they do so in a part as well; only their order counts.
    arrival = 0 if isinstance(batch.arrival, int) else batch.arrival[index]
    part.add(Batch(ids, batch.time[index], arrival, values, batch, among=end - begin))


def _add_rows(part: SlicingOperator, rows: SliceTable, begin: int, end: int) -> None:
    """The slices of the keys from `begin` to `end` go into this part."""
    low, high = np.searchsorted(rows.key, [begin, end]).tolist()
    own = joined([(rows, low, high)], part.slices.partials)
    if begin:
        own.key[:] -= begin  # of a copy, since others have slices before these
    part.slices.keys = end - begin
    part.slices.add_slices(own)
