"""The oracle's aggregates and expressions, against expectations written down by hand."""

from __future__ import annotations

import math
import statistics
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import aggregates as a
from muntin.errors import DataError
from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.expressions import evaluate
from muntin.testing.oracle.tuples import Arrival
from muntin.testing.rows import same_value

NAN = math.nan


def over(aggregate: Any, values: list[Any], **more: list[Any]) -> Any:
    rows = [
        {"v": value, **{name: column[i] for name, column in more.items()}} for i, value in enumerate(values)
    ]
    return aggregate_value(aggregate, [Arrival(i, i, row) for i, row in enumerate(rows)])


@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [
        (a.count(), [None, 1], 2),
        (a.count("v"), [None, 1], 1),
        (a.count("v"), [], 0),
        (a.sum("v"), [None, 3, -1], 2),
        (a.sum("v"), [None], None),
        (a.sum("v"), [Decimal("0.1"), Decimal("0.2")], Decimal("0.3")),
        (a.sum("v"), [0.1] * 10, 1.0),
        (a.sum("v"), [math.inf, -math.inf], NAN),
        (a.min("v"), [NAN, 2.0], 2.0),
        (a.min("v"), [NAN, NAN], NAN),
        (a.max("v"), [NAN, math.inf], NAN),
        (a.max("v"), ["a", None, "b"], "b"),
        (a.mean("v"), [1, None, 2], 1.5),
        (a.mean("v"), [], None),
        (a.variance("v"), [5], None),
        (a.variance("v", population=True), [5], 0.0),
        (a.variance("v"), [1e9, 1e9 + 1, 1e9 + 2], 1.0),
        (a.stddev("v"), [1, 3], math.sqrt(2)),
        (a.first("v", ignore_nulls=True), [None, 2, 3], 2),
        (a.last("v", ignore_nulls=True), [2, 3, None], 3),
        (a.collect("v"), [2, None, 1], [2, 1]),
        (a.collect("v"), [None], []),
        (a.median("v"), [3, 1, 2, 10], 2.5),
        (a.median("v"), [None], None),
        (a.quantile("v", 0.9), [0, 10], 9.0),
        (a.aggregate("v", lift=str, combine=lambda p, q: p + q, commutative=False), ["b", None, "a"], "ba"),
        (a.aggregate("v", lift=int, combine=max, lower=float), [1, 7], 7.0),
        (a.aggregate("v", lift=int, combine=max), [None], None),
    ],
    ids=str,
)
def test_aggregate(aggregate: Any, values: list[Any], expected: Any) -> None:
    assert same_value(over(aggregate, values), expected, tolerance=1e-15)


def test_extremes_of_another_column() -> None:
    by = [1, None, 9, 9, 1]
    assert over(a.arg_max("v", by="w"), list("abcde"), w=by) == "c"
    assert over(a.arg_min("v", by="w"), list("abcde"), w=by) == "a"
    assert over(a.arg_max("v", by="w"), [1, 2], w=[5.0, NAN]) == 2
    assert over(a.arg_min("v", by="w"), [None, 2], w=[0, 1]) is None
    assert over(a.arg_min("v", by="w"), [1], w=[None]) is None


def test_sums_overflow() -> None:
    with pytest.raises(DataError, match="overflow"):
        over(a.sum("v"), [2**63 - 1, 1])
    assert over(a.sum("v"), [2**63 - 1, 1, -1]) == 2**63 - 1


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20))
def test_spread_as_the_standard_library_has_it(values: list[int]) -> None:
    assert same_value(over(a.variance("v"), values), statistics.variance(values), 1e-12)
    assert same_value(over(a.stddev("v", population=True), values), statistics.pstdev(values), 1e-12)
    assert same_value(over(a.median("v"), values), float(statistics.median(values)), 1e-12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 1", 4),
        ("x + n", None),
        ("x / 2", 1.5),
        ("x // 2", 1),
        ("-x % 2", 1),
        ("-x", -3),
        ("1 < x <= 3", True),
        ("x > n", None),
        ("x > 9 and n > 1", False),
        ("x > 1 and n > 1", None),
        ("x > 1 or n > 1", True),
        ("not n", None),
        ("n is None", True),
        ("x is not None", True),
        ("x in [1, 3]", True),
        ("s not in ['Ab']", False),
        ("lower(s) == 'ab'", True),
        ("length(s)", 2),
        ("abs(-x)", 3),
        ("floor(f)", 2.0),
        ("ceil(f)", 3.0),
        ("round(f)", 2.0),
        ("col('odd name') * 2", 14),
    ],
)
def test_expression(text: str, expected: Any) -> None:
    row = {"x": 3, "n": None, "s": "Ab", "f": 2.5, "odd name": 7}
    assert same_value(evaluate(text, row), expected)


def test_unknown_column() -> None:
    with pytest.raises(DataError, match='Did you mean "price"'):
        evaluate("pric > 1", {"price": 1})
