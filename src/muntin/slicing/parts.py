"""One table on several threads: each part has some of the keys, and an operator of its own.

Compiled code, Arrow and NumPy let other threads run, so that parts are served at the same time. Where
tuples are aggregated as they come, threads slice pieces of time first, and the parts share the slices.
Where tuples are kept or sorted, each part gets its own and slices them. The results are those of one
operator, in the same order and bit for bit: tuples are cut into slices as in the whole batch, and
slices are combined one by one, in order of time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
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
from muntin.slicing.filling import Emission
from muntin.slicing.key_kernels import share
from muntin.slicing.keys import KeyTable
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.pieces import Blocks, Sliced, slice_pieces
from muntin.timeline import TimeExtent
from muntin.timeline.extent_kernels import extent
from muntin.windows import ContextFree, Until
from muntin.windows.base import Window

__all__ = ["PartedOperator", "Threads", "is_compiled"]

Found = TypeVar("Found")

SHARE = 4
"""With so many tuples per key, or more, the first tuples show most keys of all."""
SAMPLE = 262_144
"""Of so many tuples the keys tell where parts begin."""
NONE: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
FEW = 65_536
"""So few tuples are sliced and numbered, and so few slices are combined, by one thread."""


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


@dataclass(frozen=True, slots=True)
class Threads:
    """So many threads, which stay for the next one who needs as many.

    To start threads takes longer than many a table does, and the memory that they have used is theirs.

    >>> with Threads.borrowed(2) as threads:
    ...     sum(threads.pool.map(len, ["a", "bc"]))
    3
    """

    number: int
    pool: ThreadPoolExecutor

    @classmethod
    @contextmanager
    def borrowed(cls, number: int) -> Iterator[Threads]:
        """Threads that nobody else has meanwhile; after an error they end, since some may still work."""
        with _LENDING:
            # The last that were used: what they had in memory may still be there.
            found = next((threads for threads in reversed(_IDLE) if threads.number == number), None)
            if found is not None:
                _IDLE.remove(found)
        threads = found or cls(number, ThreadPoolExecutor(number, thread_name_prefix="muntin"))
        try:
            yield threads
        except BaseException:
            threads.pool.shutdown(wait=False, cancel_futures=True)
            raise
        with _LENDING:
            _IDLE.append(threads)
            ending = _IDLE[:-KEPT]
            del _IDLE[:-KEPT]
        for others in ending:
            others.pool.shutdown(wait=False)


KEPT = 2
"""So many sets of threads stay, the last that were used."""
_IDLE: list[Threads] = []
_LENDING = Lock()


def _forget_threads() -> None:
    """A process that was forked has none of the threads, and the lock may have been taken."""
    global _LENDING  # it cannot be set free by another process
    _IDLE.clear()
    _LENDING = Lock()


os.register_at_fork(after_in_child=_forget_threads)


class PartedOperator(SlicingOperator):
    """Serves one batch and the end of the stream, as `run` does, on so many threads.

    Each part has a range of keys, as its keys 0, 1, 2, ..., with about as many slices or tuples as the
    others. If one fails, everything is done again without parts: the error is the same then.
    """

    IN_PLACE = (*SlicingOperator.IN_PLACE, "_parts", "_begins", "_taken")

    def __init__(self, spec: QuerySpec, threads: Threads) -> None:
        super().__init__(spec)
        self._threads = threads.number
        self._pool = threads.pool
        self._parts: list[SlicingOperator] = []
        self._begins: list[int] = []
        self._taken: list[tuple[Batch, pa.RecordBatch | None]] = []
        self._looked = False
        self._blocks: Blocks | None = None
        self.arrivals.look = self._look

    def add(self, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
        assert not self._seq, "there is one batch, and then the end of the stream"
        if len(batch) < FEW:
            super().add(batch, raw)
            return
        self._taken = [(batch, raw)]
        sliced = self._slice(batch)
        if sliced is not None and sliced.size < FEW:
            self._taken = []  # there are no parts to give up, and nothing to do again
            self.slices.add_slices(sliced.rows(0, len(self.keys)))
            return
        bounds = self._bounds(batch, sliced)
        if sliced is not None or len(bounds) > 2:
            self._parts = [self._part(len(bounds) - 1, batch.extent.high) for _ in pairwise(bounds)]
        self._begins = bounds[:-1]

        def fill(p: int, part: SlicingOperator) -> None:
            begin, end = bounds[p], bounds[p + 1]
            part.slices.keys = end - begin
            if sliced is None:
                _add_share(part, batch, begin, end)
            else:
                part.slices.add_slices(sliced.rows(begin, end))

        if self._on_parts(fill) is None:
            self._without_parts()

    def _look(self, times: npt.NDArray[np.int64]) -> TimeExtent:
        """The extent of all times, found by all threads."""
        if len(times) < FEW:
            return extent(times)
        self._blocks = Blocks.of(times, self._threads, self._pool.map)
        return self._blocks.extent

    def _slice(self, batch: Batch) -> Sliced | None:
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

    def _bounds(self, batch: Batch, sliced: Sliced | None) -> list[int]:
        """Where the keys of one part end and those of the next begin, by slices, or by some of the tuples."""
        if len(self.keys) == 1 or not self._splits():
            return [0, len(self.keys)]
        if sliced is None:
            some = batch.key[:: 1 + len(batch) // SAMPLE]
            before = np.append(0, np.cumsum(np.bincount(some, minlength=len(self.keys))))
        else:
            before = sliced.offsets
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
        many = sum(len(e.windows) for e in emissions) >= FEW
        return self.results.table(emissions, self.keys, self._pool.map if many else map)

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
    index = np.empty(len(batch) + 1, dtype=np.int64)
    index = index[: share(batch.key, begin, end, index)]
    ids = batch.key.take(index)
    ids -= begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # Where tuples come one by one, they do so in a part as well; only their order counts.
    arrival = 0 if isinstance(batch.arrival, int) else batch.arrival[index]
    part.add(Batch(ids, batch.time[index], arrival, values, batch, among=end - begin))
