"""`muntin warmup`: small queries of every kind, which compile the kernels of later queries.

The build runs the same queries to make the library of compiled kernels; where that is used, nothing is left
to compile. A kernel is compiled for the types of its arguments. These queries have the usual ones: integers,
floats, texts, booleans and decimals, with and without nulls, times as timestamps and as integers, keys of
texts and of integers, streams in order and out of order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.dsl import Query, windows
from muntin.expressions import parse
from muntin.planning.plan import STORES
from muntin.query import each_batch
from muntin.windows.base import Window

Step = tuple[str, Callable[[], object]]

_ON_TIME: dict[str, Window] = {
    "ten": w.tumbling(10),
    "slid": w.sliding(20, 5),
    "grown": w.cumulate(20, 5),
    "visit": w.session(3),
}
_BY_TUPLES: dict[str, dict[str, Window]] = {
    "count windows": {"c": w.count(3), "s": w.slide_by_tuple(10, 2), "l": w.last(3, 10)},
    "frames": {
        "t": w.threshold("b"),
        "d": w.delta("f", 2.0),
        "b": w.boundary("f", 2.0),
        "u": w.until(a.sum("i"), 9),
        "di": w.delta("i", 2),
        "bi": w.boundary("i", 2),
        "uf": w.until(a.sum("f"), 9.0),
    },
    "other windows": {
        "p": w.punctuation("b"),
        "m": w.session(3, max_length=9),
        "r": w.session(parse("m + 1")),
        "f": w.fixed_band(5, 10),
        "e": w.landmark(0, 10),
    },
    "measures": {
        "m": w.tumbling(4, measure="m"),
        "s": w.sliding(8, 4, measure="m"),
        "g": w.session(2, measure="m"),
        "mf": w.tumbling(4, measure="x"),
        "sf": w.sliding(8, 4, measure="x"),
        "gf": w.session(2, measure="x"),
    },
}
_SUMS: dict[str, Any] = {
    "n": a.count(), "present": a.count("i"), "si": a.sum("i"), "sf": a.sum("f"), "sd": a.sum("d"),
    "mi": a.mean("i"), "mf": a.mean("f"), "low": a.min("i"), "high": a.max("f"),
}  # fmt: skip
_OTHERS: dict[str, dict[str, Any]] = {
    "statistics": {
        "v": a.variance("i"), "sd": a.stddev("f"), "sk": a.skewness("f"), "ku": a.kurtosis("f"),
        "co": a.covariance("f", "i"), "cr": a.correlation("f", "i"), "g": a.geometric_mean("f"),
        "wm": a.weighted_mean("f", "i"),
    },
    "statistics of integers": {
        "sk": a.skewness("i"), "ku": a.kurtosis("i"), "co": a.covariance("i", "m"),
        "cr": a.correlation("i", "m"),
    },
    "extremes": {
        "ls": a.min("s"), "hs": a.max("s"), "lc": a.min_count("i"), "hc": a.max_count("f"), "hb": a.max("b"),
        "am": a.arg_max("s", by="i"), "an": a.arg_min("i", by="f"), "hd": a.max("d"),
    },
    "order": {
        "fs": a.first("s"), "fi": a.first("i", ignore_nulls=True), "lf": a.last("f"), "nt": a.nth("i", 2),
        "m4": a.m4("f"), "cs": a.collect("s"), "ci": a.collect("i"), "cc": a.concat("s"),
    },
    "quantiles": {
        "mf": a.median("f"), "mi": a.median("i"), "q": a.quantile("f", 0.9), "p": a.percentiles("i", [0.1]),
        "h": a.histogram("f", bins=3),
        "he": a.histogram("f", edges=[0.0, 4.0, 8.0]), "tk": a.top_k("i", 2), "tb": a.top_k("s", 2, by="f"),
    },
    "distinct values": {
        "ds": a.count_distinct("s"), "di": a.count_distinct("i"), "df": a.count_distinct("f"),
        "mo": a.mode("s"), "mi": a.mode("i"), "se": a.collect_set("s"), "si": a.collect_set("i"),
        "bl": a.bloom("s", size=100),
    },
    "bits and conditions": {
        "an": a.bit_and("i"), "or": a.bit_or("i"), "xo": a.bit_xor("i"), "ev": a.every("b"),
        "so": a.some("b"),
        "if": a.count_if("i > 2"), "fi": a.sum("f", filter="b"), "fj": a.sum("i", filter="b"),
    },
}  # fmt: skip


def steps() -> Iterator[Step]:
    """The queries to run, each with a name for the progress bar."""
    for name, chosen in {"sums": _SUMS, **_OTHERS}.items():
        yield name, partial(_aggregates, chosen)
    empty: dict[str, dict[str, Window]] = {"empty windows": {"x": w.tumbling(10, emit_empty=True)}}
    for name, named in {**_BY_TUPLES, **empty}.items():
        yield name, partial(_in_modes, windows(**named).aggregate(**_SUMS))
    yield "timestamps", _timestamps
    yield "small results", _small_results
    yield "late tuples", _late
    yield "many keys", _many_keys
    yield "threads", _threads
    for store in STORES:
        yield f'the store "{store}"', partial(_store, store)


def warm_up(console: Console) -> None:
    """Run all steps, and print the number of compiled functions and the time."""
    from muntin.compiling_kernels import announce_compiling

    announcer = announce_compiling()
    announcer.silent = True  # the progress bar replaces the message
    before, started = announcer.compiled, time.perf_counter()
    bar = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*bar, console=console, transient=True) as progress:
        task = progress.add_task("")
        for name, step in steps():
            progress.update(task, description=name)
            step()
    compiled, seconds = announcer.compiled - before, time.perf_counter() - started
    done = f"{compiled:,} functions compiled" if compiled else "everything was compiled already"
    console.print(f"{done}; {seconds:.1f} s", highlight=False)


def _tuples(nulls: bool = False, ordered: bool = False) -> pa.RecordBatch:
    """A few tuples, out of order unless asked for otherwise."""
    n = 24
    time = [i if ordered else i + i % 3 * 2 for i in range(n)]
    gone = [nulls and i % 5 == 0 for i in range(n)]

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if none else v for v, none in zip(values, gone, strict=True)], kind)

    columns = {
        "t": pa.array(time, pa.int64()),
        "m": pa.array(range(n), pa.int64()),
        "x": pa.array(range(n), pa.float64()),
        "k": pa.array(["a", "b", "c"] * 8),
        "j": pa.array([1, 2, 3, 4] * 6, pa.int64()),
        "i": column([7 * i % 10 for i in range(n)], pa.int64()),
        "f": column([0.5 + 7 * i % 11 for i in range(n)], pa.float64()),
        "s": column(["x", "yy", "", "z"] * 6, pa.string()),
        "b": column([i % 3 == 0 for i in range(n)], pa.bool_()),
        "d": column([Decimal(i) / 4 for i in range(n)], pa.decimal128(10, 2)),
    }
    return pa.record_batch(columns)


def _stream(query: Query, tuples: pa.RecordBatch, **options: Any) -> None:
    """Process three batches, with explicit watermarks unless the stream is in order."""
    operator = query.operator(**options)
    for at in (0, 8, 16):
        operator.process(tuples.slice(at, 8))
        if not options.get("in_order"):
            operator.advance(at + 4)
    operator.stats()  # folds slices, which otherwise happens only with many of them
    if not options.get("in_order"):
        Operator.restore(operator.snapshot()).process(tuples.slice(16, 8))
    operator.finish()


def _in_modes(query: Query) -> None:
    """Run a query with and without keys, in order and out of order, with nulls and without."""
    for keys in ((), ("k",), ("j",), ("k", "j")):
        keyed = query.by(*keys).on("t") if keys else query.on("t")
        keyed.run(_tuples(nulls=True))
        keyed.run(_tuples(nulls=True, ordered=True))
        _stream(keyed, _tuples())
        _stream(keyed, _tuples(ordered=True), in_order=True)


def _aggregates(chosen: dict[str, Any]) -> None:
    _in_modes(windows(**_ON_TIME).aggregate(**chosen))
    _in_modes(windows(ten=w.tumbling(10)).aggregate(**chosen))


def _timestamps() -> None:
    named = {"ten": w.tumbling("10 s"), "visit": w.session("3 s"), "day": w.calendar("day", "Europe/Berlin")}
    tuples = _tuples()
    at = pa.array([v * 1_000_000 for v in tuples["t"].to_pylist()], pa.timestamp("us"))
    tuples = tuples.set_column(0, "t", at)
    query = windows(**named).aggregate(**_SUMS)
    for asked in (query.on("t"), query.by("k").on("t")):
        asked.run(tuples)
        operator = asked.operator(watermark_lag="2 s")
        for record in tuples.to_pylist():
            operator.process(record)
        operator.finish()


def _small_results() -> None:
    """Steps of few tuples without nulls, in compiled code, whose results are read."""
    operator = windows(x=w.tumbling(4)).aggregate(n=a.count(), s=a.sum("i")).on("t").operator()
    for at in (0, 8, 16):
        operator.process(pa.record_batch({"t": np.arange(at, at + 8), "i": np.arange(8)}))
        operator.advance(at + 8).to_arrow()


def _many_keys() -> None:
    """More keys than the key index has room for at first."""
    n = 5_000
    tuples = pa.record_batch({"t": np.arange(n) // 10, "j": np.arange(n) * 7919 % n, "i": np.arange(n)})
    operator = windows(**_ON_TIME).aggregate(n=a.count(), s=a.sum("i")).by("j").on("t").operator()
    for at in (0, n // 2):
        operator.process(tuples.slice(at, n // 2))
        operator.advance(at // 10)
    operator.finish()


def _threads() -> None:
    """Enough tuples and slices for two threads: shares by time and by key, sums and medians."""
    n = 600_000
    numbers = np.arange(n)
    tuples = {"t": numbers // 100, "i": numbers % 10, "f": numbers * 0.5}
    late = tuples | {"t": tuples["t"] - 3 * (numbers % 5 == 0), "j": numbers % 100, "k": numbers % 7 * 2**40}
    sums = {name: _SUMS[name] for name in ("n", "si", "sf", "mi", "mf", "low", "high")}
    windows(**_ON_TIME).aggregate(**sums).on("t").run(tuples, threads=2)
    windows(**_ON_TIME).aggregate(**sums).on("t").run(late, threads=2)
    for values in (sums, {"m": a.median("i")}):
        query = windows(ten=w.tumbling(8), slid=w.sliding(16, 8)).aggregate(**values)
        for keys in (("j",), ("k",)):
            query.by(*keys).on("t").run(late, threads=2)
    mixed = tuples | {"t": numbers * 7919 % n // 100, "j": numbers % 1000}
    for named in (_ON_TIME, {"ten": w.tumbling(8)}):
        windows(**named).aggregate(**sums).by("j").on("t").run(mixed, threads=2)


def _late() -> None:
    """Late tuples that revise results, early results, and keys that are forgotten."""
    for options in ({"allowed_lateness": 5}, {"allowed_lateness": 5, "early": each_batch()}):
        for named in (_ON_TIME, _BY_TUPLES["count windows"]):
            query = windows(**named).aggregate(**_SUMS).by("j").on("t", late="route", **options)
            operator = query.operator()
            for at in (12, 0, 6, 18):
                operator.process(_tuples().slice(at, 6))
                operator.advance(at + 3)
            operator.finish()
            operator.take_late()
    forgotten = {"x": w.tumbling(10, emit_empty=True), **_BY_TUPLES["count windows"]}
    _stream(windows(**forgotten).aggregate(**_SUMS).by("j").on("t", forget_keys_after=3), _tuples())


def _store(store: str) -> None:
    values = {"s": a.sum("i"), "n": a.count()}
    values |= {} if store == "prefix" else {"h": a.max("f"), "sf": a.sum("f")}
    for in_order in (False, True):
        query = windows(x=w.sliding(20, 2)).aggregate(**values).by("j").on("t")
        _stream(query, _tuples(ordered=in_order), in_order=in_order, store=store)
