"""Schemas that change from batch to batch, and names that are wrong."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError


def test_values_may_be_narrower_than_in_the_first_batch_but_not_of_another_kind() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t").operator()
    op.process({"t": [1], "v": [1.5], "k": ["a"]})
    op.process({"t": [2], "v": [2], "k": pa.array(["a"], pa.large_string())})
    op.process({"t": [3], "v": pa.array([None], pa.int8()), "k": pa.array(["a"]).dictionary_encode()})
    op.process({"t": [4], "v": pa.nulls(1), "k": ["a"]})
    moment = [dt.datetime(2024, 5, 1)]
    for name, wrong in (("v", ["text"]), ("v", pa.array(["3.5"])), ("k", pa.array([7])), ("v", moment)):
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
    op = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()
    with pytest.raises(DataError):
        op.process(data)
    assert op.stats().tuples == 0


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.table([pa.array([1]), pa.array([2])], names=["t", "t"])
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t")
    for data in (twice, twice.to_batches()[0], pd.DataFrame([[1, 2]], columns=["t", "t"])):
        with pytest.raises(DataError, match="names of columns must be unique: got t, t; rename"):
            shape.run(data)


def test_a_list_of_records_without_any_field_is_an_error() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t")
    with pytest.raises(DataError, match=r'there is no column "t" in the input \(no columns\)'):
        shape.run([{}])
    assert shape.run([]).num_rows == shape.run({}).num_rows == 0
