"""Tuples with values of a wrong type are bad tuples: they fail, are skipped or routed, as one says."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError

# Every column that the query reads: time, key, input, filter, computed input, predicate, measure.
QUERY = (
    mt.windows(ten=w.tumbling(10), high=w.threshold(mt.col("p") > 5), km=w.tumbling(10, measure="m"))
    .aggregate(n=a.count(), total=a.sum("v"), twice=a.max(mt.col("c") * 2), some=a.count(filter=mt.col("f")))
    .by("k")
)
GOOD = [
    {"t": t, "k": "ab"[t % 2], "v": t + 0.5, "f": t % 3 == 0, "c": t, "p": t, "m": t, "id": t, "x": t}
    for t in range(12)
]
WRONG: dict[str, list[Any]] = {
    "t": ["x", 1.5, None, True, dt.datetime(2024, 1, 1), {"a": 1}, 2**70, object()],
    "k": [7, b"a", 1.5],
    "v": ["x", True, [1.5], 2**70],
    "f": [1, "true"],
    "c": [2.5, "1", 2**63],
    "p": ["high", False],
    "m": ["far", None],
}
CASES = [(column, value) for column, values in WRONG.items() for value in values]


def on_object_columns(records: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([r[name] for r in records], dtype=object) for name in records[0]})


def object_array(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


CONTAINERS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list of dicts": lambda records: records,
    "dict of lists": lambda records: {name: [r[name] for r in records] for name in records[0]},
    "dict of NumPy": lambda records: {name: object_array([r[name] for r in records]) for name in records[0]},
    "pandas": on_object_columns,
}


def feed(op: Operator, records: list[dict[str, Any]], container: str) -> None:
    if container == "records":
        for record in records:
            op.process(record)
        op.flush()
    else:
        op.process(CONTAINERS[container](records))


def ids(table: pa.Table) -> list[int]:
    return [int(number) for number in table["id"].to_pylist()]


EXPECTED = QUERY.on("t").run(GOOD).to_pylist()


@pytest.mark.parametrize("container", [*CONTAINERS, "records"])
@pytest.mark.parametrize("first", [False, True], ids=["later", "first batch"])
def test_bad_values_are_routed_and_the_others_count(container: str, first: bool) -> None:
    op = QUERY.on("t", bad="route").operator()
    # Among the first values a fraction makes a column of floats.
    cases = [case for case in CASES if not (first and case == ("c", 2.5))]
    bad = [GOOD[i % 12] | {column: value, "id": 100 + i} for i, (column, value) in enumerate(cases)]
    mixed = [*bad[:5], *GOOD[:6], *bad[5:], *GOOD[6:]] if first else [*GOOD[6:], *bad]
    if not first:
        feed(op, GOOD[:6], container)
    feed(op, mixed, container)
    assert op.stats().bad == len(cases)
    routed = op.take_bad()
    assert ids(routed) == [record["id"] for record in bad]
    for (column, value), row in zip(cases, routed.to_pylist(), strict=True):
        assert row["reason"].startswith(f'the column "{column}" ')
        assert row["reason"].endswith("got null" if value is None else f"got {value!r}"[:70])
        assert row[column] == (None if value is None else str(value))
    assert op.take_bad().num_rows == 0
    assert op.finish().to_pylist() == EXPECTED


@pytest.mark.parametrize("container", [*CONTAINERS, "records"])
def test_bad_values_are_skipped(container: str, caplog: pytest.LogCaptureFixture) -> None:
    op = QUERY.on("t", bad="skip").operator()
    feed(op, GOOD[:6], container)
    with caplog.at_level(logging.WARNING, "muntin"):
        feed(op, [*GOOD[6:], *(GOOD[0] | {column: value} for column, value in CASES)], container)
    assert f"{len(CASES)} bad tuples: the column \"t\" must be of type int64: got 'x'" in caplog.text
    assert op.stats().bad == len(CASES)
    assert op.take_bad().num_rows == 0
    assert op.finish().to_pylist() == EXPECTED


@pytest.mark.parametrize(("column", "value"), CASES, ids=lambda value: str(value).partition(" at ")[0])
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_bad_value_fails_before_anything_changes(container: str, column: str, value: Any) -> None:
    op = QUERY.on("t").operator()
    feed(op, GOOD[:6], container)
    before = op.snapshot()
    with pytest.raises(DataError) as error:
        feed(op, [*GOOD[6:], GOOD[0] | {column: value}], container)
    told = str(error.value)
    assert told.startswith(f'the column "{column}" ')
    assert f"got {'null' if value is None else repr(value)} in row 6, " in told
    assert "repair it, " in told
    assert told.endswith('or choose bad="skip" or bad="route"')
    assert op.snapshot() == before
    feed(op, GOOD[6:], container)
    assert op.finish().to_pylist() == EXPECTED


def test_a_number_that_another_type_could_hold_names_that_type() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()
    op.process({"t": [1], "v": [1]})
    with pytest.raises(DataError, match=r"""of type int64: got 1.5.*pass schema={"v": "float64"}, or"""):
        op.process({"t": [2], "v": [1.5]})


def test_a_bad_record_is_told_alone_and_those_around_it_count() -> None:
    op = QUERY.on("t").operator()
    for record in [*GOOD[:4], GOOD[0] | {"v": "x"}, *GOOD[4:8], GOOD[0] | {"t": None}, *GOOD[8:]]:
        op.process(record)
    with pytest.raises(DataError, match=r"\"v\" must be of type double: got 'x' in row 0, {'t': 0"):
        op.advance(5)
    with pytest.raises(DataError, match='"t" needs a value in every tuple: got null'):
        op.advance(5)
    assert op.watermark < 0
    assert [*op.advance(5).to_pylist(), *op.finish().to_pylist()] == EXPECTED


def test_a_typed_column_of_a_wrong_type_fails_as_a_whole() -> None:
    for bad in ("fail", "skip", "route"):
        op = QUERY.on("t", bad=bad).operator()
        op.process(GOOD[:6])
        for column, array in (
            ("t", pa.array(["x"] * 6)),
            ("k", pa.array([1] * 6)),
            ("v", np.array(["x"] * 6)),
            ("c", pd.Series([1.5] * 6)),
        ):
            columns = CONTAINERS["dict of lists"](GOOD[6:]) | {column: array}
            with pytest.raises(DataError, match=f'"{column}" must be of type .* in every batch: got'):
                op.process(columns)
        op.process(GOOD[6:])
        assert op.finish().to_pylist() == EXPECTED


def test_columns_that_no_query_reads_may_hold_anything() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t", bad="route", late="route").operator()
    odd = [1, "a", [2.5], object, None]
    op.process([{"t": 1, "odd": value} for value in odd])
    op.process({"t": [2, None], "odd": [{"a": 1}, b"x"]})
    op.process({"t": pa.array([3]), "odd": pa.array([1.5])})
    op.advance(20)
    op.process([{"t": 4, "odd": "late"}])
    assert op.advance(21).num_rows == 0
    assert op.take_late()["odd"].to_pylist() == ["late"]
    assert op.take_bad()["odd"].to_pylist() == ["b'x'"]
    assert op.stats().tuples == 8


def test_the_outputs_keep_columns_of_the_same_name() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t", bad="route", late="route").operator()
    op.process({"t": [50, None], "reason": ["fine", "none"], "window_name": ["a", "b"]})
    op.advance(40)
    op.process({"t": [3], "reason": ["late"], "window_name": ["c"]})
    op.advance(41)
    (bad,), (late,) = op.take_bad().to_pylist(), op.take_late().to_pylist()
    assert (bad["reason_1"], bad["window_name"], bad["reason"][-8:]) == ("none", "b", "got null")
    assert late == {"t": 3, "reason": "late", "window_name_1": "c", "window_name": "x"}


def test_nothing_is_lost_before_the_first_time() -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("t", bad="route").operator()
    op.process([{"t": "x", "id": 0}, {"t": None, "id": 1}])
    op = Operator.restore(op.snapshot())
    op.process([{"t": 5, "id": 2}, {"t": dt.datetime(2024, 1, 1), "id": 3}])
    again = Operator.restore(op.snapshot())
    for each in (op, again):
        assert each.finish()["n"].to_pylist() == [1]
        routed = each.take_bad()
        assert routed["id"].to_pylist() == [0, 1, 2]
        assert routed["t"].to_pylist() == ["x", None, "5"]


def test_a_record_without_a_time() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count())
    for bound in (False, True):
        op = shape.on("time").operator()
        skipping = shape.on("time", bad="route").operator()
        if bound:
            for each in (op, skipping):
                each.process({"time": 3, "v": 1})
        with pytest.raises(DataError, match=r'there is no column "time".*Did you mean "tiem"'):
            op.process({"tiem": 4, "v": 2})
        skipping.process({"tiem": 4, "v": 2})
        assert skipping.take_bad().select(["tiem", "v"]).to_pylist() == [{"tiem": 4, "v": 2}]
        assert skipping.finish()["n"].to_pylist() == [1] * bound


ANY = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 30), st.floats(-3, 30), st.sampled_from(["a", "7", b"a", 2**64])
)


@given(st.lists(st.tuples(ANY, ANY, ANY), max_size=30), st.integers(1, 7))
def test_what_is_bad_is_told_from_what_is_good(rows: list[tuple[Any, Any, Any]], size: int) -> None:
    """Against the rules in plain Python: t and v hold integers, k texts; null is fine but for t."""

    def whole(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and value == int(value) and abs(value) < 2**63

    def is_good(t: Any, k: Any, v: Any) -> bool:
        return whole(t) and (k is None or isinstance(k, str)) and (v is None or whole(v))

    records = [{"t": t, "k": k, "v": v, "id": i} for i, (t, k, v) in enumerate(rows)]
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).by("k")
    op = shape.on("t", bad="route").operator()
    start = {"t": 0, "k": "start", "v": 0, "id": -1}
    op.process([start])
    for at in range(0, len(records), size):
        op.process(records[at : at + size])
    good = [r for r in records if is_good(r["t"], r["k"], r["v"])]
    bad = [r["id"] for r in records if r not in good]
    routed = op.take_bad()
    assert ids(routed) == bad
    assert all(routed["reason"].to_pylist())
    expected: dict[tuple[Any, int], list[int]] = {("start", 0): [0]}
    for r in good:
        expected.setdefault((r["k"], int(r["t"]) // 10 * 10), []).append(r["v"])
    found = {(r["k"], r["window"]["start"]): (r["n"], r["total"]) for r in op.finish().to_pylist()}
    assert found == {
        key: (len(values), sum(numbers) if (numbers := [v for v in values if v is not None]) else None)
        for key, values in expected.items()
    }
