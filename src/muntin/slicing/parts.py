"""One table on several threads: each part has some of the keys, and an operator of its own.

Compiled code, Arrow and NumPy let other threads run, so that parts are served at the same time. Their
results are those of one operator, in the same order and bit for bit: tuples are cut into slices as
in the whole batch, and slices are combined one by one, in order of time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.sketches.base import SketchAggregate
from muntin.aggregates.udaf import UserDefined
from muntin.planning.workload import Workload
from muntin.query import QuerySpec
from muntin.slicing.batch import Batch, values_at
from muntin.slicing.combining.base import Lazy
from muntin.slicing.emission import Emission
from muntin.slicing.keys import KeyTable
from muntin.slicing.operator import SlicingOperator
from muntin.windows import ContextFree, Until
from muntin.windows.base import Window

__all__ = ["PartedOperator", "is_compiled"]

Found = TypeVar("Found")

FEW = 65_536
"""The keys of so few tuples are numbered in one piece."""
PLENTY = 1_000
"""Tuples per key from which on one thread is as quick with sums as two that must get them first."""


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

    Keys go to the parts in turn: of n parts, part p has the keys p, p + n, p + 2n, ... as its keys
    0, 1, 2, ... If a part fails, everything is done again without parts: the error is the same then.
    """

    def __init__(self, spec: QuerySpec, threads: int) -> None:
        super().__init__(spec)
        self._threads = threads
        self._parts: list[SlicingOperator] = []
        self._taken: list[tuple[Batch, pa.RecordBatch | None]] = []
        self._looked = False

    def add(self, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
        self._without_parts()  # a second batch, if there ever is one
        n = min(self._threads, len(self.keys)) if self._splits() and self._pays(batch) else 1
        self._parts = [self._part(n, batch.extent.high) for _ in range(n if n > 1 else 0)]
        self._taken = [(batch, raw)]
        if self._on_parts(lambda p, part: _add_share(part, batch, p, n)) is None:
            self._without_parts()

    def _encode(self, data: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        """Each thread numbers the keys of a piece of the batch, and the pieces' keys are numbered in turn."""
        size = -(-len(data) // self._threads)
        if size < FEW:
            return super()._encode(data)
        pieces = [data.slice(at, size) for at in range(0, len(data), size)]
        kinds = self.keys.types

        def number(piece: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
            keys = KeyTable(kinds)
            codes = keys.encode([piece.column(k) for k in self.spec.keys])
            return codes, keys.values(np.arange(len(keys)))

        with ThreadPoolExecutor(self._threads) as pool:
            found = list(pool.map(number, pieces))
            ids = [self.keys.encode(values) for _, values in found]
            return np.concatenate(list(pool.map(np.take, ids, (codes for codes, _ in found))))

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
        with ThreadPoolExecutor(self._threads) as pool:
            return self.results.table(emissions, self.keys, pool.map)

    def _splits(self) -> bool:
        """Whether results do not depend on how the slices of other keys lie beside those of a key.

        A tree over all slices would combine them in another order, where another key has its place.
        """
        assert self.binding is not None
        exact = Workload.of(self.spec, False, self.binding.partials.bound).exact
        return exact or isinstance(self.windows.store, Lazy)

    def _pays(self, batch: Batch) -> bool:
        """Whether there is more to do than to move tuples to their parts, which plain sums do not take.

        That is so where tuples are kept or sorted, and where there is a window for every few of them.
        """
        assert self.binding is not None
        own = self.binding.partials
        grows = any(p.weights(none) is not None for p, none in zip(own.partials, own.empty(), strict=True))
        return grows or self.slices.kept is not None or len(batch) <= PLENTY * len(self.keys)

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
        with ThreadPoolExecutor(self._threads) as pool:
            futures = [pool.submit(work, p, part) for p, part in enumerate(self._parts)]
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
        n = len(found)
        return [
            replace(e, windows=replace(e.windows, key=e.windows.key * n + p))
            for p, emissions in enumerate(found)
            for e in emissions
        ]


def _add_share(part: SlicingOperator, batch: Batch, p: int, n: int) -> None:
    """The tuples of the keys p, p + n, p + 2n, ... go into part p of n."""
    from muntin.slicing.key_kernels import share

    index, ids = share(batch.key, batch.keys, p, n)
    part.slices.keys = len(range(p, batch.keys, n))
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # Where tuples come one by one, they do so in a part as well; only their order counts.
    arrival = 0 if isinstance(batch.arrival, int) else batch.arrival[index]
    part.add(Batch(ids, batch.time[index], arrival, values, batch))
