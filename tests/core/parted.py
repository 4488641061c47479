"""Queries and tables for `run(table, threads=n)`, and all that can be seen of a result."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

WINDOWS = {
    "edges": {
        "ten": w.tumbling(10),
        "sixty": w.sliding(60, 10),
        "odd": w.sliding(21, 13),
        "gaps": w.sliding(3, 7),
    },
    "time": {"ten": w.tumbling(10), "sixty": w.sliding(60, 10), "grown": w.cumulate(50, 10)},
    "sessions": {"visit": w.session(3), "long": w.session(40), "ten": w.tumbling(10)},
    "tuples": {"hundred": w.count(100), "slide": w.slide_by_tuple(7, 3), "ten": w.tumbling(10)},
    "empty": {"ten": w.tumbling(10, emit_empty=True), "mark": w.landmark(0, 500)},
    "frames": {"high": w.threshold("f > 0"), "full": w.until(a.sum("f"), 5.0), "last": w.last(5, 50)},
}
AGGREGATES = {
    "sums": {"total": a.sum("f"), "mean": a.mean("f"), "whole": a.sum("i"), "n": a.count("i")},
    "moments": {"spread": a.stddev("f"), "bend": a.kurtosis("f"), "together": a.correlation("f", "i")},
    "others": {"median": a.median("f"), "first": a.first("i"), "top": a.top_k("i", 3), "all": a.collect("i")},
}


def stream(n: int, keys: int, ordered: bool = False) -> pa.Table:
    """Floats whose sums depend on the order of additions, ties, nulls, and a key of two columns."""
    rng = np.random.default_rng(keys)
    time = np.sort(rng.integers(0, 1000, n)) if ordered else rng.integers(0, 1000, n)
    floats = rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)
    return pa.table(
        {
            "t": time,
            "k": pa.array(rng.integers(0, keys, n), mask=rng.random(n) < 0.01),
            "j": pa.array(rng.choice(["a", "b", "c"], n)),
            "f": pa.array(floats, mask=rng.random(n) < 0.1),
            "i": rng.integers(-1000, 1000, n),
        }
    )


def nearly_in_order(n: int, keys: int, late: int = 40) -> pa.Table:
    """As `stream`, but times advance: most tuples lie within `late` of the newest one."""
    table = stream(n, keys, ordered=True)
    rng = np.random.default_rng(n)
    behind = np.where(rng.random(n) < 0.2, rng.integers(0, late + 1, n), 0)
    return table.set_column(0, "t", pa.array(table["t"].to_numpy() - behind))


def seen(table: pa.Table | mt.Results) -> tuple[pa.Schema, str]:
    return table.schema, repr(table.to_pylist())
