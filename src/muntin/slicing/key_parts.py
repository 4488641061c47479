"""Parts of a table by key: each has an operator of its own, for a range of keys, as its keys 0, 1, 2, ...

It gets the slices of its keys, or their tuples where these are kept or sorted. The windows that come out
of the parts are put into one order in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from muntin.memory import fresh, rows_at
from muntin.slicing.batch import Batch, values_at
from muntin.slicing.filling import Emission
from muntin.slicing.key_kernels import share
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.pieces import Sliced
from muntin.slicing.result_order import Runs
from muntin.slicing.threads import Threads

__all__ = ["KeyParts", "key_bounds"]

SAMPLE = 262_144
"""Of so many tuples the keys tell where parts begin."""


def key_bounds(batch: Batch, sliced: Sliced | None, keys: int, number: int) -> list[int]:
    """Where the keys of one part end and those of the next begin, by slices, or by some of the tuples."""
    if sliced is None:
        some = batch.key[:: 1 + len(batch) // SAMPLE]
        before = np.append(0, np.cumsum(np.bincount(some, minlength=keys)))
    else:
        before = sliced.offsets
    shares = [before[-1] * i // number for i in range(1, number)]
    found: list[int] = np.unique([0, *np.searchsorted(before, shares), keys]).tolist()
    return found


@dataclass(slots=True)
class KeyParts:
    """Operators, and which keys they have. Slices are put together right before windows are completed."""

    parts: list[SlicingOperator]
    bounds: list[int]
    threads: Threads
    sliced: Sliced | None
    """The slices that parts have not got yet."""
    size: int
    """How many slices there are, where parts do not keep tuples."""

    @classmethod
    def of(
        cls,
        batch: Batch,
        sliced: Sliced | None,
        bounds: list[int],
        parts: list[SlicingOperator],
        threads: Threads,
    ) -> KeyParts:
        """Operators that have no slices yet get these, or the tuples."""
        for part, (low, high) in zip(parts, pairwise(bounds), strict=True):
            part.slices.keys = high - low
        found = cls(parts, bounds, threads, sliced, 0 if sliced is None else sliced.size)
        if sliced is None:
            threads.map(lambda *part: _add_share(batch, *part), parts, bounds[:-1], bounds[1:])
            found.size = sum(len(part.slices.table) for part in parts)
        return found

    def emissions(self, work: Callable[[SlicingOperator], list[Emission]]) -> list[Emission]:
        """The windows that the work brings out of all parts, with the keys of the whole."""
        sliced, self.sliced = self.sliced, None

        def one(part: SlicingOperator, begin: int, end: int) -> list[Emission]:
            if sliced is not None:
                part.slices.add_slices(sliced.rows(begin, end))
            return [_among_others(emission, begin) for emission in work(part)]

        found = self.threads.map(one, self.parts, self.bounds[:-1], self.bounds[1:])
        return [emission for emissions in found for emission in emissions]


def _among_others(emission: Emission, before: int) -> Emission:
    """The windows of a part that has so many keys before its own, ready to be put among those of others."""
    windows = emission.windows
    runs = Runs.of(windows.end, windows.start, windows.query) if emission.ordered else None
    return replace(emission, windows=windows.behind(before) if before else windows, runs=runs)


def _add_share(batch: Batch, part: SlicingOperator, begin: int, end: int) -> None:
    """The tuples of the keys from `begin` to `end` go into this part."""
    index = fresh(len(batch) + 1)
    index = index[: share(batch.key, begin, end, index)]
    ids = rows_at(batch.key, index)
    ids -= begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # Where tuples come one by one, they do so in a part as well; only their order counts.
    arrival = 0 if isinstance(batch.arrival, int) else batch.arrival[index]
    part.add(Batch(ids, rows_at(batch.time, index), arrival, values, batch, among=end - begin))
