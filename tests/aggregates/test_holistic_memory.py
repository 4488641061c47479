"""What holistic aggregates hold is counted in `stats()`, and goes when their windows have ended."""

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w


def state_bytes(aggregate: object, values: object, watermark: int = 0) -> int:
    op = mt.windows(ten=w.tumbling(10_000)).aggregate(x=aggregate).on("t").operator()
    op.process(pa.table({"t": np.arange(5_000), "v": values}))
    op.advance(watermark)
    return int(op.stats().state_bytes)


@pytest.mark.parametrize(
    "aggregate", [a.median("v"), a.collect("v"), a.collect_set("v"), a.count_distinct("v")]
)
def test_all_values_are_counted(aggregate: object) -> None:
    values = np.arange(5_000)
    assert state_bytes(aggregate, values) >= 5_000 * 16 > 100 * state_bytes(a.sum("v"), values)
    assert state_bytes(aggregate, values, watermark=20_000) < 5_000


def test_equal_values_are_held_once() -> None:
    few, many = np.arange(5_000) % 10, np.arange(5_000)
    for aggregate in (a.median("v"), a.collect_set("v"), a.count_distinct("v"), a.mode("v")):
        assert state_bytes(aggregate, few) < state_bytes(aggregate, many) / 20


def test_quantiles_of_one_column_are_held_once() -> None:
    values = np.random.default_rng(1).random(5_000)
    op = (
        mt.windows(ten=w.tumbling(10_000))
        .aggregate(p50=a.median("v"), p95=a.quantile("v", 0.95), all=a.percentiles("v", [0.1, 0.9]))
        .on("t")
        .operator()
    )
    op.process(pa.table({"t": np.arange(5_000), "v": values}))
    assert op.stats().state_bytes <= state_bytes(a.median("v"), values) + 1_000
