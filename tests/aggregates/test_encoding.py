"""States of user-defined aggregates survive as JSON text."""

import datetime as dt
import math
from collections import Counter, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from muntin.encoding import decode, encode

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    st.decimals(allow_nan=False), st.datetimes(timezones=st.none() | st.just(dt.UTC)), st.dates(),
    st.times(), st.timedeltas(), st.fractions(), st.complex_numbers(allow_nan=False),
)  # fmt: skip
hashable = st.recursive(
    leaves, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4
)
values = st.recursive(
    hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(hashable, inner, max_size=3),
        st.sets(hashable, max_size=3),
        st.lists(inner, max_size=3).map(deque),
        st.lists(hashable, max_size=3).map(Counter),
    ),
    max_leaves=6,
)


def typed(value: Any) -> Any:
    """The value with the types of all that is in it, which `==` does not compare."""
    if isinstance(value, dict):
        return type(value), [(typed(k), typed(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return type(value), [typed(item) for item in value]
    return type(value), value


@given(values)
def test_round_trip(value: Any) -> None:
    assert typed(decode(encode(value))) == typed(value)


def test_numbers_of_numpy_and_those_that_differ_from_themselves() -> None:
    assert typed(decode(encode((np.int64(3), np.float32(0.5))))) == typed((3, 0.5))
    assert math.isnan(decode(encode(math.nan)))
    assert decode(encode(Fraction(1, 3))) == Fraction(1, 3)
    assert decode(encode(Decimal("1.10"))).as_tuple() == Decimal("1.10").as_tuple()


def test_equal_sets_are_written_equally() -> None:
    assert encode({"a", "b", "c"}) == encode({"c", "b", "a"})
