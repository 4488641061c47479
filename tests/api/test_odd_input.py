"""Input that is wrong in unusual ways: an error with the rule, the value and a cure, never a raw one."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates import joining
from muntin.errors import DataError, QueryError, UserCodeError, cause_text, value_text
from muntin.query_file import loads

DIGITS = "9" * 5000
HUGE = 10**5000
TUMBLING = mt.windows(x=w.tumbling(10))


def value_of(aggregate: a.Aggregate, data: Any, **policies: Any) -> list[Any]:
    found: list[Any] = TUMBLING.aggregate(x=aggregate).on("t", **policies).run(data)["x"].to_pylist()
    return found


# Types of user-defined aggregates. -----------------------------------------------------------------


def plus(x: Any, y: Any) -> Any:
    return x + y


class Total(a.UserAggregate):
    """With a type by its name."""

    type = "float64"

    def lift(self, value: Any) -> Any:
        return value

    def combine(self, p: Any, q: Any) -> Any:
        return p + q


def test_the_type_of_a_result_may_be_named() -> None:
    rows = {"t": [1, 2], "v": [1, 2]}
    assert value_of(a.aggregate("v", lift=int, combine=plus, type="int32"), rows) == [3]
    assert value_of(Total().over("v"), rows) == [3.0]
    assert a.aggregate("v", lift=int, combine=plus, type="int32") == a.aggregate(
        "v", lift=int, combine=plus, type=pa.int32()
    )


@pytest.mark.parametrize("wrong", [42, "int65", int, [], HUGE], ids=value_text)
def test_other_types_are_refused(wrong: Any) -> None:
    with pytest.raises(
        QueryError, match=r'type must be a pyarrow type or the name of one, like "float64": got'
    ):
        a.aggregate("v", lift=int, combine=plus, type=wrong)


# Values that have a type of their own. -------------------------------------------------------------

IDS = [uuid.UUID(int=i) for i in range(4)]


@pytest.mark.parametrize(
    "values",
    [IDS, pa.array([one.bytes for one in IDS], pa.uuid())],
    ids=["Python", "Arrow"],
)
def test_uuids_are_collected(values: Any) -> None:
    windows = {"ten": w.tumbling(10), "two": w.count(2), "visit": w.session(2)}
    query = mt.windows(**windows).aggregate(ids=a.collect("v"), first=a.first("v"), n=a.count("v"))
    op = query.on("t", allowed_lateness=50, early=mt.every(5)).operator()
    op.process({"t": [1, 2, 12, 3], "v": values})
    assert op.advance(4).num_rows
    op = mt.Operator.restore(op.snapshot())
    rows = op.advance(10).to_pylist()
    assert [row["ids"] for row in rows if row["window_name"] == "ten"] == [[IDS[0], IDS[1], IDS[3]]]
    op.process({"t": [4], "v": values[:1]})
    rows = op.advance(30).to_pylist()
    again = [row["ids"] for row in rows if row["window_name"] == "ten" and row["kind"] == "update"]
    assert again == [[IDS[0], IDS[1], IDS[3], IDS[0]]]


# Texts of more than 2 GB. --------------------------------------------------------------------------


def test_texts_that_do_not_fit_into_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    told = r"must stay below 2 GB: got .*large_string.*, or advance the watermark in smaller steps"

    def overflow(_: Any) -> Any:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    op = TUMBLING.aggregate(x=a.concat("v")).on("t").operator()
    op.process({"t": [1], "v": ["a"]})
    before = op.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(joining.pa, "concat_arrays", overflow)
        with pytest.raises(DataError, match=told):
            op.process(pa.table({"t": [2], "v": ["b"]}))
    assert op.snapshot() == before
    op.process({"t": [2], "v": ["b"]})
    assert op.finish()["x"].to_pylist() == ["ab"]


def test_kept_texts_are_refused_when_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a watermark the error would come again and again."""
    monkeypatch.setattr("muntin.slicing.tuple_state.MOST_BYTES", 1000)
    shape = mt.windows(x=w.count(2, emit_partial=True)).aggregate(x=a.concat("v"))
    op = shape.on("t").operator()
    op.process({"t": [1, 2], "v": ["a" * 300, "b" * 300]})
    with pytest.raises(DataError, match=r'"v" has 1,2\d\d bytes in tuples that wait for a watermark; make'):
        op.process({"t": [3, 4], "v": ["c" * 300, "d" * 300]})
    assert op.advance(3).num_rows == 1
    op.process({"t": [3, 4], "v": ["c" * 300, "d" * 300]})
    assert [len(text) for text in op.finish()["x"].to_pylist()] == [600]
    large = shape.on("t").operator(schema={"v": "large_string"})
    large.process({"t": [1, 2, 3], "v": ["a" * 600] * 3})
    assert [len(text) for text in large.finish()["x"].to_pylist()] == [1200, 600]


