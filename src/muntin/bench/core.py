"""`muntin bench core`: throughput of the embedded core beside the limit that NumPy sets in the same run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from muntin import aggregates as a
from muntin.connectors.embedded import Operator
from muntin.dsl import Query, windows
from muntin.windows import session, tumbling
from muntin.windows.base import Window

BATCH = 65_536
PER_SECOND = 2_000
SECOND = 1_000_000

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Workload:
    """A query over a generated stream."""

    name: str
    query: Query
    disorder: bool


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one workload took, beside `np.add.reduceat` over the known slices of the sorted stream."""

    workload: str
    tuples: int
    million_per_second: float
    reduceat_million_per_second: float
    slices: int
    windows: int
    combines_per_tuple: float

    @property
    def ratio(self) -> float:
        """How far from the limit: 1 would be as fast as `reduceat` alone."""
        return self.million_per_second / self.reduceat_million_per_second


def workloads() -> list[Workload]:
    """20 tumbling windows of 1 to 20 seconds; the second with a session and 20% of the tuples late."""
    tumbling_20: dict[str, Window] = {f"s{i}": tumbling(f"{i} seconds") for i in range(1, 21)}
    with_session: dict[str, Window] = {**tumbling_20, "visit": session("1 second")}
    return [
        Workload("20 tumbling, in order", _query(tumbling_20), False),
        Workload("20 tumbling + session, 20% late", _query(with_session), True),
    ]


def run_core(tuples: int, as_json: bool, console: Console) -> None:
    """Measure all workloads, check their results, and print them."""
    found = [measure(w, tuples) for w in workloads()]
    if as_json:
        console.print_json(json.dumps([asdict(m) | {"ratio": m.ratio} for m in found]))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("workload", "M/s", "reduceat", "ratio", "slices", "windows", "combines"):
        told = name == "workload"  # it wraps where the terminal is narrow: no number may be cut off
        table.add_column(name, no_wrap=not told, justify="left" if told else "right")
    for m in found:
        table.add_row(
            m.workload,
            f"{m.million_per_second:.1f}",
            f"{m.reduceat_million_per_second:.0f}",
            f"{m.ratio:.3f}",
            str(m.slices),
            str(m.windows),
            f"{m.combines_per_tuple:.3f}",
        )
    console.print(table)
    console.print(
        f"Million tuples per second: {tuples:,} tuples, {PER_SECOND:,} per second of event time, one key, "
        f"batches of {BATCH:,}, sum. CPU time of one thread, second of two runs. reduceat: NumPy's bare sums "
        "over the known slices. combines: per tuple. Results are checked against a recomputation."
    )


def measure(workload: Workload, tuples: int) -> Measurement:
    """Run a workload twice (the first run compiles) and check what came out."""
    times, values = generate(tuples, workload.disorder)
    batches = list(_batches(times, values))
    _drive(workload, batches)
    seconds, (operator, total, slices) = _timed(lambda: _drive(workload, batches))
    expected = expected_total(times, values, workload.query)
    if total != expected:
        raise AssertionError(f"{workload.name}: the sum over all windows is {total}, not {expected}")
    limit = _reduceat_seconds(times, values)
    stats = operator.stats()
    combines = (stats.update_combines + stats.merge_combines) / tuples
    return Measurement(
        workload.name,
        tuples,
        tuples / seconds / 1e6,
        tuples / limit / 1e6,
        slices,
        stats.windows,
        combines,
    )


def generate(tuples: int, disorder: bool) -> tuple[Column, Column]:
    """Times, 20% of them up to 2 s late if asked for, and small integer values; always the same."""
    rng = np.random.default_rng(20)
    times = np.arange(tuples, dtype=np.int64) * (SECOND // PER_SECOND)
    if disorder:
        late = rng.random(tuples) < 0.2
        times = times - np.where(late, rng.integers(0, 2 * SECOND, tuples), 0)
    return times, rng.integers(0, 100, tuples)


def expected_total(times: Column, values: Column, query: Query) -> int:
    """The sum over all windows: each tuple counts once in each of these non-overlapping queries."""
    return int(values.sum()) * len(query.windows)


def _query(named: dict[str, Window]) -> Query:
    return windows(**named).aggregate(total=a.sum("value")).on("at")


def _batches(times: Column, values: Column) -> Iterator[pa.RecordBatch]:
    at = pa.array(times).cast(pa.timestamp("us"))
    for i in range(0, len(times), BATCH):
        yield pa.record_batch({"at": at[i : i + BATCH], "value": values[i : i + BATCH]})


def _drive(workload: Workload, batches: list[pa.RecordBatch]) -> tuple[Operator, int, int]:
    if workload.disorder:
        operator = Operator(workload.query, watermark_lag="2 seconds")
    else:
        operator = Operator(workload.query, in_order=True)
    total = slices = 0
    for batch in batches:
        total += _sum(operator.process(batch))
        slices = max(slices, operator.slices)
    total += _sum(operator.finish())
    return operator, total, slices


def _sum(results: pa.Table) -> int:
    return int(np.sum(results.column("total").to_numpy())) if results.num_rows else 0


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _reduceat_seconds(times: Column, values: Column) -> float:
    """Time of the bare sums over slices of one second, with sorting and searching left out."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    bounds = np.searchsorted(times, np.arange(times[0] // SECOND, times[-1] // SECOND + 1) * SECOND)
    bounds = np.unique(np.minimum(bounds, len(values) - 1))
    rounds = 20
    seconds, _ = _timed(lambda: [np.add.reduceat(values, bounds) for _ in range(rounds)])
    return float(max(seconds, 1e-9) / rounds)
