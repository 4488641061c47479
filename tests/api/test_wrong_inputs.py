"""Wrong inputs that users try, and the answers: the rule, the value and the cure."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import foreign_names
from muntin import windows as w
from muntin.errors import DataError, MuntinError, QueryError, UnknownNameError
from muntin.query_file import loads

NOON = dt.datetime(2024, 1, 31, 12)
SHAPE = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v"))
UNITS = SHAPE.on("t")
TIMES = mt.windows(minute=w.tumbling("1 minute")).aggregate(total=a.sum("v")).on("t")


def totals(results: Any) -> list[Any]:
    return pa.table(results)["total"].to_pylist()  # type: ignore[no-any-return]


# Names that people bring. ---------------------------------------------------------------------------

NAMES = {
    "avg": (a, 'muntin.aggregates has no "avg"; write a.mean'),
    "averge": (a, 'muntin.aggregates has no "averge"; write a.mean'),
    "collect_list": (a, 'muntin.aggregates has no "collect_list"; write a.collect'),
    "countDistinct": (a, 'muntin.aggregates has no "countDistinct"; write a.count_distinct'),
    "ohlc": (a, 'muntin.aggregates has no "ohlc"; write a.first, a.max, a.min and a.last of one column'),
    "hopping": (w, 'muntin.windows has no "hopping"; write w.sliding'),
    "SlidingWindows": (w, 'muntin.windows has no "SlidingWindows"; write w.sliding'),
    "monthly": (w, 'muntin.windows has no "monthly"; write w.calendar("month")'),
    "tumblng": (w, 'muntin.windows has no "tumblng"; write w.tumbling'),
    "windws": (mt, 'muntin has no "windws"; write mt.windows'),
    "tumbling": (mt, 'muntin has no "tumbling"; write w.tumbling, from muntin.windows'),
    "group_by": (UNITS, 'a query has no "group_by"; write .by("shop")'),
    "groupBy": (UNITS, 'a query has no "groupBy"; write .by("shop")'),
    "agg": (UNITS, 'a query has no "agg"; write .aggregate(total=a.sum("amount"))'),
    "explian": (UNITS, 'a query has no "explian"; write .explain'),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_or_misspelt_name_is_answered_with_ours(name: str) -> None:
    owner, message = NAMES[name]
    with pytest.raises(UnknownNameError) as error:
        getattr(owner, name)
    assert str(error.value) == message
    assert isinstance(error.value, AttributeError)
    assert not hasattr(owner, name)


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(
        UnknownNameError, match=r'muntin.windows has no "zzz"; it has ContextFree, .*, until$'
    ):
        w.zzz  # type: ignore[attr-defined]  # noqa: B018  # the access is the test


@pytest.mark.parametrize(
    ("table", "known"), [(foreign_names.AGGREGATES, a.__all__), (foreign_names.WINDOWS, w.__all__)]
)
def test_foreign_names_lead_to_names_that_exist(table: dict[str, str], known: list[str]) -> None:
    words = [word for several in table.values() for word in several.split()]
    assert len(words) == len(set(words))
    assert [write for write in table if write.isidentifier() and write not in known] == []
    assert not set(words) & {foreign_names.plain(name) for name in known}


def test_queries_are_copied_and_pickled() -> None:
    assert copy.deepcopy(UNITS) == UNITS
    assert pickle.loads(pickle.dumps(UNITS)) == UNITS  # noqa: S301  # our own bytes


SPANS = {
    "5T": '"5 minutes"',
    "PT5M": '"5 minutes"',
    "P1DT12H": '"1 day 12 hours"',
    "PT0.5S": '"0.5 seconds"',
    "2H": '"2 hours"',
    "00:05:00": '"5 minutes"',
    "INTERVAL 5 MINUTES": '"5 minutes"',
    "1mo": 'windows.calendar("month") for civil time',
    "P1Y": 'windows.calendar("year") for civil time',
}


@pytest.mark.parametrize("text", SPANS)
def test_a_length_of_another_system_is_answered_with_ours(text: str) -> None:
    with pytest.raises(QueryError, match=r"^length ") as error:
        w.tumbling(text)
    assert str(error.value).endswith(f"got {text!r}; write {SPANS[text]}")
    if SPANS[text].startswith('"'):
        assert w.tumbling(SPANS[text].strip('"')).describe().startswith("tumbling ")


CALLS: dict[str, Callable[[], object]] = {
    'on takes no alowed_lateness: got "1 hour"; it takes time, allowed_lateness, emit, early, late, bad, '
    "idle_after, forget_keys_after, max_ahead, max_windows, on_error. Did you mean "
    '"allowed_lateness"?': lambda: SHAPE.on("t", alowed_lateness="1 hour"),  # type: ignore[call-arg]
    'on takes no watermark: got "5 s"; it takes time, allowed_lateness, emit, early, late, bad, idle_after, '
    "forget_keys_after, max_ahead, max_windows, on_error. Write query.operator(watermark_lag="
    '"10 seconds"), or on Spark transform(query, watermark="10 seconds").': lambda: SHAPE.on(
        "t", watermark="5 s"
    ),  # type: ignore[call-arg]
    "sum needs column: write sum(column)": lambda: a.sum(),  # type: ignore[call-arg]
    'sum takes no colum: got "v"; it takes column, filter. Did you mean "column"?': lambda: a.sum(colum="v"),  # type: ignore[call-arg]
    "sum takes only column without a name: got 2 values; name the others, as in filter=...": lambda: a.sum(
        "v", "w"
    ),  # type: ignore[call-arg]
    "quantile needs q: write quantile(column, q)": lambda: a.quantile("v"),  # type: ignore[call-arg]
    'quantile takes no percentile: got 0.5; it takes column, q, filter. Did you mean "q"?': lambda: (
        a.quantile("v", percentile=0.5)  # type: ignore[call-arg]
    ),
    "sliding needs every: write sliding(length, every)": lambda: w.sliding(5),  # type: ignore[call-arg]
    "sliding takes one length: got two, by place and by name; leave one out": lambda: w.sliding(
        5, 2, length=5
    ),  # type: ignore[misc]
    'operator takes no watermark: got "5 s"; it takes watermark_lag, in_order, clock, store, schema, '
    'threads. Did you mean "watermark_lag"?': lambda: UNITS.operator(watermark="5 s"),  # type: ignore[call-arg]
    "run needs source: write run(source)": lambda: UNITS.run(),  # type: ignore[call-arg]
    "the windows of a query are named in one call: got another call of windows(); write "
    'mt.windows(minute=w.tumbling("1 minute"), hour=w.tumbling("1 hour"))': lambda: mt.windows(
        x=w.tumbling(5)
    ).windows(y=w.tumbling(6)),  # type: ignore[operator]
    'aggregates are added with .aggregate(total=a.sum("amount")): got a call of aggregates()': lambda: (
        SHAPE.aggregates(n=a.count())  # type: ignore[operator]
    ),
    'keys are named with .by("shop"): got a call of keys()': lambda: SHAPE.keys("k"),  # type: ignore[operator]
    "lift must take one value per column, 1: got a function of (x, y); write lift=lambda v: ..., or name "
    "more columns": lambda: a.aggregate("v", lift=lambda x, y: x, combine=max),
    "lift must take one value per column, 2: got a function of (x); write lift=lambda v, t: ...": lambda: (
        a.aggregate("v", "t", lift=lambda x: x, combine=max)
    ),
    "combine must take two partial aggregates: got a function of (x); write combine=lambda p, q: "
    "...": lambda: a.aggregate("v", lift=float, combine=lambda x: x),  # type: ignore[misc,arg-type]
    "lower must take one partial aggregate: got a function of (); write lower=lambda p: ...": lambda: (
        a.aggregate("v", lift=float, combine=max, lower=lambda: 1)  # type: ignore[misc,arg-type]
    ),
    'control takes the path of a directory, like "control/shops": got None': lambda: UNITS.control(
        None  # type: ignore[arg-type]
    ),
    'write takes the path of a file, like "windows.csv": got 5': lambda: UNITS.run(
        {"t": [1], "v": [1]}
    ).write(
        5  # type: ignore[arg-type]
    ),
    'columns must be a list such as ["height", "weight"]: got 5': lambda: a.naive_bayes(
        "v",
        5,  # type: ignore[arg-type]
    ),
    "results have columns by name, rows by number and ranges of rows: got None; "
    'write results["total"], results[0] or results[:10]': lambda: UNITS.run({"t": [1], "v": [1]})[
        None  # type: ignore[call-overload]
    ],
}


@pytest.mark.parametrize("message", CALLS, ids=range(len(CALLS)))
def test_a_call_that_does_not_fit(message: str) -> None:
    with pytest.raises(QueryError) as error:
        CALLS[message]()
    assert str(error.value) == message


def test_an_error_inside_of_a_call_stays_what_it_is() -> None:
    def combine(p: Any, q: Any) -> Any:
        raise TypeError("inside")

    query = mt.windows(x=w.tumbling(10)).aggregate(
        s=a.aggregate("v", lift=float, combine=combine, type="int64")
    )
    with pytest.raises(MuntinError, match="TypeError: inside"):
        query.on("t").run({"t": [1, 2], "v": [1, 2]})


FILE = """
[stream]
time = "t"
[windows.x]
type = "tumbling"
length = 10
[aggregates.n]
function = "sum"
column = "v"
"""


@pytest.mark.parametrize(
    ("right", "wrong", "hint"),
    [
        ('type = "tumbling"', 'type = "hopping"', ' Did you mean "sliding"?'),
        ('function = "sum"', 'function = "avg"', ' Did you mean "mean"?'),
        ("length = 10", "size = 10", ' Did you mean "length"?'),
        ('time = "t"', 'time = "t"\ngroup_by = "k"', ' Did you mean "key"?'),
        ('time = "t"', 'time = "t"\ngrace = 5', ' Did you mean "allowed_lateness"?'),
    ],
)
def test_a_foreign_name_in_a_file(right: str, wrong: str, hint: str) -> None:
    with pytest.raises(QueryError) as error:
        loads(FILE.replace(right, wrong))
    assert str(error.value).endswith(hint)


# Columns. -------------------------------------------------------------------------------------------


def test_a_schema_names_columns_that_exist() -> None:
    told = r'schema must name columns of the input: got "vv"; the columns are t, v. Did you mean "v"\?'
    rows = [{"t": 1, "v": 1}, {"t": 2, "v": 2}]
    for data in (pa.Table.from_pylist(rows), {"t": [1, 2], "v": [1, 2]}, rows, pd.DataFrame(rows)):
        with pytest.raises(DataError, match=told):
            UNITS.run(data, schema={"vv": "float64"})
    with pytest.raises(DataError, match=r'got "other"; the columns are t, v\.$'):
        UNITS.run(pa.Table.from_pylist(rows), schema={"other": "float64"})
    # Later records may have fields that the first ones lack, and a column that is read may be all null.
    assert totals(UNITS.run(rows, schema={"other": "float64"})) == [3]
    assert totals(UNITS.run([{"t": 1}], schema={"v": "float64"})) == [None]


def test_a_misspelt_field_in_a_later_record_is_a_bad_tuple() -> None:
    told = (
        'the column "amount" is missing from a record that has a new field "amuont" instead, which looks '
        "misspelt in row "
    )
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("amount")).on("t")
    rows: list[dict[str, Any]] = [{"t": 1, "amount": 1}, {"t": 2, "amuont": 2}, {"t": 3, "amount": 4}]
    with pytest.raises(DataError, match=f"^{told}1") as error:
        query.run(rows)
    assert 'declare both "amount" and "amuont" in schema= if it is right' in str(error.value)
    for settings in ({}, {"watermark_lag": 0}):
        op = query.operator(**settings)  # type: ignore[arg-type]
        with pytest.raises(DataError, match=told):
            [op.process(row) for row in rows] + [op.flush()]
        op = query.on("t", bad="route").operator(**settings)  # type: ignore[arg-type]
        results = [*(op.process(row) for row in rows), op.finish()]
        assert [total for table in results for total in totals(table)] == [5]
        assert op.take_bad().select(["t", "amount", "amuont"]).to_pylist() == [
            {"t": 2, "amount": None, "amuont": 2}
        ]
    declared = {"amount": "int64", "amuont": "int64"}
    assert totals(query.run(rows, schema=declared)) == [5]


def test_a_misspelt_record_does_not_move_the_watermark() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("amount")).on("t", bad="skip")
    op = query.operator(watermark_lag=0)
    for row in ({"t": 1, "amount": 1}, {"t": 50, "Amount": 2}, {"t": 3, "amount": 4}):
        op.process(row)
    assert totals(op.finish()) == [5]


def test_records_may_lack_fields_and_bring_others() -> None:
    rows = [{"t": 1, "v": 1}, {"t": 2, "refund": 2}, {"t": 3}, {"t": 4, "v2": 3}, {"t": 5, "v": 5, "vv": 6}]
    assert totals(UNITS.run(rows)) == [6]
    op = UNITS.operator()
    for row in rows:
        op.process(row)
    assert totals(op.finish()) == [6]


# Times. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (5, "a datetime, like dt.datetime(2024, 1, 31)"),
        (1_706_702_400, 'np.datetime64(1706702400, "s")'),
        (1_706_702_400_000, 'np.datetime64(1706702400000, "ms")'),
    ],
)
def test_a_number_is_no_watermark_for_timestamps(number: int, moment: str) -> None:
    for op in (TIMES.operator(), TIMES.operator()):
        with pytest.raises(DataError) as error:
            op.advance(number)
        assert str(error.value) == (
            "a time on a timestamp column must be a datetime or an ISO text: "
            f"got {number}, which has no unit; write {moment}"
        )
        op.process({"t": NOON, "v": 1})
    op.flush()
    with pytest.raises(DataError, match="which has no unit"):
        op.advance(number)
    op.advance(NOON)
    assert op.advance(op.watermark).num_rows == 0
    assert totals(op.advance(np.datetime64("2024-01-31T12:01"))) == [1]


def test_an_order_that_is_violated_is_told_in_readable_times() -> None:
    op = TIMES.operator(in_order=True)
    op.process({"t": NOON, "v": 1})
    with pytest.raises(
        DataError, match=r"time 2024-01-31T11:59:55\+00:00 after 2024-01-31T12:00:00\+00:00 in row 0;"
    ):
        op.process({"t": NOON - dt.timedelta(seconds=5), "v": 1})
    numbers = UNITS.operator(in_order=True)
    numbers.process({"t": 7, "v": 1})
    with pytest.raises(DataError, match=r"newer one: time 5 after 7 in row 0;"):
        numbers.process({"t": 5, "v": 1})


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (
            ["2024-01-31", "2024-02-01"],
            "texts like '2024-01-31'; make times of the texts: pc.cast(column, pa.timestamp(\"us\"))",
        ),
        (
            ["2024-01-31T12:00:00Z"],
            (
                "texts like '2024-01-31T12:00:00Z'; make times of the texts: pc.cast(column, "
                'pa.timestamp("us", "UTC"))'
            ),
        ),
        (
            ["2024-01-31", "n/a", "2024-02-01"],
            "'n/a' in row 1; repair it, and make times of the texts: pc.cast(column, pa.timestamp(\"us\"))",
        ),
        (
            ["01/31/2024 23:59", "02/01/2024 00:10"],
            (
                "texts like '01/31/2024 23:59'; make times of the texts: "
                'pc.strptime(column, format="%m/%d/%Y %H:%M", unit="us")'
            ),
        ),
    ],
)
def test_times_that_are_texts(texts: list[str], told: str) -> None:
    table = pa.table({"t": texts, "v": [1] * len(texts)})
    with pytest.raises(DataError) as error:
        TIMES.run(table)
    assert str(error.value) == f'the time column "t" must be a timestamp or an integer: got string, {told}'


def test_integers_since_1970_have_a_recipe() -> None:
    table = pa.table({"t": [1_706_702_400, 1_706_702_401], "v": [1, 2]})
    with pytest.raises(
        QueryError, match=r'got "1 minute"; .*pc.cast\(column, pa.timestamp\("s"\)\) in Arrow'
    ):
        TIMES.run(table)
    cast = table.set_column(0, "t", table["t"].cast(pa.timestamp("s")))
    assert totals(TIMES.run(cast)) == [3]


# Values. --------------------------------------------------------------------------------------------


def test_nan_is_null_in_pandas_only() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v"), n=a.count("v")).on("t")
    columns = {"t": [1, 2], "v": [1.0, float("nan")]}
    assert query.run(pd.DataFrame(columns)).to_arrow().select(["total", "n"]).to_pylist() == [
        {"total": 1.0, "n": 1}
    ]
    for data in (pl.DataFrame(columns), pa.table(columns), columns):
        (row,) = query.run(data)
        assert np.isnan(row["total"])
        assert row["n"] == 2
    assert totals(query.run(pl.DataFrame(columns).fill_nan(None))) == [1.0]


def test_stats_wants_a_running_stream() -> None:
    with pytest.raises(QueryError, match=r"stats takes a running stream: got a DataFrame; pass what"):
        UNITS.stats(pd.DataFrame())


def test_a_frame_of_spark_is_transformed() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(
        DataError, match=r"a DataFrame of Spark .*: use df.transform\(query\), or pass df.toArrow"
    ):
        UNITS.run(frame)


@pytest.mark.parametrize(
    "data", [[{"t": 1.5, "v": 1}], pa.table({"t": [1.5], "v": [1]})], ids=["records", "table"]
)
def test_a_fraction_in_the_time_column_is_not_cured_by_a_schema(data: Any) -> None:
    op = UNITS.operator()
    op.process({"t": [1], "v": [1]})
    with pytest.raises(DataError, match=r'the column "t" must be of type int64.*: got 1\.5') as error:
        op.process(data)
    assert "schema=" not in str(error.value)
