"""The types of columns: from the first values, or given beforehand; later batches are cast without loss."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError
from muntin.testing.engines import EmbeddedEngine, Record
from muntin.testing.rows import Row
from muntin.testing.scenarios import Action, Scenario, check
from muntin.testing.strategies import scenarios

SUM = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t")
NOON = dt.datetime(2024, 5, 1, 12)

# Given beforehand. -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"t": "int64", "k": "string", "v": "float64"},
        {"t": pa.int64(), "k": pa.dictionary(pa.int32(), pa.string()), "v": pa.float64(), "other": "bool"},
        pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.float64()}),
    ],
    ids=["names", "types", "schema"],
)
def test_with_a_schema_results_have_their_types_before_the_first_tuple(schema: Any) -> None:
    op = SUM.operator(schema=schema)
    before = op.advance(0)
    for each in (op, Operator.restore(op.snapshot())):
        each.process([{"t": 1, "k": "a", "v": 2}])
        after = each.finish()
        assert before.schema == after.schema
        assert after["total"].to_pylist() == [2.0]
        assert after["total"].type == pa.float64()


def test_without_one_they_can_still_be_joined() -> None:
    op = SUM.operator()
    parts = [op.advance(0), op.process([{"t": 1, "k": None, "v": None}]), op.advance(10)]
    op.process([{"t": 11, "k": "a", "v": 2}])
    parts.append(op.finish())
    assert [part.schema.field("total").type for part in parts] == [pa.null()] * 3 + [pa.int64()]
    assert parts[0]["window"].type == parts[0]["window_start"].type == pa.null()
    joined = pa.concat_tables([part.to_arrow() for part in parts], promote_options="default")
    assert joined.schema == parts[-1].schema == mt.Results.concat(parts).schema
    assert joined.select(["k", "total"]).to_pylist() == [{"k": None, "total": None}, {"k": "a", "total": 2}]


def test_a_schema_may_name_some_columns_only() -> None:
    op = SUM.operator(schema={"v": "float64"})
    assert op.advance(0).schema.field("total").type == pa.null()
    for each in (op, Operator.restore(op.snapshot())):
        each.process({"t": [1], "k": ["a"], "v": [2]})
        each.process({"t": [2], "k": ["a"], "v": [0.5]})
        assert each.finish()["total"].to_pylist() == [2.5]
    assert SUM.run([{"t": 1, "k": "a", "v": 2}], schema={"v": "float64"})["total"].type == pa.float64()


def test_a_schema_holds_for_every_container() -> None:
    for v in ([2], pa.array([2], pa.int8()), np.array([2]), pa.array([2.0])):
        table = SUM.run({"t": [1], "k": ["a"], "v": v}, schema={"v": "float64", "k": "large_string"})
        assert (table["total"].type, table["k"].type) == (pa.float64(), pa.large_string())
    with pytest.raises(DataError, match='the column "v" must be of type int64 in every batch: got string'):
        SUM.run({"t": [1], "k": ["a"], "v": pa.array(["2"])}, schema={"v": "int64"})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("float64", 'schema must be a pyarrow schema or a dict like {"v": "float64"}: got \'float64\''),
        ({"v": "flaot64"}, 'the type of "v" must be .*got \'flaot64\'.* Did you mean "float64"'),
        ({"v": float}, "the type of \"v\" must be a pyarrow type or the name of one.*got <class 'float'>"),
        ({1: "int64"}, "names of columns must be texts: got 1"),
        ({"t": "int64", "k": "string", "v": "string"}, "sum needs numbers"),
        ({"t": "float64", "k": "string", "v": "int64"}, "time column must be a timestamp or an integer"),
        ({"t": "timestamp[us]", "k": "string", "v": "int64"}, "lengths must be durations"),
    ],
)
def test_schemas_that_make_no_sense(schema: Any, words: str) -> None:
    with pytest.raises((QueryError, DataError), match=words):
        SUM.operator(schema=schema)


def test_the_lag_is_held_against_the_schema() -> None:
    schema = {"t": "int64", "k": "string", "v": "int64"}
    with pytest.raises(QueryError, match="lengths must be integers"):
        SUM.operator(schema=schema, watermark_lag="5 seconds")


# Later batches. ----------------------------------------------------------------------------------


def test_integers_of_python_are_int64_and_stay_so() -> None:
    op = SUM.operator()
    op.process([{"t": 1, "k": "a", "v": 1}])
    op.process({"t": [2], "k": ["a"], "v": pa.array([2], pa.int8())})
    op.process({"t": [3], "k": pa.array(["a"]).dictionary_encode(), "v": np.array([3.0])})
    for wrong in ([1.5], pa.array([2, 1.5])):
        told = r'"v" must be of type int64.*: got 1.5.*in row (0|1).*pass schema={"v": "float64"}'
        with pytest.raises(DataError, match=told):
            op.process({"t": [4] * len(wrong), "k": ["a"] * len(wrong), "v": wrong})
    with pytest.raises(DataError, match=r'"v" must be of type int64: got 9223372036854775808 in row 0'):
        op.process([{"t": 4, "k": "a", "v": 2**63}])
    table = op.finish()
    assert (table["total"].to_pylist(), table["total"].type) == ([6], pa.int64())


@pytest.mark.parametrize(
    ("first", "later", "cure"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40]), '{"v": "int64"}'),
        (pa.array([1], pa.int32()), [2**40], '{"v": "int64"}'),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), '{"v": "float64"}'),
        (pa.array([0.5]), pa.array([2**53 + 1]), ""),
        ([0.5], [2**53 + 1], ""),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_names_the_type_that_would(first: Any, later: Any, cure: str) -> None:
    op = SUM.operator()
    op.process({"t": [1], "k": ["a"], "v": first})
    with pytest.raises(DataError, match=r'the column "v" must be of type ') as error:
        op.process({"t": [2], "k": ["a"], "v": later})
    assert (f"pass schema={cure}" if cure else "schema=") in str(error.value) or not cure
    if not cure:
        assert "schema=" not in str(error.value)
    value = later[0].as_py() if isinstance(later, pa.Array) else later[0]
    assert f"got {value!r}" in str(error.value)


def test_encoded_columns_may_come_first_or_later() -> None:
    plain, encoded = pa.array(["a", "b"]), pa.array(["a", "b"]).dictionary_encode()
    for columns in ([plain, encoded], [encoded, plain, ["a", "b"]], [encoded, encoded]):
        shape = mt.windows(c=w.count(3)).aggregate(first=a.first("k"), all=a.collect("k")).by("k").on("t")
        op = shape.operator()
        for column in columns:
            op.process({"t": [1, 2], "k": column})
        again = Operator.restore(op.snapshot())
        assert again.finish() == op.finish()
        assert op.stats().tuples == 2 * len(columns)


# Columns without values. -------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [None, 0, 3])
@pytest.mark.parametrize("value", [7, 2.5, "text", True, NOON, dt.date(2024, 5, 1)], ids=str)
def test_the_first_value_of_a_column_may_come_late(lag: int | None, value: Any) -> None:
    shape = mt.windows(x=w.tumbling(10), c=w.count(2)).aggregate(
        n=a.count(), values=a.count("v"), least=a.min("v"), first=a.first("v"), all=a.collect("v")
    )
    shape = shape.by("k").on("t", allowed_lateness=100)
    records = [
        {"t": t, "k": "a" if t > 14 else None, "v": value if t > 17 else None} for t in range(0, 25, 2)
    ]
    records.append({"t": 3, "k": None, "v": value})
    schema = {"t": "int64", "k": "string", "v": pa.array([value]).type}
    learning, told = shape.operator(watermark_lag=lag), shape.operator(watermark_lag=lag, schema=schema)
    for record in records:
        assert learning.process(record).to_pylist() == told.process(record).to_pylist()
    last = learning.finish()
    assert last == told.finish()
    assert last["least"].type == pa.array([value]).type


def test_a_column_that_never_has_a_value() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(
        total=a.sum("v"), n=a.count("v"), top=a.top_k("v", 2), twice=a.max(mt.col("v") * 2)
    )
    for nothing in ([None, None], pa.nulls(2)):
        (row,) = shape.on("t").run({"t": [1, 2], "v": nothing}).to_pylist()
        assert (row["total"], row["n"], row["top"], row["twice"]) == (None, 0, [], None)


def test_a_computed_input_that_changes_its_type() -> None:
    either = pa.compute.coalesce(mt.col("v"), 0)  # no null although v is
    shape = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum(either)).on("t")
    op = shape.operator()
    op.process([{"t": 1, "v": None}])
    op.process([{"t": 2, "v": 3}])
    assert op.finish()["total"].to_pylist() == [3]
    op = shape.operator()
    op.process([{"t": 1, "v": None}])
    before = op.snapshot()
    with pytest.raises(DataError, match=r'was int64 as long as v had no value.*is double now.*schema={"v"'):
        op.process([{"t": 2, "v": 1.5}])
    assert op.snapshot() == before
    op = shape.operator(schema={"v": "float64"})
    op.process([{"t": 1, "v": None}])
    op.process([{"t": 2, "v": 1.5}])
    assert op.finish()["total"].to_pylist() == [1.5]


class PythonValues(EmbeddedEngine):
    """Rows go in as lists of dicts; no column has a type before its first value."""

    def process(self, rows: Sequence[Record]) -> list[Row]:
        return self._rows(self._operator.process([dict(row) for row in rows]))


def blanked(scenario: Scenario, firsts: dict[str, int]) -> Scenario:
    """The scenario with nulls in the first values of some columns; queries only come, under new names."""

    def row(record: Record) -> Record:
        return {n: None if record["id"] < firsts.get(n, 0) else v for n, v in record.items()}

    def changed(number: int, action: Action) -> Action:
        if action.name == "add":
            return replace(action, value=f"new{number}")
        return replace(action, value=list(map(row, action.value))) if action.name == "process" else action

    actions = [changed(*step) for step in enumerate(scenario.actions) if step[1].name != "remove"]
    return replace(scenario, actions=tuple(actions))


@settings(max_examples=settings.default.max_examples // 10)
@given(
    scenarios(live=True, snapshots=True),
    st.fixed_dictionaries({name: st.integers(0, 25) for name in ("k", "j", "i", "f", "s", "b")}),
)
def test_types_that_are_learned_on_the_way_change_no_result(
    scenario: Scenario, firsts: dict[str, int]
) -> None:
    check(blanked(scenario, firsts), PythonValues)
