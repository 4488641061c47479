"""What may go in: every container, every type of time and key; and what is refused, with which words."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError

# Containers. -------------------------------------------------------------------------------------

RECORDS = [
    {"t": 3, "k": "a", "v": 1.5, "n": 1},
    {"t": 12, "k": "b", "v": 2.5, "n": 2},
    {"t": 8, "k": "a", "v": None, "n": 3},
    {"t": 25, "k": None, "v": 4.0, "n": None},
    {"t": 4, "k": "b", "v": 0.5, "n": 5},
]
TABLE = pa.Table.from_pylist(RECORDS)
COLUMNS = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
CONTAINERS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "batch": lambda: TABLE.to_batches()[0],
    "sliced batch": lambda: (
        pa.concat_tables([TABLE.slice(3), TABLE]).combine_chunks().to_batches()[0].slice(2)
    ),
    "pandas": lambda: TABLE.to_pandas().astype({"n": "Int64"}),
    "pandas of Arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.from_arrow(TABLE),
    "dict of lists": lambda: COLUMNS,
    "dict of Arrow": lambda: dict(zip(TABLE.column_names, TABLE.columns, strict=True)),
    "dict of NumPy": lambda: COLUMNS | {"t": np.array(COLUMNS["t"])},
    "dict of Series": lambda: COLUMNS | {"t": pd.Series(COLUMNS["t"]), "n": pl.Series(COLUMNS["n"])},
    "list of dicts": lambda: RECORDS,
    "tuple of dicts": lambda: tuple(RECORDS),
}


def query(**on: Any) -> Any:
    shape = mt.windows(ten=w.tumbling(10), s=w.session(5), two=w.count(2))
    aggregates = {"n": a.count(), "total": a.sum("v"), "most": a.max("n"), "first": a.first("k")}
    return shape.aggregate(**aggregates).by("k").on("t", **on)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same(container: str) -> None:
    assert query().run(CONTAINERS[container]()).to_pylist() == query().run(TABLE).to_pylist()


@pytest.mark.parametrize("container", CONTAINERS)
def test_batches_of_different_kinds_may_follow_each_other(container: str) -> None:
    op, expected = query().operator(), query().operator()
    for data in (TABLE, CONTAINERS[container](), RECORDS):
        op.process(data)
        expected.process(TABLE)
    assert op.finish().equals(expected.finish())


def test_single_records_give_the_same() -> None:
    op = query().operator()
    for record in RECORDS:
        assert op.process(record).num_rows == 0
    assert op.finish().equals(query().run(TABLE))


def test_records_and_batches_keep_their_order() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(all=a.collect("v")).on("t")
    op = shape.operator()
    for data in ({"t": 1, "v": 1}, {"t": 1, "v": 2}, [{"t": 1, "v": 3}], {"t": 1, "v": 4}):
        op.process(data)
    assert op.finish()["all"].to_pylist() == [[1, 2, 3, 4]]


def test_more_records_than_the_buffer_holds() -> None:
    op = mt.windows(x=w.tumbling(100_000)).aggregate(n=a.count()).on("t").operator()
    for t in range(10_000):
        op.process({"t": t})
    assert op.finish()["n"].to_pylist() == [10_000]


def test_extra_columns_are_ignored_and_their_order_is_free() -> None:
    op = query().operator()
    op.process(TABLE)
    op.process(TABLE.append_column("more", pa.array(range(5))).select(["more", "n", "v", "k", "t"]))
    op.process(TABLE.select(["n", "k", "t", "v"]))
    assert op.stats().tuples == 15


def test_no_tuples_at_all() -> None:
    for nothing in ([], {}, {"t": [], "v": []}, pa.table({}), TABLE.schema.empty_table(), pd.DataFrame()):
        assert query().run(nothing).num_rows == 0
    op = query().operator()
    for nothing in ([], TABLE.slice(0, 0), {}):
        op.process(nothing)
        op.process(TABLE)
    assert op.stats().tuples == 15
    assert query().run(TABLE.schema.empty_table()).schema == query().run(TABLE).schema


def test_a_field_that_records_leave_out_is_null_in_every_batch() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).on("t")
    at_once = shape.run([{"t": 1, "v": 2}, {"t": 2}])
    op = shape.operator()
    op.process([{"t": 1, "v": 2}])
    op.process([{"t": 2}])
    assert op.finish().equals(at_once)


# Times. ------------------------------------------------------------------------------------------

MINUTE = [dt.datetime(2024, 5, 1, 12, 0, s) for s in (1, 30, 59)] + [dt.datetime(2024, 5, 1, 12, 1)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu", "+02:00"])
def test_timestamps_of_every_unit_and_zone(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    times = pa.array(MINUTE, pa.timestamp("us", "UTC" if zone else None)).cast(kind)
    shape = (
        mt.windows(minute=w.tumbling("1 minute"), s=w.session("28 seconds")).aggregate(n=a.count()).on("ts")
    )
    table = shape.run(pa.table({"ts": times}))
    edges = table.schema.field("window").type
    assert edges.field("start").type == edges.field("end").type == kind
    found = {(row["query"], row["n"]) for row in table.to_pylist()}
    assert found == {("minute", 3), ("minute", 1), ("s", 1), ("s", 2)}
    minutes = table.filter(pc.equal(table["query"], "minute"))["window"].combine_chunks()
    noon = pa.scalar(1_714_564_800, pa.int64()).cast(pa.timestamp("s", zone))
    assert pc.struct_field(minutes, "start").cast(pa.timestamp("s", zone))[0] == noon


def test_edges_finer_than_the_column_come_in_microseconds() -> None:
    shape = mt.windows(x=w.sliding("1 second", every="250 ms")).aggregate(n=a.count()).on("ts")
    table = shape.run({"ts": pa.array([1], pa.timestamp("s", "UTC"))})
    assert table.schema.field("window").type.field("start").type == pa.timestamp("us", "UTC")
    assert table.num_rows == 4


def test_nanoseconds_are_floored_also_before_the_epoch() -> None:
    shape = mt.windows(x=w.tumbling("1 second")).aggregate(n=a.count()).on("ts")
    table = shape.run({"ts": pa.array([-1, 0, 999_999_999], pa.timestamp("ns"))})
    assert table["n"].to_pylist() == [1, 2]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_signed_integers_of_every_width(kind: pa.DataType) -> None:
    table = (
        mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").run({"t": pa.array([-1, 0, 9, 10], kind)})
    )
    assert table["n"].to_pylist() == [1, 2, 1]
    assert table["window"].to_pylist()[0] == {"start": -10, "end": 0}
    assert table.schema.field("window").type.field("start").type == pa.int64()


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
def test_unsigned_integers_of_every_width(kind: pa.DataType) -> None:
    table = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").run({"t": pa.array([0, 9, 10], kind)})
    assert table["n"].to_pylist() == [2, 1]


def test_units_and_widths_may_change_from_batch_to_batch() -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    for unit in ("us", "ms", "s", "ns"):
        op.process({"ts": pa.array(MINUTE, pa.timestamp("us")).cast(pa.timestamp(unit))})
    assert op.finish()["n"].to_pylist() == [12, 4]
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    for kind in (pa.int64(), pa.int8(), pa.uint64()):
        op.process({"t": pa.array([1, 2], kind)})
    assert op.finish()["n"].to_pylist() == [6]


@pytest.mark.parametrize(
    "second",
    [
        pa.array([1], pa.int64()),
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.array(["2024-01-01"]),
        pa.array([1.0]),
        pa.array([dt.date(2024, 1, 1)]),
    ],
    ids=lambda array: str(array.type),
)
def test_times_of_another_kind_are_refused(second: pa.Array) -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    op.process({"ts": pa.array([1], pa.timestamp("us"))})
    with pytest.raises(DataError, match=r'"ts" must be of type timestamp\[us\] in every batch: got'):
        op.process({"ts": second})
    assert op.finish()["n"].to_pylist() == [1]


@pytest.mark.parametrize("wrong", [1.5, "12:00", True, dt.date(2024, 1, 1), b"1"], ids=str)
def test_what_is_no_time_is_refused(wrong: Any) -> None:
    for window, kinds in ((w.tumbling(10), "integers"), (w.count(2), "timestamps or integers")):
        shape = mt.windows(x=window).aggregate(n=a.count()).on("t")
        told = rf'the column "t" must hold {kinds}: got {re.escape(repr(wrong))} in row 0'
        with pytest.raises(DataError, match=told):
            shape.run({"t": [wrong, wrong]})
        with pytest.raises(DataError, match="the time column must be a timestamp or an integer: got"):
            shape.run({"t": pa.array([wrong])})


def test_a_text_for_a_time_names_the_cure() -> None:
    with pytest.raises(DataError, match=r"repair it, turn texts into times with datetime.fromisoformat, or"):
        mt.windows(x=w.tumbling("1 hour")).aggregate(n=a.count()).on("t").run([{"t": "2024-05-01T12:00"}])


def test_lengths_must_be_in_the_unit_of_the_column() -> None:
    with pytest.raises(QueryError, match="lengths must be integers on the integer time column"):
        mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("t").run({"t": [1]})
    with pytest.raises(QueryError, match=r'lengths must be durations.*did you mean "10 seconds"'):
        mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").run({"t": MINUTE})


def test_the_period_of_early_results_must_be_in_the_unit_of_the_column() -> None:
    query = mt.windows(two=w.count(2)).aggregate(n=a.count())
    with pytest.raises(QueryError, match=r'lengths must be integers on the integer time column.*"5 seconds"'):
        query.on("t", early=mt.every("5 seconds")).run({"t": [1, 2]})


@pytest.mark.parametrize("time", [2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63)])
def test_times_near_the_limits_are_refused_without_wrapping(time: int) -> None:
    op = mt.windows(x=w.tumbling(10), s=w.session(5)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1]})
    with pytest.raises(DataError, match=rf'"t" must lie within \+-2\*\*62.*got {time} in row 1'):
        op.process({"t": [2, time]})
    assert op.finish()["n"].to_pylist() == [1, 1]


@pytest.mark.parametrize("time", [2**62 - 1, -(2**62) + 1])
def test_times_just_inside_the_limits_work(time: int) -> None:
    shape = mt.windows(x=w.tumbling(10), s=w.session(5), c=w.count(1), l=w.last(2, every=7))
    table = shape.aggregate(n=a.count()).on("t").run({"t": [time]})
    assert table["n"].to_pylist() == [1] * 4
    assert all(row["start"] <= time < row["end"] for row in table["window"].to_pylist())


@pytest.mark.parametrize(
    "watermark",
    [
        dt.datetime(2024, 5, 1, 12, 1),
        dt.datetime(2024, 5, 1, 14, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "2024-05-01T12:01:00",
        "2024-05-01T12:01:00+00:00",
        pd.Timestamp("2024-05-01 12:01"),
        np.datetime64("2024-05-01T12:01"),
        pa.scalar(dt.datetime(2024, 5, 1, 12, 1), pa.timestamp("s")),
        1_714_564_860_000_000,
    ],
    ids=lambda value: f"{type(value).__name__} {value}",
)
def test_watermarks_may_be_given_in_many_ways(watermark: object) -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    op.process({"ts": pa.array(MINUTE, pa.timestamp("us"))})
    assert op.advance(watermark)["n"].to_pylist() == [3]


# Keys. -------------------------------------------------------------------------------------------

D = decimal.Decimal
KEYS: dict[str, tuple[pa.Array, list[Any]]] = {
    "string": (pa.array(["a", "b", "a", None, ""]), ["a", "b", None, ""]),
    "large string": (pa.array(["a", "b", "a"], pa.large_string()), ["a", "b"]),
    "string view": (pa.array(["a", "b", "a", None], pa.string_view()), ["a", "b", None]),
    "binary": (pa.array([b"a", b"\xff", b"a"]), [b"a", b"\xff"]),
    "fixed binary": (pa.array([b"ab", b"cd", b"ab"], pa.binary(2)), [b"ab", b"cd"]),
    "int8": (pa.array([1, -1, 1, None], pa.int8()), [1, -1, None]),
    "uint64": (pa.array([2**64 - 1, 0, 2**64 - 1], pa.uint64()), [2**64 - 1, 0]),
    "bool": (pa.array([True, False, True, None]), [True, False, None]),
    "float64": (pa.array([0.0, -0.0, 1.5, math.inf, None]), [0.0, 1.5, math.inf, None]),
    "float32": (pa.array([0.0, -0.0, 1.5], pa.float32()), [0.0, 1.5]),
    "float16": (pa.array([0.0, -0.0, 1.5], pa.float16()), [0.0, 1.5]),
    "date": (
        pa.array([dt.date(2024, 1, 1), dt.date(1969, 1, 1)] * 2),
        [dt.date(2024, 1, 1), dt.date(1969, 1, 1)],
    ),
    "time": (pa.array([dt.time(12), dt.time(13), dt.time(12)]), [dt.time(12), dt.time(13)]),
    "timestamp": (pa.array([MINUTE[0], MINUTE[1], MINUTE[0]]), MINUTE[:2]),
    "duration": (pa.array([dt.timedelta(1), dt.timedelta(2)] * 2), [dt.timedelta(1), dt.timedelta(2)]),
    "decimal": (pa.array([D("1.50"), D("-2.25"), D("1.50")]), [D("1.50"), D("-2.25")]),
    "decimal256": (pa.array([D("1.50"), D("2.25")] * 2, pa.decimal256(50, 2)), [D("1.50"), D("2.25")]),
    "dictionary": (pa.array(["a", "b", "a", None]).dictionary_encode(), ["a", "b", None]),
    "dictionary of integers": (pa.array([7, 8, 7]).dictionary_encode(), [7, 8]),
    "run-end encoded": (pc.run_end_encode(pa.array([7, 7, 8])), [7, 8]),
    "null": (pa.nulls(3), [None]),
    "struct": (
        pa.array([{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": 1, "y": "a"}, None]),
        [{"x": 1, "y": "a"}, {"x": 1, "y": None}, None],
    ),
    "struct of floats": (pa.array([{"x": 0.0}, {"x": -0.0}, {"x": 2.0}]), [{"x": 0.0}, {"x": 2.0}]),
    "list": (pa.array([[1, 2], [], [1, 2], [None], None, [2, 1]]), [[1, 2], [], [None], None, [2, 1]]),
    "fixed list": (pa.array([[1, 2], [2, 1], [1, 2]], pa.list_(pa.int64(), 2)), [[1, 2], [2, 1]]),
    "map": (pa.array([[("a", 1)], [], [("a", 1)]], pa.map_(pa.string(), pa.int64())), [[("a", 1)], []]),
    "list of structs": (pa.array([[{"x": 1}], [{"x": 2}], [{"x": 1}]]), [[{"x": 1}], [{"x": 2}]]),
    "uuid": (pa.array([bytes(16), bytes(15) + b"1"] * 2, pa.uuid()), [uuid.UUID(int=0), uuid.UUID(int=49)]),
}

ENCODED = ("dictionary", "dictionary of integers", "run-end encoded")


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type(name: str) -> None:
    column, distinct = KEYS[name]
    shape = mt.windows(x=w.tumbling(10), c=w.count(1)).aggregate(n=a.count()).by("k").on("t")
    op = shape.operator()
    op.process({"t": pa.array(range(len(column))), "k": column})
    again = Operator.restore(op.snapshot())
    for each in (op, again):
        each.process(pa.table({"t": pa.array([5] * len(column)), "k": column}).slice(1))
        table = each.finish()
        mine = table.filter(pc.equal(table["query"], "x"))
        assert mine["k"].to_pylist() == distinct
        assert sum(mine["n"].to_pylist()) == 2 * len(column) - 1
        plain = column.type.value_type if name in ENCODED else column.type
        assert table["k"].type == (pa.large_string() if name == "string view" else plain)
        assert table.num_rows == len(mine) + 2 * len(column) - 1


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()], ids=str)
def test_every_nan_is_one_key(kind: pa.DataType) -> None:
    plain, strange = np.array([np.nan, -np.nan]), np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    column = pa.array(np.concatenate([plain, strange, [1.0]])).cast(kind)
    table = (
        mt.windows(x=w.tumbling(10))
        .aggregate(n=a.count())
        .by("k")
        .on("t")
        .run({"t": [1, 2, 3, 4], "k": column})
    )
    assert table["n"].to_pylist() == [3, 1]
    nested = pa.array([{"x": float(v)} for v in (math.nan, -math.nan, 1.0)])
    table = (
        mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t").run({"t": [1, 2, 3], "k": nested})
    )
    assert table["n"].to_pylist() == [2, 1]


def test_several_key_columns_and_none() -> None:
    data = {
        "t": [1, 2, 3, 4, 5],
        "a": ["x", "x", "y", None, None],
        "b": [1, 2, 1, None, None],
        "c": [True] * 5,
    }
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count())
    assert shape.on("t").run(data)["n"].to_pylist() == [5]
    table = shape.by("a", "b", "c").on("t").run(data)
    found = {(row["a"], row["b"], row["c"]): row["n"] for row in table.to_pylist()}
    assert found == {("x", 1, True): 1, ("x", 2, True): 1, ("y", 1, True): 1, (None, None, True): 2}
    assert table.column_names[:3] == ["a", "b", "c"]


def test_the_time_or_a_value_may_be_a_key_too() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).by("t", "v").on("t")
    assert shape.run({"t": [1, 1, 2], "v": [5, 5, 6]})["total"].to_pylist() == [10, 6]


def test_many_keys_with_few_tuples_each() -> None:
    n = 50_000
    shape = mt.windows(x=w.tumbling(10), s=w.session(3), c=w.count(1)).aggregate(n=a.count()).by("k").on("t")
    table = shape.run({"t": np.zeros(2 * n, np.int64), "k": np.tile(np.arange(n), 2)})
    assert table.num_rows == 4 * n


# Schemas that change, and names that are wrong. ---------------------------------------------------


def test_values_may_be_narrower_than_in_the_first_batch_but_not_of_another_kind() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t").operator()
    op.process({"t": [1], "v": [1.5], "k": ["a"]})
    op.process({"t": [2], "v": [2], "k": pa.array(["a"], pa.large_string())})
    op.process({"t": [3], "v": pa.array([None], pa.int8()), "k": pa.array(["a"]).dictionary_encode()})
    op.process({"t": [4], "v": pa.nulls(1), "k": ["a"]})
    for name, wrong in (("v", ["text"]), ("v", pa.array(["3.5"])), ("k", pa.array([7])), ("v", MINUTE[:1])):
        with pytest.raises(
            DataError, match=f'(column "{name}" must be of type|cannot read the column "{name}")'
        ):
            op.process({"t": [5], "v": [1.0], "k": ["a"]} | {name: wrong})
    assert op.finish().to_pylist()[0]["total"] == 3.5


@pytest.mark.parametrize("fraction", [[1.5], np.array([1.5]), pa.array([1.5]), [math.nan]])
def test_fractions_are_never_cut_off(fraction: Any) -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()
    op.process({"t": [1], "v": [1]})
    with pytest.raises(DataError, match='"v" must be of type int64'):
        op.process({"t": [2], "v": fraction})
    op.process({"t": [3], "v": [2.0]})
    assert op.finish()["total"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("shape", "columns", "words"),
    [
        (mt.windows(x=w.tumbling(5)).aggregate(n=a.count()).on("time"), ["tme", "v"], '"time".*mean "tme"'),
        (
            mt.windows(x=w.tumbling(5)).aggregate(n=a.sum("value")).on("t"),
            ["t", "valeu"],
            '"value".*mean "valeu"',
        ),
        (
            mt.windows(x=w.tumbling(5)).aggregate(n=a.count()).by("shop").on("t"),
            ["t", "shp"],
            '"shop".*mean "shp"',
        ),
        (
            mt.windows(x=w.tumbling(5, measure="mileage")).aggregate(n=a.count()).on("t"),
            ["t", "milage"],
            '"mileage".*mean "milage"',
        ),
        (
            mt.windows(x=w.punctuation(mt.col("price") > 1)).aggregate(n=a.count()).on("t"),
            ["t", "prize"],
            '"price".*mean "prize"',
        ),
        (
            mt.windows(x=w.until(a.sum("amount"), 5)).aggregate(n=a.count()).on("t"),
            ["t", "amout"],
            '"amount".*mean "amout"',
        ),
    ],
    ids=["time", "value", "key", "measure", "predicate", "limit"],
)
def test_an_unknown_column_names_the_nearest(shape: Any, columns: list[str], words: str) -> None:
    with pytest.raises(DataError, match=f"there is no column {words}"):
        shape.run({name: [1] for name in columns})


@pytest.mark.parametrize("missing", ["t", "k", "v", "m"])
def test_a_column_that_is_missing_later_is_a_clear_error(missing: str) -> None:
    shape = mt.windows(x=w.tumbling(5), y=w.tumbling(5, measure="m")).aggregate(n=a.sum("v")).by("k").on("t")
    op = shape.operator()
    whole = {"t": [1], "k": [1], "v": [1], "m": [1]}
    op.process(whole)
    with pytest.raises(DataError, match=f'there is no column "{missing}"'):
        op.process({name: values for name, values in whole.items() if name != missing})
    op.process(whole)
    assert op.stats().tuples == 2


@pytest.mark.parametrize("data", [3, "text", None, [1, 2], [[1]], object(), {"t": [1, 2], "v": [1]}])
def test_what_holds_no_tuples_is_refused(data: Any) -> None:
    op = query().operator()
    with pytest.raises(DataError):
        op.process(data)
    assert op.stats().tuples == 0
