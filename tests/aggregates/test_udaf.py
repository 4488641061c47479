"""User-defined aggregates: what they take, what they refuse, and what their failures say."""

import operator
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates.udaf import UserDefined
from muntin.errors import QueryError, UserCodeError

TABLE = pa.table(
    {"t": [1, 2, 12, 13], "k": ["a", "b", "a", "b"], "v": [3, None, 5, 7], "x": [1.0, 2.0, None, 4.0]}
)


def run(aggregate: UserDefined, table: Any = TABLE, **options: Any) -> list[Any]:
    op = mt.windows(ten=w.tumbling(10)).aggregate(r=aggregate).on("t").operator(**options)
    parts = [op.process(table), op.finish()]
    return mt.Results.concat(parts).column("r").to_pylist()


# --- what they take -------------------------------------------------------------------------------


class Spread(a.UserAggregate):
    """The largest value minus the smallest, in parts of a unit."""

    identity = None

    def __init__(self, unit: float = 1.0) -> None:
        self.unit = unit

    def lift(self, v: float) -> tuple[float, float]:
        return v, v

    def combine(self, p: tuple[float, float], q: tuple[float, float]) -> tuple[float, float]:
        return min(p[0], q[0]), max(p[1], q[1])

    def lower(self, p: tuple[float, float]) -> float:
        return (p[1] - p[0]) / self.unit


class Trail(a.UserAggregate):
    commutative = False

    def lift(self, v: int) -> list[int]:
        return [v]

    def combine(self, p: list[int], q: list[int]) -> list[int]:
        return p + q


class Total(a.UserAggregate):
    def lift(self, v: int) -> int:
        return v

    def combine(self, p: int, q: int) -> int:
        return p + q

    def invert(self, whole: int, part: int) -> int:
        return whole - part


def test_a_class_with_parameters() -> None:
    assert run(Spread().over("v")) == [0.0, 2.0]
    assert run(Spread(0.5).over("v", filter="t < 13")) == [0.0, 0.0]
    assert str(Spread().over("v")) == "aggregate(v, name='Spread')"
    with pytest.raises(QueryError, match="must be an aggregate"):
        mt.windows(ten=w.tumbling(10)).aggregate(r=Spread())  # type: ignore[arg-type]


def test_traits_of_a_class() -> None:
    assert run(Trail().over("v"), {"t": [3, 1, 2], "v": [3, 1, 2]}) == [[1, 2, 3]]
    assert not Trail().over("v").commutative
    total = Total().over("v")
    assert total.invertible
    assert total.bind((pa.int64(),)).invertible
    assert total.invert(total.combine(total.lift(3), total.lift(4)), total.lift(4)) == total.lift(3)
    assert total.invert(total.lift(3), total.lift(3)) is None
    with pytest.raises(TypeError, match="abstract"):
        a.UserAggregate()  # type: ignore[abstract]


def test_the_parameters_of_a_class_are_part_of_the_query() -> None:
    def fingerprint(aggregate: UserDefined) -> str:
        return mt.windows(ten=w.tumbling(10)).aggregate(r=aggregate).on("t").fingerprint()

    assert fingerprint(Spread().over("v")) == fingerprint(Spread().over("v", compile=False))
    assert fingerprint(Spread().over("v")) != fingerprint(Spread(2.0).over("v"))


def test_several_columns_and_none() -> None:
    assert run(a.aggregate("v", "x", lift=lambda v, x: v * x, combine=operator.add)) == [3.0, 28.0]
    assert run(a.aggregate(lift=lambda: 1, combine=operator.add)) == [2, 2]
    assert run(a.aggregate(mt.col("v") + mt.col("t"), lift=lambda v: v, combine=max)) == [4, 20]


def test_nulls_are_skipped_unless_they_are_asked_for() -> None:
    nulls = a.aggregate("v", "x", lift=lambda v, x: (v is None) + (x is None), combine=operator.add)
    assert run(nulls) == [0, 0]
    asked = a.aggregate(
        "v", "x", lift=lambda v, x: (v is None) + (x is None), combine=operator.add, ignore_nulls=False
    )
    assert run(asked) == [1, 1]
    ordered = a.aggregate(
        "v", lift=lambda v: [v], combine=operator.add, ignore_nulls=False, commutative=False
    )
    assert run(ordered) == [[3, None], [5, 7]]
    compiled = a.aggregate(
        "x", lift=lambda v: 0.0 if v is None else v, combine=operator.add, ignore_nulls=False, compile=False
    )
    assert run(compiled) == [3.0, 4.0]


