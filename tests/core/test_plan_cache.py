"""An equal query over an equal schema is bound once, and no other query gets its plan."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError
from muntin.slicing import plan_cache
from muntin.slicing.bound_plan import BoundPlan, Settings
from muntin.slicing.operator import SlicingOperator

SCHEMA = pa.schema(
    {"t": pa.int64(), "k": pa.string(), "v": pa.float64(), "a + 1": pa.int64(), "a": pa.int64()}
)
STAMPED = SCHEMA.set(0, pa.field("t", pa.timestamp("us")))


def query(window: Any = None, aggregate: Any = None, **on: Any) -> Any:
    window = w.tumbling(10) if window is None else window
    return mt.windows(x=window).aggregate(y=aggregate or a.sum("v")).by("k").on("t", **on)


def bound(query: Any, schema: pa.Schema = SCHEMA, **settings: Any) -> BoundPlan:
    return SlicingOperator(query, Settings(**settings)).bind(schema)


def tuples(number: int = 40) -> pa.RecordBatch:
    columns = {"t": range(number), "k": ["a", "b"] * (number // 2), "v": np.arange(number) % 7 + 0.5}
    return pa.record_batch({**columns, "a + 1": [1] * number, "a": list(range(number))}, schema=SCHEMA)


def test_equal_query_over_equal_schema_has_one_plan() -> None:
    assert bound(query()) is bound(query())
    windows = {"s": w.session(5), "c": w.calendar("day"), "d": w.delta("v", 2.0), "l": w.last(3, every="5 s")}
    for name, window in windows.items():
        schema = SCHEMA if name in ("s", "d") else STAMPED
        assert bound(query(window), schema) is bound(query(window), schema), name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (query(), query(w.tumbling(11))),
        (query(w.delta("v", 1)), query(w.delta("v", 1.0))),
        (query(w.delta("v", 0.5)), query(w.delta("a", 0.5))),
        (query(w.punctuation("v > 1")), query(w.punctuation("v > 1.0"))),
        (query(aggregate=a.sum("a + 1")), query(aggregate=a.sum(mt.col("a") + 1))),
        (query(aggregate=a.first("v")), query(aggregate=a.last("v"))),
        (query(), query(allowed_lateness=1)),
        (query(), query(on_error="skip")),
        (query(), query().by()),
    ],
)
def test_other_queries_have_other_plans(one: Any, other: Any) -> None:
    assert bound(one) is bound(one)
    assert bound(one) is not bound(other)


def test_settings_and_schemas_have_other_plans() -> None:
    plan = bound(query())
    assert bound(query(), in_order=True) is not plan
    assert bound(query(), store="flatfat") is not plan
    assert bound(query(), pa.schema([*SCHEMA, pa.field("more", pa.int64())])) is not plan
    described = SCHEMA.set(2, pa.field("v", pa.float64(), metadata={"unit": "km"}))
    assert bound(query(), described).binding.schema.field("v").metadata == {b"unit": b"km"}
    assert bound(query()).binding.schema.field("v").metadata is None


def test_durations_and_integers_are_not_confused() -> None:
    units, microseconds = query(w.tumbling(10)), query(w.tumbling("10 us"))
    assert units == microseconds  # as integers are, whatever they count
    assert bound(units, SCHEMA).binding.time.is_integer
    assert not bound(microseconds, STAMPED).binding.time.is_integer
    with pytest.raises(QueryError, match="integer"):
        bound(microseconds, SCHEMA)
    with pytest.raises(QueryError, match="timestamp"):
        bound(units, STAMPED)


def test_code_of_the_user_and_opaque_expressions_are_not_shared() -> None:
    own = query(aggregate=a.aggregate("v", lift=float, combine=operator.add))
    assert bound(own) is not bound(own)
    opaque = query(aggregate=a.sum(pc.sqrt(pc.field("v"))))
    assert bound(opaque) is not bound(opaque)


def test_redefined_function_is_the_one_that_runs() -> None:
    results = []
    for factor in (1, 2):

        def lift(value: float, factor: int = factor) -> float:
            return value * factor

        own = query(aggregate=a.aggregate("v", lift=lift, combine=operator.add))
        results.append(own.run(tuples())["y"].to_pylist())
    assert results[1] == [2 * value for value in results[0]]


def test_error_is_not_remembered() -> None:
    wrong = query(aggregate=a.sum("absent"))
    for _ in range(2):
        with pytest.raises(DataError, match='no column "absent"'):
            wrong.run(tuples())


QUERIES = [
    query(),
    query(w.sliding(10, every=3), a.quantile("v", 0.5)),
    query(w.session(2), a.mean("v"), allowed_lateness=3),
    query(w.count(3), a.collect("v")),
    query(w.delta("v", 3.0), a.stddev("v")),
    query(w.tumbling(10, emit_empty=True), a.approx_count_distinct("v")),
    query(w.cumulate(20, 5), a.max("v"), early=mt.each_batch()),
]


def arrays(value: Any, path: str = "", seen: dict[int, Any] | None = None) -> Iterator[tuple[str, Any]]:
    """All arrays that a plan holds, derived ones included."""
    seen = {} if seen is None else seen
    if id(value) in seen or isinstance(value, type):
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield path, value.copy()
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from arrays(each, f"{path}/{name}", seen)
    elif isinstance(value, tuple | list):
        for i, each in enumerate(value):
            yield from arrays(each, f"{path}/{i}", seen)
    elif type(value).__module__.startswith("muntin."):
        held = dict(getattr(value, "__dict__", {}))
        if is_dataclass(value):
            held |= {f.name: getattr(value, f.name, None) for f in fields(value)}
        yield from arrays(held, path, seen)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: repr(query.windows[0][1].describe()))
def test_run_changes_no_plan(query: Any) -> None:
    first = query.run(tuples())
    plan = bound(query)
    before = dict(arrays(plan))
    assert before
    assert query.run(tuples()) == first
    query.run(tuples(20))
    after = dict(arrays(plan))
    for path, array in before.items():
        np.testing.assert_array_equal(after[path], array, err_msg=path)
    assert query.run(tuples()) == first


def test_threads_share_plans() -> None:
    expected = [query.run(tuples()) for query in QUERIES]
    plan_cache.forget_plans()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            results = list(pool.map(lambda query: query.run(tuples()), QUERIES * 4))
            assert all(one == other for one, other in zip(results, expected * 4, strict=True))


def test_cache_is_bounded() -> None:
    for length in range(1, 2 * plan_cache.MOST_PLANS):
        bound(query(w.tumbling(length)))
    assert plan_cache._shared.cache_info().currsize == plan_cache.MOST_PLANS
