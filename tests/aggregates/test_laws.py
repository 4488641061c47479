"""The laws hold for every aggregate of the catalogue, and the check of the laws finds who breaks them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest

from muntin import aggregates as a
from muntin.aggregates.base import Aggregate, Bound, Groups, State
from muntin.aggregates.partials.counts import Values
from muntin.errors import DataError, QueryError
from muntin.testing import laws

REQUIRED: dict[str, dict[str, Any]] = {
    "aggregate": {"lift": lambda v: Counter([v]), "combine": lambda p, q: p + q, "identity": Counter(),
                  "invert": lambda p, q: p - q, "lower": lambda p: sorted(p.elements())},
    "approx_quantile": {"q": 0.5},
    "bloom": {"size": 20, "error": 0.1},
    "count_min": {"items": [1, 2]},
    "histogram": {"edges": [0, 1, 5]},
    "naive_bayes": {"columns": ["x", "y"]},
    "nth": {"n": 2},
    "percentiles": {"q": [0.3, 0.9]},
    "quantile": {"q": 0.3},
    "top_k": {"k": 2},
}  # fmt: skip


def instance(name: str) -> Aggregate:
    constructor = getattr(a, name)
    columns = getattr(constructor, "column_fields", ("column",))
    found: Aggregate = constructor(columns[0], **{n: n for n in columns[1:]}, **REQUIRED.get(name, {}))
    return found


ALL = [instance(name) for name in a.__all__ if name.islower() and name != "col"]
ALL.append(a.aggregate("x", lift=str, combine=lambda p, q: p + q, commutative=False))


@pytest.mark.parametrize("aggregate", ALL, ids=str)
def test_laws(aggregate: Aggregate) -> None:
    report = laws.check(aggregate, examples=40)
    assert report.laws["associativity"] >= 20 * len(report.types)


FLOATS = [0.0, 1.0, float("nan"), float("inf"), float("-inf"), -0.0, 1e16, -1e16, 0.1]


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "first", "collect_set", "median", "arg_max"])
def test_laws_over_unusual_floats(name: str) -> None:
    aggregate = instance(name)
    values = FLOATS if len(aggregate.inputs) == 1 else [(x, y) for x in FLOATS for y in FLOATS[:4]]
    laws.check(aggregate, values, examples=100)


# --- aggregates that are wrong -----------------------------------------------------------------------


def broken(law: str, aggregate: Aggregate, *lines: str, **arguments: Any) -> None:
    with pytest.raises(laws.LawError) as caught:
        laws.check(aggregate, **arguments)
    assert caught.value.law == law
    message = str(caught.value).splitlines()
    assert message[0] == f"{law} does not hold for {aggregate}"
    assert [line.strip() for line in message[1:]] == list(lines)


def number(**functions: Any) -> Aggregate:
    return a.aggregate("x", **({"lift": lambda v: v} | functions))


def test_a_mean_of_means_is_not_associative() -> None:
    broken(
        "associativity",
        number(combine=lambda p, q: (p + q) / 2, name="mean"),
        "combine(combine(p, q), r)  gives 0.5",
        "combine(p, combine(q, r))  gives 0.25",
        "where",
        "p = lift(0)",
        "q = lift(0)",
        "r = lift(1)",
    )


def test_zero_is_not_the_identity_of_max() -> None:
    broken(
        "identity",
        number(combine=max, identity=0),
        "combine(identity, p)  gives 0",
        "p                     gives -1",
        "where",
        "p = lift(-1)",
    )


def test_what_claims_to_commute_and_does_not() -> None:
    joined = number(lift=str, combine=lambda p, q: p + q, name="joined")
    broken(
        "commutativity",
        joined,
        "combine(p, q)  gives '10'",
        "combine(q, p)  gives '01'",
        "where",
        "p = lift(1)",
        "q = lift(0)",
    )
    first = a.aggregate("x", lift=lambda v: v, combine=lambda p, q: p, name="first")
    with pytest.raises(laws.LawError, match="commutativity"):
        laws.check(first)
    laws.check(a.aggregate("x", lift=lambda v: v, combine=lambda p, q: p, commutative=False))


def test_an_invert_that_is_none() -> None:
    broken(
        "invertibility",
        number(combine=max, invert=lambda whole, part: whole, name="max"),
        "invert(combine(p, q), q)  gives 1",
        "p                         gives 0",
        "where",
        "p = lift(0)",
        "q = lift(1)",
    )


def test_functions_that_change_their_arguments() -> None:
    def extend(p: list[int], q: list[int]) -> list[int]:
        p.extend(q)
        return p

    broken(
        "combine changes nothing",
        number(lift=lambda v: [v], combine=extend, lower=sum),
        "before: combine([0], [0])",
        "after:  combine([0, 0], [0])",
        "where",
        "p = lift(0)",
        "q = lift(0)",
    )
    with pytest.raises(laws.LawError, match="lower changes nothing"):
        laws.check(number(lift=lambda v: [v], combine=lambda p, q: p + q, lower=lambda p: p.pop()))


class Pair:
    def __init__(self, n: int) -> None:
        self.n = n


def test_partials_that_no_snapshot_can_hold() -> None:
    aggregate = number(lift=Pair, combine=lambda p, q: Pair(p.n + q.n), lower=lambda p: p.n, name="pairs")
    with pytest.raises(laws.LawError, match="serialisation") as caught:
        laws.check(aggregate, values=[1, 2])
    assert "columns give   SnapshotError: the state of user code cannot be written" in str(caught.value)


def test_functions_that_fail() -> None:
    def equal(p: int, q: int) -> int:
        if p != q:
            raise ValueError("different")
        return p

    broken(
        "associativity",
        number(combine=equal, name="equal"),
        "combine(combine(p, q), r) fails: ValueError: different",
        "where",
        "p = lift(0)",
        "q = lift(0)",
        "r = lift(1)",
    )


@dataclass(frozen=True, slots=True)
class Forgets(Values):
    def from_arrow(self, columns: dict[str, pa.Array]) -> Any:
        return np.zeros(len(columns["0"]), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Skips(Values):
    def lift(self, g: Groups, needs: tuple[State, ...]) -> Any:
        return np.minimum(Values.lift(self, g, needs), 1)


@dataclass(frozen=True, slots=True)
class Wrong(a.count):
    partial: Any = None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        return Bound(pa.int64(), (self.partial(self.inputs[0]),), lambda states: pa.array(states[0]))


@pytest.mark.parametrize(
    ("partial", "law", "tuples"),
    [
        (Forgets, "serialisation", 1),
        (Skips, "columns compute what the functions say", 2),
    ],
)
def test_columns_that_differ_from_the_definition(partial: Any, law: str, tuples: int) -> None:
    with pytest.raises(laws.LawError, match=law) as caught:
        laws.check(Wrong("x", partial=partial), values=[5, 7])
    assert str(caught.value).count("lift(5)") == tuples
    assert "lift(7)" not in str(caught.value)


# --- what is checked ---------------------------------------------------------------------------------


def test_values_may_be_rows_or_a_strategy() -> None:
    ratio = a.aggregate(
        "x", "y", lift=lambda x, y: (x, y), combine=lambda p, q: (p[0] + q[0], p[1] + q[1]),
        lower=lambda p: p[0] / p[1],
    )  # fmt: skip
    report = laws.check(ratio, values=[(1, 2), (3, 5)])
    assert report.types == ((pa.int64(), pa.int64()),)
    report = laws.check(a.max("x"), values=st.floats(-5, 5))
    assert report.types == ((pa.float64(),),)
    with pytest.raises(QueryError, match="rows of 2"):
        laws.check(ratio, values=[(1,)])
    with pytest.raises(QueryError, match="must not be empty"):
        laws.check(ratio, values=[])


def test_a_strategy_finds_what_examples_do_not() -> None:
    wrong = number(combine=lambda p, q: p + q if p + q < 1000 else p)
    laws.check(wrong)
    with pytest.raises(laws.LawError):
        laws.check(wrong, values=st.integers(0, 2000))


def test_values_that_lift_refuses_are_noted() -> None:
    inverse = number(lift=lambda v: 1 / v, combine=lambda p, q: p + q)
    report = laws.check(inverse)
    assert "lift(0) fails and is left out: ZeroDivisionError: division by zero" in report.notes
    with pytest.raises(QueryError, match="lift fails for every value"):
        laws.check(inverse, values=[0])


def test_the_report() -> None:
    commutes = number(combine=max, commutative=False, name="largest")
    report = laws.check(commutes, values=[1, 2], examples=20)
    text = str(report)
    assert text.startswith("aggregate(x, name='largest') obeys its laws, over int64\n  associativity: ")
    assert "commutativity" not in report.laws
    assert text.endswith(
        "note: combine commuted in every example; if it always does, leave out commutative=False"
    )


def test_compiled_functions_are_checked_as_they_run() -> None:
    squares = number(lift=lambda v: v * v, combine=lambda p, q: p + q, invert=lambda p, q: p - q, identity=0,
                     lower=lambda p: p / 2, compile=True)  # fmt: skip
    report = laws.check(squares, values=[1, 2, 2**40, -3])
    assert {"associativity", "identity", "commutativity", "invertibility", "serialisation"} <= set(
        report.laws
    )


def test_a_class_needs_columns() -> None:
    with pytest.raises(QueryError, match=r"laws are of aggregates: got .*; write .over"):
        laws.check(a.UserAggregate)  # type: ignore[arg-type]


# --- the scalar algebra of the catalogue ---------------------------------------------------------------


EMPTY = ("collect", "collect_set", "frequent_items", "naive_bayes", "top_k")


def test_nothing_has_no_value() -> None:
    nothing = {aggregate.constructor: aggregate.lower(aggregate.identity()) for aggregate in ALL[1:-1]}
    counts = ("count", "count_distinct", "count_if", "max_count", "min_count")
    counts += ("approx_count_distinct", "theta")
    assert [nothing.pop(name) for name in counts] == [0] * len(counts)
    assert [nothing.pop(name) for name in EMPTY] == [[]] * len(EMPTY)
    assert [one["count"] for one in nothing.pop("histogram") + nothing.pop("count_min")] == [0] * 4
    assert not a.sketches.might_contain(nothing.pop("bloom"), 1)
    assert set(nothing.values()) == {None}


@pytest.mark.parametrize("aggregate", ALL, ids=str)
def test_what_is_not_invertible_says_so(aggregate: Aggregate) -> None:
    if not aggregate.invertible:
        with pytest.raises(QueryError, match="not invertible"):
            aggregate.invert(aggregate.identity(), aggregate.identity())


def test_scalar_sums_do_not_wrap() -> None:
    total = a.sum("x")
    with pytest.raises(DataError, match="overflows"):
        total.lower(total.combine(total.lift(2**63 - 1), total.lift(1)))


def test_kinds() -> None:
    kinds = {aggregate.constructor: aggregate.kind for aggregate in ALL}
    assert {name for name, kind in kinds.items() if kind == "holistic"} == {
        "collect", "collect_set", "concat", "count_distinct", "median", "mode", "percentiles", "quantile",
    }  # fmt: skip
    assert {name for name, kind in kinds.items() if kind == "distributive"} == {
        "bit_and", "bit_or", "bit_xor", "count", "count_if", "histogram", "max", "min", "sum",
    }  # fmt: skip
    assert a.histogram("x", bins=3).kind == "holistic"