def test_tuples_with_nulls_are_for_the_interpreter() -> None:
    def lift(v: float | None) -> float:
        return -1.0 if v == None else v * 2  # noqa: E711  which Numba could compile only without nulls

    def either(v: Any) -> Any:
        return v * 2

    doubled = a.aggregate("v", lift=either, combine=operator.add, ignore_nulls=False, compile=True)
    op = mt.windows(ten=w.tumbling(100)).aggregate(r=doubled).on("t").operator()
    op.process(TABLE.filter(pa.array([True, False, True, True])))
    assert op.stats().aggregates == {"r": "compiled"}
    with pytest.raises(UserCodeError, match=r"lift\(None\) failed: TypeError.*\(at t=2\)"):
        op.process(TABLE)
    asked = a.aggregate("x", lift=lift, combine=operator.add, ignore_nulls=False)
    assert run(asked) == [6.0, 7.0]


def test_in_order_nothing_but_folds_is_kept() -> None:
    trail = a.aggregate("v", lift=lambda v: v, combine=lambda p, q: (p * 31 + q) % 1009, commutative=False)
    # (Not associative, but in order and in one slice that does not matter.)
    table = pa.table({"t": np.arange(1000), "v": np.arange(1000)})
    query = mt.windows(all=w.tumbling(1000)).aggregate(r=trail).on("t")
    sizes, found = [], []
    for in_order in (True, False):
        op = query.operator(in_order=in_order)
        op.process(table)
        sizes.append(op.stats().state_bytes)
        found.append(op.finish().column("r").to_pylist())
    assert found[0] == found[1]
    assert sizes[0] * 50 < sizes[1]


# --- what they refuse -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lift": 3}, "lift must be a function: got 3"),
        ({"combine": None}, "combine must be a function: got None"),
        ({"invert": operator.sub, "commutative": False}, "invert needs a combine that commutes"),
        ({"compile": "yes"}, "compile must be True, False or None: got 'yes'"),
    ],
)
def test_mistakes_when_it_is_written(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        a.aggregate("v", **({"lift": abs, "combine": max} | arguments))


def test_the_type_of_results_that_nobody_knows() -> None:
    broken = a.aggregate("v", lift=lambda v: v["x"], combine=max, name="broken")
    with pytest.raises(
        QueryError,
        match=r'results of "broken" is not known: for sample values, .*lift\(1\) failed: TypeError',
    ) as caught:
        run(broken)
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(QueryError, match="it gives no result for sample values; give it"):
        run(a.aggregate("v", lift=lambda v: v, combine=max, lower=lambda p: None))
    with pytest.raises(QueryError, match="its results are of several types"):
        run(a.aggregate("v", lift=lambda v: v, combine=operator.add, lower=lambda p: p if p == 1 else str(p)))


def test_types_that_only_show_with_several_tuples() -> None:
    def type_of(**functions: Any) -> pa.DataType:
        return a.aggregate("v", **functions).bind((pa.int64(),)).type

    assert type_of(lift=lambda v: v > 1, combine=operator.add) == pa.int64()
    assert type_of(lift=lambda v: (1, v), combine=lambda p, q: (p[0] + q[0], p[1] + q[1]),
                   lower=lambda p: None if p[0] < 2 else p[1] / 2) == pa.float64()  # fmt: skip
    assert type_of(lift=lambda v: v, combine=lambda p, q: (p + q) / 2) == pa.float64()
    assert type_of(lift=lambda v: (v > 3, v), combine=lambda p, q: (p[0] or q[0], p[1]),
                   lower=lambda p: 1 / p[0]) == pa.float64()  # fmt: skip
    assert run(a.aggregate("v", lift=lambda v: v > 1, combine=operator.add)) == [1, 2]


def test_results_of_another_type() -> None:
    half = a.aggregate(
        "v", lift=lambda v: v, combine=operator.add, lower=lambda p: p / 2, type=pa.int64(), name="half"
    )
    with pytest.raises(
        UserCodeError, match=r'"half": a result is no int64: 1\.5 .*say what it is with type='
    ):
        run(half)


# --- what their failures say ------------------------------------------------------------------------


def failing(step: str) -> UserDefined:
    functions: dict[str, Any] = {"lift": lambda v: v, "combine": operator.add, "lower": lambda p: p}
    functions[step] = {
        "lift": lambda v: 1 // (v - 5),
        "combine": lambda p, q: 1 // (p + q - 12),
        "lower": lambda p: 1 // (p - 3),
    }[step]
    return a.aggregate("v", name="mine", type=pa.int64(), **functions)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("lift", r'"mine": lift\(5\) failed: ZeroDivisionError: .* \(at t=12, k=.a.\)'),
        ("combine", r'"mine": combine\(5, 7\) failed: ZeroDivisionError: .* \(at t=13, k=.a.\)'),
        ("lower", r'"mine": lower\(3\) failed: ZeroDivisionError: .* \(at k=.a., ten \[0, 10\)\)'),
    ],
)
def test_failures_name_the_tuple_or_the_window_and_the_key(step: str, message: str) -> None:
    table = TABLE.set_column(1, "k", pa.array(["a", "b", "a", "a"]))
    query = mt.windows(ten=w.tumbling(10)).aggregate(r=failing(step)).by("k").on("t")
    with pytest.raises(UserCodeError, match=message) as caught:
        query.run(table)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_failures_between_slices_name_the_key_and_the_window() -> None:
    query = mt.windows(slide=w.sliding(20, every=10)).aggregate(r=failing("combine")).by("k").on("t")
    with pytest.raises(UserCodeError, match=r"combine\(5, 7\) failed: .* \(at k=.a., slide \[0, 20\)\)"):
        query.run({"t": [2, 12, 3], "v": [5, 7, 1], "k": ["a", "a", "b"]})


