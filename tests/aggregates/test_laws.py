"""The scalar algebra of every aggregate: a monoid with the traits that it declares."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from muntin import aggregates as a
from muntin.aggregates.base import Aggregate
from muntin.errors import DataError, QueryError
from muntin.testing.rows import same_value

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


@st.composite
def partials(draw: st.DrawFn, aggregate: Aggregate) -> Any:
    """A partial of a few tuples, at places that no two tuples share."""
    p = aggregate.identity()
    for _ in range(draw(st.integers(0, 3))):
        kind = st.text("ab", max_size=2) if aggregate.constructor == "concat" else st.integers(-9, 9)
        values = [draw(st.none() | kind) for _ in aggregate.inputs]
        at = (draw(st.integers(-2, 2)), draw(st.uuids()).int)
        p = aggregate.combine(p, aggregate.lift(*values, at=at))
    return p


def same(aggregate: Aggregate, p: Any, q: Any) -> bool:
    return same_value(aggregate.lower(p), aggregate.lower(q))


@pytest.mark.parametrize("aggregate", ALL, ids=str)
@given(data=st.data())
def test_laws(aggregate: Aggregate, data: st.DataObject) -> None:
    p, q, r = (data.draw(partials(aggregate)) for _ in range(3))
    combine = aggregate.combine
    assert same(aggregate, combine(combine(p, q), r), combine(p, combine(q, r)))
    assert same(aggregate, combine(p, aggregate.identity()), p)
    assert same(aggregate, combine(aggregate.identity(), p), p)
    # All partials carry the order that matters, so all of them commute.
    assert same(aggregate, combine(p, q), combine(q, p))
    if aggregate.invertible:
        assert same(aggregate, combine(r, aggregate.invert(combine(p, q), q)), combine(r, p))


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
