"""`python -m benchmarks stores`: rounds per second of every store, each workload in one compiled loop."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from benchmarks import store_drive_kernels
from benchmarks.baselines import BaseIntervals, ClassicBTree, SubtractOnEvict, TupleTree
from muntin.stores import DabaLite, FiBA, FlatFAT, Lazy, Prefix, Store, TwoStacksLite
from muntin.stores.compilation import specialise
from muntin.stores.fiba_layout import CAPACITY
from muntin.stores.vocabulary import FULL

SIZES = (2**4, 2**10, 2**16, 2**22)
FAR = 10**15  # times of the entries that make the others late
BULK = 1024
RUNS = 20

# Million rounds per second of the C++ reference implementation on a machine of this kind, at 2^16 and 2^22.
REFERENCE = {
    ("TwoStacksLite", 2**16): 126.0, ("TwoStacksLite", 2**22): 115.0,
    ("DabaLite", 2**16): 146.0, ("DabaLite", 2**22): 145.0,
    ("FlatFAT", 2**16): 4.2, ("FlatFAT", 2**22): 3.3,
    ("FiBA(8)", 2**16): 25.0, ("FiBA(8)", 2**22): 22.0,
    ("FiBA(8) late", 2**16): 8.0, ("FiBA(8) late", 2**22): 6.0,
    ("FiBA(8) bulk", 2**16): 38.0, ("FiBA(8) bulk", 2**22): 38.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoreMeasurement:
    """One store at one window size: rounds of evict + insert + query (entries, for bulks)."""

    store: str
    window: int
    million_per_second: float
    combines_per_round: float
    reference: float | None


@dataclass(slots=True)
class Driver:
    """A filled store and the clock of its workload; ``late`` entries lie far in the future."""

    store: Store
    window: int
    late: int = 0
    next: int = 0
    values: npt.NDArray[Any] = field(init=False)
    kernels: Any = field(init=False)

    def __post_init__(self) -> None:
        """Fill the window."""
        store, modules = self.store, (store_drive_kernels, *self.store.kernels)
        constants = store._constants()
        self.kernels = specialise(modules, store.monoid, compiled=store.compiled, constants=constants)
        self.values = np.random.default_rng(0).integers(1, 100, BULK).astype(self.store.monoid.input)
        self._fill(self.window - self.late, 0)
        self._fill(self.late, FAR)
        self.store.query()
        self.next = self.window - self.late
        if isinstance(self.store, FiBA):
            self.store._reserve(int(self.store._data[0][CAPACITY]) + 2 * BULK)

    def _fill(self, n: int, t: int) -> None:
        done = 0
        while done < n:
            store = self.store
            done += int(self.kernels.drive_fill(store._data, n - done, t + done, self.values))
            if done < n:
                store._resolve(FULL)

    def rounds(self, n: int) -> None:
        """N rounds of evict oldest + insert + query in one compiled loop."""
        store = self.store
        done = self.kernels.drive_rounds(store._data, n, self.next, self.values, store._partials(1))
        assert done == n, "a steady window needs no more room"
        self.next += n

    def bulks(self, n: int) -> None:
        """N entries, in bulks of 1,024: bulk evict + bulk insert + query."""
        store: Any = self.store
        oldest = self.next - (self.window - self.late)
        times = np.zeros(BULK, np.int64)
        state = (store._data, store._room(BULK))
        done = self.kernels.drive_bulks(
            *state, n, BULK, self.next, oldest, times, self.values, store._partials(1)
        )
        assert done == n, "a steady window needs no more room"
        self.next += n


def measure(name: str, driver: Driver, *, seconds: float, bulk: bool = False) -> StoreMeasurement:
    """The best of RUNS runs in CPU time of this thread: other work on the machine counts less."""
    run = driver.bulks if bulk else driver.rounds
    n = BULK if bulk else 64
    run(n)
    spent = 0.0
    while spent < seconds / RUNS:
        n *= 2
        spent = _cpu_seconds(run, n)
    before = driver.store.combines
    best = min(_cpu_seconds(run, n) / n for _ in range(RUNS))
    combines = (driver.store.combines - before) / (RUNS * n)
    return StoreMeasurement(name, driver.window, 1e-6 / best, combines, REFERENCE.get((name, driver.window)))


def _cpu_seconds(run: Any, n: int) -> float:
    start = time.thread_time()
    run(n)
    return time.thread_time() - start


def subjects(window: int, baselines: bool) -> Iterator[tuple[str, Store, int, bool]]:
    """(name, store, late entries, in bulks) of every measurement at a window size."""
    late = 4096 if window < 2**22 else 2**18
    yield "TwoStacksLite", TwoStacksLite("sum"), 0, False
    yield "DabaLite", DabaLite("sum"), 0, False
    yield "Prefix (int64)", Prefix("sum", dtype="int64"), 0, False
    yield "FlatFAT", FlatFAT("sum"), 0, False
    yield "FiBA(8)", FiBA("sum", arity=8), 0, False
    if window > late:
        yield "FiBA(8) late", FiBA("sum", arity=8), late, False
    if window >= 16 * BULK:
        yield "FiBA(8) bulk", FiBA("sum", arity=8), 0, True
        yield "FiBA(8) bulk late", FiBA("sum", arity=8), 4096, True
    if window <= 2**10:
        yield "Lazy", Lazy("sum"), 0, False
    if baselines:
        yield "SubtractOnEvict (int64)", SubtractOnEvict("sum", dtype="int64"), 0, False
        if window <= 2**16:
            yield "BaseIntervals", BaseIntervals("sum"), 0, False
        yield "ClassicBTree(8)", ClassicBTree("sum", arity=8), 0, False
        yield "TupleTree", TupleTree("sum"), 0, False
        if 2**10 < window <= 2**16:
            yield "TupleTree late", TupleTree("sum"), late, False


def bench_stores(
    sizes: tuple[int, ...] = SIZES, *, baselines: bool = True, seconds: float = 1.0
) -> list[StoreMeasurement]:
    """Measure every store at every window size; about ``seconds`` for each."""
    return [
        measure(name, Driver(store, window, late), seconds=seconds, bulk=bulk)
        for window in sizes
        for name, store, late, bulk in subjects(window, baselines)
    ]


def table(measurements: list[StoreMeasurement]) -> Table:
    """One row for each store, one column for each window size."""
    sizes = sorted({m.window for m in measurements})
    result = Table(title="million rounds per second (C++ in brackets), combines per round")
    result.add_column("store")
    for size in sizes:
        result.add_column(f"2^{size.bit_length() - 1}", justify="right")
    for name in dict.fromkeys(m.store for m in measurements):
        cells = {m.window: m for m in measurements if m.store == name}
        result.add_row(name, *(_cell(cells.get(size)) for size in sizes))
    return result


def _cell(m: StoreMeasurement | None) -> str:
    if m is None:
        return ""
    reference = f" ({m.reference:g})" if m.reference else ""
    return f"{m.million_per_second:.3g}{reference}, {m.combines_per_round:.3g}"


def run_stores(sizes: tuple[int, ...], as_json: bool, console: Console, *, baselines: bool = True) -> None:
    """What the command line calls."""
    measurements = bench_stores(sizes or SIZES, baselines=baselines)
    if as_json:
        console.print_json(json.dumps([asdict(m) for m in measurements]))
    else:
        console.print(table(measurements))
