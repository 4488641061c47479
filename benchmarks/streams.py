"""The streams that benchmarks read: always the same tuples for the same numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["BATCH", "LATENESS", "PER_SECOND", "SECOND", "Arrivals", "Column", "Shape", "generate"]

BATCH = 65_536
PER_SECOND = 2_000
SECOND = 1_000_000
LATENESS = 2 * SECOND
"""How late a tuple can be, in microseconds."""

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The columns of a stream in the order of arrival."""

    time: Column
    value: Column
    key: Column | None = None

    def __len__(self) -> int:
        return len(self.time)

    def columns(self) -> list[Column]:
        """Those that a query reads."""
        return [self.time, self.value] if self.key is None else [self.time, self.value, self.key]

    def batches(self, size: int) -> list[pa.RecordBatch]:
        """Batches of `size` tuples, with the columns `at`, `value` and, where there are keys, `key`."""
        columns = {"at": pa.array(self.time).cast(pa.timestamp("us")), "value": pa.array(self.value)}
        if self.key is not None:
            columns["key"] = pa.array(self.key)
        whole = pa.record_batch(columns)
        return [whole.slice(i, size) for i in range(0, len(self), size)]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a stream looks like."""

    late: bool = False
    """A fifth of the tuples are up to 2 s late."""
    keys: int = 0
    """How many keys there are, each tuple's drawn at random; 0: no key column."""
    per_second: int = PER_SECOND
    pauses: bool = False
    """After every 20 s of tuples nothing comes for up to 6 s, so that sessions end."""

    def generate(self, tuples: int) -> Arrivals:
        """Generate this number of tuples."""
        rng = np.random.default_rng(20)
        time = np.arange(tuples, dtype=np.int64) * (SECOND // self.per_second)
        if self.pauses:
            part = time // (20 * SECOND)
            silence = rng.integers(0, 6 * SECOND, int(part[-1]) + 1)
            time = time + np.cumsum(silence)[part]
        if self.late:
            late = rng.random(tuples) < 0.2
            time = time - np.where(late, rng.integers(0, LATENESS, tuples), 0)
        value = rng.integers(0, 100, tuples)
        return Arrivals(time, value, rng.integers(0, self.keys, tuples) if self.keys else None)


def generate(tuples: int, disorder: bool) -> tuple[Column, Column]:
    """Times, 20% of them up to 2 s late if asked for, and small integer values; one key."""
    arrivals = Shape(late=disorder).generate(tuples)
    return arrivals.time, arrivals.value