@pytest.mark.deep
def test_two_gigabytes_of_texts() -> None:
    megabyte = "x" * 2**20
    for window in (w.tumbling(10), w.count(5000, emit_partial=True)):
        op = mt.windows(x=window).aggregate(x=a.concat("v")).on("t").operator()
        op.process(pa.table({"t": [1] * 1100, "v": [megabyte] * 1100}))
        with pytest.raises(DataError, match=r"must stay below 2 GB"):
            op.process(pa.table({"t": [2] * 1100, "v": [megabyte] * 1100}))
        assert len(op.finish()["x"][0].as_py()) == 1100 * 2**20


# Exceptions and values that cannot be shown. -------------------------------------------------------


class MuteError(Exception):
    """Its message cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no message")


class Mute:
    """It cannot be shown either."""

    def __repr__(self) -> str:
        raise ValueError("no text")


def fails(*_: Any) -> Any:
    raise MuteError


def test_exceptions_whose_message_fails_are_told_by_their_type() -> None:
    told = r"MuteError \(its message cannot be shown: __str__ raises ValueError\)"
    assert cause_text(MuteError()) == told.replace("\\", "")
    rows = {"t": [1], "v": [1]}
    for aggregate in (
        a.aggregate("v", lift=fails, combine=plus, type="int64"),
        a.aggregate("v", lift=int, combine=plus, lower=fails, type="int64"),
        a.aggregate("v", lift=fails, combine=plus),
    ):
        with pytest.raises((UserCodeError, QueryError), match=told):
            value_of(aggregate, rows)
    for window in (
        w.discretize(fails),
        w.trigger(fails, lambda buffer: 0),
        w.until(a.aggregate("v", lift=fails, combine=plus, type="int64"), 5),
    ):
        with pytest.raises(UserCodeError, match=told):
            mt.windows(x=window).aggregate(n=a.count()).on("t").run(rows)


def test_values_that_cannot_be_shown() -> None:
    assert value_text(Mute()) == "<Mute: __repr__ raises ValueError>"
    assert value_text(HUGE) == "an integer of 16,610 bits"
    with pytest.raises(
        DataError, match=r"must be of type int64: got <Mute: __repr__ raises ValueError> in row 1"
    ):
        value_of(a.sum("v"), [{"t": 1, "v": 1}, {"t": 2, "v": Mute()}])
    for call in (
        lambda: mt.windows(x=Mute()),  # type: ignore[arg-type]
        lambda: TUMBLING.aggregate(x=Mute()),  # type: ignore[arg-type]
        lambda: w.tumbling(Mute()),
        lambda: w.count(Mute()),  # type: ignore[arg-type]
        lambda: a.sum(Mute()),  # type: ignore[arg-type]
    ):
        with pytest.raises(QueryError, match="got <Mute: __repr__ raises ValueError>"):
            call()


# Integers of thousands of digits. ------------------------------------------------------------------

TOML = """
[stream]
time = "t"
[windows.x]
type = "tumbling"
length = {}
[aggregates.n]
function = "count"
"""


@pytest.mark.parametrize("number", [DIGITS, "0x" + "f" * 5000], ids=["decimal", "hexadecimal"])
def test_a_file_with_a_huge_integer(number: str) -> None:
    with pytest.raises(QueryError, match=r"must fit into 64 bits: got one of thousands|must lie within"):
        loads(TOML.format(number))


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", "0x" + "f" * 5000])
def test_an_expression_with_a_huge_integer(number: str) -> None:
    with pytest.raises(QueryError, match=r"integers must fit into 64 bits|thousands of digits") as error:
        w.punctuation(f"v > {number}")
    assert len(str(error.value)) < 700


@pytest.mark.parametrize(
    "call",
    [
        lambda: w.tumbling(HUGE),
        lambda: w.session(-HUGE),
        lambda: w.count(HUGE),
        lambda: w.last(HUGE, every=1),
        lambda: w.delta("v", HUGE),
        lambda: w.until(a.count(), HUGE),
        lambda: a.nth("v", HUGE),
        lambda: a.top_k("v", HUGE),
        lambda: a.quantile("v", HUGE),
        lambda: a.histogram("v", HUGE),
        lambda: TUMBLING.aggregate(n=a.count()).on("t", allowed_lateness=HUGE),
    ],
)
def test_huge_integers_in_a_query(call: Callable[[], object]) -> None:
    with pytest.raises(QueryError, match=r"got an integer of 16,6\d\d bits"):
        call()


def test_huge_integers_in_the_data() -> None:
    rows = [{"t": 1, "v": 1}, {"t": 2, "v": HUGE}, {"t": 3, "v": 2}]
    told = r'the column "v" must be of type int64: got an integer of 16,610 bits in row 1'
    with pytest.raises(DataError, match=told):
        value_of(a.sum("v"), rows)
    assert value_of(a.sum("v"), rows, bad="skip") == [3]
    op = TUMBLING.aggregate(x=a.sum("v")).on("t", bad="route").operator()
    for row in rows:
        op.process(row)
    assert op.finish()["x"].to_pylist() == [3]
    (routed,) = op.take_bad().to_pylist()
    assert routed["v"] == "an integer of 16,610 bits"
    with pytest.raises(QueryError, match=r"must lie within \+-2\*\*62: got an integer of 16,610 bits"):
        TUMBLING.aggregate(x=a.sum("v")).on("t").operator().advance(HUGE)


def test_the_smallest_integer_fits() -> None:
    smallest, largest = -(2**63), 2**63 - 1
    rows = pa.table({"t": [1, 2, 3], "v": [smallest, 0, largest]})
    assert value_of(a.count_if(f"v > {smallest}"), rows) == [2]
    assert value_of(a.count_if(f"v in [{smallest}, {largest}]"), rows) == [2]
    query = mt.windows(x=w.punctuation(f"v == {smallest}")).aggregate(n=a.count()).on("t")
    assert loads(query.to_toml()) == query
    for wrong in (f"v > {2**63}", f"v > -{2**63 + 1}", f"v in [{2**63}]"):
        with pytest.raises(QueryError, match="integers must fit into 64 bits; write a float"):
            w.punctuation(wrong)


# Files. --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a=" * 5000 + "1" + "}" * 5000,
        "a" + ".a" * 50_000 + " = 1",
    ],
    ids=["lists", "tables", "dotted key"],
)
def test_a_deeply_nested_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(
        QueryError, match=r"deep.toml must not be so deeply nested: write lists and tables side"
    ):
        mt.load(path)


@pytest.mark.parametrize("path", [5, None, b"query.toml", ["query.toml"]], ids=repr)
def test_load_takes_a_path(path: Any) -> None:
    with pytest.raises(QueryError, match=r'load takes the path of a query file, like "query.toml": got'):
        mt.load(path)
    with pytest.raises(QueryError, match="loads takes the text of a query file: got"):
        loads(path)


def test_a_path_that_cannot_be_one() -> None:
    with pytest.raises(QueryError, match="embedded null byte; give the path of a query file"):
        mt.load("a\0b")


# Options. -------------------------------------------------------------------------------------------


class Hidden:
    """A value that Python can neither show nor compare."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("value", [Hidden(), ["route"], 5], ids=["hidden", "list", "number"])
def test_options_take_one_of_their_names(value: Any) -> None:
    shape = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count())
    for option in ("late", "bad", "on_error"):
        with pytest.raises(QueryError, match=f"{option} must be .*: got "):
            shape.on("t", **{option: value})
    with pytest.raises(QueryError, match=r"there is no store .*; choose lazy or"):
        shape.on("t").operator(store=value)
    with pytest.raises(QueryError, match=r"clock must be a function that gives the seconds .*: got "):
        shape.on("t").operator(clock=value)


def test_a_length_of_thousands_of_digits() -> None:
    for text in ("9" * 5000, f"{'9' * 5000} s", f"0.{'0' * 5000}1 s"):
        with pytest.raises(QueryError, match='length must be a duration like "1 minute" or "1h30m": got '):
            w.tumbling(text)


# Histograms. ---------------------------------------------------------------------------------------


def test_a_histogram_of_too_many_bins() -> None:
    with pytest.raises(
        QueryError, match=r"bins must not exceed 1,000,000 \(.*\): got 1000000000000; choose fewer"
    ):
        a.histogram("v", bins=10**12)
    (bins,) = value_of(a.histogram("v", bins=1000), {"t": [1, 2], "v": [0.0, 1.0]})
    assert len(bins) == 1000