def test_times_are_told_as_they_are_written() -> None:
    table = pa.table({"t": pa.array([1_000_000], pa.timestamp("us", "UTC")), "v": [5]})
    query = mt.windows(ten=w.tumbling("10 s")).aggregate(r=failing("lift")).on("t")
    with pytest.raises(UserCodeError, match=r"\(at t=1970-01-01T00:00:01\+00:00\)"):
        query.run(table)


def test_partials_of_different_keys_are_never_blamed() -> None:
    def of_one_key(p: tuple[str, int], q: tuple[str, int]) -> tuple[str, int]:
        if p[0] != q[0]:
            raise ValueError("different keys")
        return p[0], p[1] + q[1]

    total = a.aggregate("k", "v", lift=lambda k, v: (k, v), combine=of_one_key, lower=lambda p: p[1])
    query = mt.windows(slide=w.sliding(100, every=1)).aggregate(r=total).by("k").on("t")
    n = 70
    table = {"t": list(range(n)) * 2, "k": ["a"] * n + ["b"] * n, "v": [1] * (2 * n)}
    op = query.operator(store="flatfat")
    op.process(table)
    found = op.advance(n).to_pylist()
    assert [row["r"] for row in found if row["k"] == "b"] == list(range(1, n + 1))


# --- functions that change what they are given ------------------------------------------------------


@dataclass
class Pair:
    n: int
    total: int


def extended(p: list[int], q: list[int]) -> list[int]:
    p.extend(q)
    return p


def emptied(p: list[int], q: list[int]) -> list[int]:
    found = p + q
    q.clear()
    return found


def added(p: Pair, q: Pair) -> Pair:
    p.n += q.n
    return p


def plus(p: Any, q: Any) -> Any:
    p += q
    return p


@pytest.mark.parametrize("commutative", [True, False])
@pytest.mark.parametrize(
    ("functions", "call"),
    [
        ({"lift": lambda v: [v], "combine": extended}, r"combine\(\[1\], \[2\]\)"),
        ({"lift": lambda v: [v], "combine": emptied}, r"combine\(\[1\], \[2\]\)"),
        ({"lift": lambda v: {v}, "combine": lambda p, q: p.update(q) or p}, r"combine\(\{1\}, \{2\}\)"),
        ({"lift": lambda v: Counter([v]), "combine": plus}, "combine"),
        ({"lift": lambda v: np.array([v]), "combine": plus}, "combine"),
        ({"lift": lambda v: Pair(1, v), "combine": added}, r"combine\(Pair\(n=1, total=1\)"),
        ({"lift": lambda v: ([v], 1), "combine": lambda p, q: (extended(p[0], q[0]), 2)}, "combine"),
        ({"lift": lambda v: [v], "combine": operator.add, "lower": lambda p: p.pop()}, r"lower\(\[1, 2\]\)"),
    ],
)
def test_a_change_in_place_is_an_error(functions: Any, call: str, commutative: bool) -> None:
    aggregate = a.aggregate("v", **functions, type=pa.int64(), commutative=commutative, name="mine")
    with pytest.raises(UserCodeError, match=rf'"mine": {call}.* changed its argument.*return a new value'):
        run(aggregate, {"t": [1, 2], "v": [1, 2]})


def test_a_change_in_place_that_comes_late_is_noticed() -> None:
    def sometimes(p: list[int], q: list[int]) -> list[int]:
        return extended(p, q) if q[0] >= 5000 else p + q

    aggregate = a.aggregate("v", lift=lambda v: [v], combine=sometimes, lower=len)
    op = mt.windows(two=w.tumbling(2)).aggregate(r=aggregate).on("t").operator()
    op.process({"t": list(range(5000)), "v": list(range(5000))})
    with pytest.raises(UserCodeError, match="changed its argument"):
        op.process({"t": list(range(5000, 6000)), "v": list(range(5000, 6000))})


def test_objects_that_cannot_be_compared_are_left_alone() -> None:
    class Opaque:
        def __init__(self, n: int) -> None:
            self.n = n

    counted = a.aggregate(
        "v", lift=lambda v: Opaque(1), combine=lambda p, q: Opaque(p.n + q.n), lower=lambda p: p.n
    )
    assert run(counted) == [1, 2]
