"""Single cases of tuple-driven windows: types of columns, user code that fails, many keys."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, UserCodeError
from muntin.expressions import as_expr
from muntin.timeline import INF
from muntin.windows.tuple_driven import Cuts, Tuples


def cut(window: Any, tuples: Tuples, upto: int = INF, **options: Any) -> Cuts:
    found: Cuts = window.cut(window.initial(len(tuples.offsets) - 1), tuples, upto, **options)
    return found


# ---- measures --------------------------------------------------------------------------------


def test_edges_on_a_measure_are_the_decimal_numbers_that_were_written() -> None:
    km = [0.1, 0.2, 0.3, 0.7, 0.8]  # 3 * 0.1 rounds to above 0.3
    cuts = cut(w.tumbling(0.1, measure="km"), Tuples.of([1, 2, 3, 4, 5], km=km), closing=True)
    assert cuts.low is not None
    assert cuts.high is not None
    assert cuts.low.tolist() == km
    assert cuts.high.tolist() == [0.2, 0.3, 0.4, 0.8, 0.9]


def test_steps_on_a_measure_are_the_decimal_numbers_that_were_written() -> None:
    km = [0.1, 0.2, 0.3, 0.7]  # 0.3 begins the second period, 0.7 stands in the second step of the third
    cuts = cut(w.cumulate(0.3, 0.1, measure="km"), Tuples.of([1, 2, 3, 4], km=km), closing=True)
    assert cuts.low is not None
    assert cuts.high is not None
    edges = list(zip(cuts.low.tolist(), cuts.high.tolist(), strict=True))
    assert edges == [(0, 0.2), (0, 0.3), (0.3, 0.4), (0.3, 0.5), (0.3, 0.6), (0.6, 0.8), (0.6, 0.9)]
    assert cuts.end.tolist() == [1, 2, 3, 3, 3, 4, 4]


def test_a_measure_that_lags_counts_where_the_stream_stands() -> None:
    cuts = cut(w.tumbling(10, measure="km"), Tuples.of([1, 2, 3], km=[12, 5, 20]))
    assert (cuts.begin.tolist(), cuts.end.tolist()) == ([0], [2])


@pytest.mark.parametrize("value", [None, float("nan"), 2.0**62])
def test_a_measure_must_be_a_number_in_every_tuple(value: float | None) -> None:
    for window in (w.tumbling(5, measure="km"), w.session(5, measure="km"), w.delta("km", 5, measure="km")):
        with pytest.raises(DataError, match=r'on km needs a number below 2\*\*62 in every tuple: "km" has'):
            cut(window, Tuples.of([1, 2], km=[1.0, value]))


def test_an_integer_measure_needs_whole_lengths() -> None:
    with pytest.raises(DataError, match="needs whole numbers: km is an integer column"):
        cut(w.tumbling(0.5, measure="km"), Tuples.of([1], km=[1]))
    for window in (
        w.session(0.5, measure="km"),
        w.session(1, max_length=1.5, measure="km"),
        w.cumulate(1, 0.5, measure="km"),
    ):
        with pytest.raises(DataError, match="needs whole numbers: km is an integer column"):
            cut(window, Tuples.of([1], km=[1]))
    assert len(cut(w.tumbling(5.0, measure="km"), Tuples.of([1, 2], km=[1, 7]))) == 1


def test_decimal_lengths_need_a_measure_that_floats_can_hold() -> None:
    with pytest.raises(DataError, match=r"needs a measure below 2\*\*53 / 10: got 1000000000000000.0; write"):
        cut(w.tumbling(0.5, measure="km"), Tuples.of([1], km=[1e15]))
    assert len(cut(w.tumbling(5, measure="km"), Tuples.of([1], km=[1e15]), closing=True)) == 1


# ---- columns of other types --------------------------------------------------------------------


def test_decimals_are_compared_exactly() -> None:
    prices = [Decimal("0.10"), Decimal("0.20"), Decimal("0.30"), Decimal("0.41")]
    cuts = cut(w.delta("price", by=0.1), Tuples.of([1, 2, 3, 4], price=prices), closing=True)
    assert cuts.begin.tolist() == [0, 2, 3]  # 0.3 - 0.2 is below 0.1 in floats, 0.4 - 0.3 above
    cuts = cut(w.boundary("price", step=Decimal("0.1")), Tuples.of([1, 2, 3, 4], price=prices), closing=True)
    assert cuts.begin.tolist() == [0, 1, 2, 3]
    cuts = cut(w.until(a.sum("price"), 0.3), Tuples.of([1, 2, 3, 4], price=prices), closing=True)
    assert cuts.end.tolist() == [2, 3, 4]


def test_floats_reach_a_limit_as_the_sum_itself_does() -> None:
    litres = [0.1] * 10  # added up one by one they give 0.9999999999999999
    assert cut(w.until(a.sum("litres"), 1.0), Tuples.of(range(10), litres=litres)).end.tolist() == [10]


def test_the_largest_of_texts_or_dates_reaches_a_limit() -> None:
    tuples = Tuples.of([1, 2, 3, 4], name=["b", "a", "k", "c"])
    assert cut(w.until(a.max("name"), "c"), tuples).end.tolist() == [3, 4]
    days = [dt.date(2024, 1, day) for day in (3, 1, 9)]
    assert cut(w.until(a.max("day"), dt.date(2024, 1, 5)), Tuples.of([1, 2, 3], day=days)).end.tolist() == [3]


def test_multiples_of_a_decimal_step_are_where_they_were_written() -> None:
    x = [0.1, 0.2, 0.3, 0.35, 0.7, -0.1, math.inf, 1e300]  # 0.3 / 0.1 and 0.7 / 0.1 round to below 3 and 7
    cuts = cut(w.boundary("x", step=0.1), Tuples.of(range(8), x=x), closing=True)
    assert cuts.begin.tolist() == [0, 1, 2, 4, 5, 6, 7]
    cuts = cut(w.boundary("x", step=0.5), Tuples.of(range(3), x=[1, 1, 2]), closing=True)
    assert cuts.begin.tolist() == [0, 2]


def test_nan_is_above_every_limit() -> None:
    for aggregate in (a.sum("x"), a.max("x"), a.min("x"), a.mean("x")):
        cuts = cut(w.until(aggregate, 100), Tuples.of([1, 2], x=[float("nan"), 1.0]))
        assert cuts.end.tolist() == [1], aggregate


def test_sums_beyond_64_bits() -> None:
    big = 2**61
    above = Tuples.of(range(5), x=[big] * 5)
    assert cut(w.until(a.sum("x"), 2**63 - 1), above).end.tolist() == [4]
    with pytest.raises(DataError, match="the sum overflows 64 bits at time 4"):
        cut(w.until(a.sum("x"), 5), Tuples.of(range(6), x=[-big] * 6))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.uint64(), pa.float16(), pa.float32()])
def test_numbers_of_any_width(kind: pa.DataType) -> None:
    values = np.array([1, 2, 9, 10], np.float16).astype(kind.to_pandas_dtype())
    tuples = Tuples.of([1, 2, 3, 4])
    tuples.columns[as_expr("x")] = pa.array(values, kind)
    assert cut(w.delta("x", 5), tuples).end.tolist() == [2]
    tuples.columns[as_expr("x")] = values  # NumPy arrays do as well
    assert cut(w.boundary("x", 5), tuples, closing=True).end.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array(["a"]), "needs a column of numbers"),
        (pa.array([True]), "needs a column of numbers"),
        (pa.array([2**63], pa.uint64()), r"needs values below 2\*\*62"),
        (pa.array([-(2**62)]), r"needs values below 2\*\*62"),
        (pa.array([Decimal(10) ** 30]), r"needs values below 2\*\*62"),
    ],
)
def test_columns_that_frames_cannot_take(values: pa.Array, problem: str) -> None:
    tuples = Tuples.of([1])
    tuples.columns[as_expr("x")] = values
    with pytest.raises(DataError, match=f'delta of x by 5 {problem}: "x"'):
        cut(w.delta("x", 5), tuples)


def test_a_predicate_must_be_a_condition() -> None:
    with pytest.raises(DataError, match='threshold while x needs a condition: "x" is int64'):
        cut(w.threshold("x"), Tuples.of([1], x=[1]))
    assert len(cut(w.threshold("x"), Tuples.of([1], x=[None]), closing=True)) == 0


# ---- the user's code -----------------------------------------------------------------------------


def test_errors_of_functions_name_the_window_and_the_record() -> None:
    tuples = Tuples.of([5, 9], x=[1, 0])

    def inverse(record: w.Record) -> Any:
        return 1 // record["x"], 0

    expected = (
        r"discretize by .*inverse: .*inverse failed on Record\(\{'x': 0\}, time=9, rank=1\): "
        "ZeroDivisionError: (integer )?division (or modulo )?by zero"
    )
    with pytest.raises(UserCodeError, match=expected) as caught:
        cut(w.discretize(inverse), tuples)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(
        UserCodeError, match=r"the number of windows that end must be 0, 1, 2, \.\.\.: got -1"
    ):
        cut(w.discretize(lambda r: (0, -1)), tuples)
    with pytest.raises(UserCodeError, match=r"trigger by .* failed on Record.*KeyError: 'y'"):
        cut(w.trigger(lambda b: True, lambda b: b[0]["y"]), tuples)
    with pytest.raises(
        UserCodeError, match=r"the number of evicted records must be 0, 1, 2, \.\.\.: got 'x'"
    ):
        cut(w.trigger(lambda b: True, lambda b: "x"), tuples)  # type: ignore[arg-type, return-value]


def test_errors_of_classes_name_the_window_and_the_record() -> None:
    class Backwards(w.ForwardContextAware):
        def observe(self, state: Any, record: w.Record) -> Any:
            return state, [(record.rank, record.rank)]

    class Forgetful(w.ForwardContextAware):
        def observe(self, state: Any, record: w.Record) -> Any:
            return state, [(0, record.rank + 1)]

        def keep_rank(self, state: Any, rank: int) -> int:
            return rank

    with pytest.raises(
        UserCodeError,
        match=r"Backwards: windows must have ranks of records that were seen: got \[0, 0\) for Record",
    ):
        cut(Backwards(), Tuples.of([5]))
    window = Forgetful()
    contexts = window.initial(1)
    window.cut(contexts, Tuples.of([1, 2]), 2)
    assert window.keep_from(contexts, np.array([2])).tolist() == [2]
    later = Tuples(np.array([0, 1]), np.array([3]), np.array([2]))
    with pytest.raises(UserCodeError, match="Forgetful: keep_rank dropped a rank that a window needs"):
        window.cut(contexts, later, 3)


def test_errors_of_aggregates_in_frames() -> None:
    window = w.until(a.mean("x"), "high")
    with pytest.raises(
        UserCodeError, match=r"until mean\(x\) reaches high: the aggregate failed on the values \[1\]"
    ):
        cut(window, Tuples.of([1], x=[1]))


def test_a_user_defined_aggregate_bounds_frames() -> None:
    product = a.aggregate("x", lift=lambda x: x, combine=lambda p, q: p * q)
    tuples = Tuples.of(range(6), x=[2, 3, 4, 5, None, 2])
    assert cut(w.until(product, 20), tuples, closing=True).end.tolist() == [3, 6]


def test_records_are_mappings() -> None:
    seen = []
    tuples = Tuples.of([5, 9], x=[1, None])
    tuples.rank += 7  # a query that was added later counts from its first tuple
    cut(w.discretize(lambda r: (seen.append((dict(r), len(r), r.time, r.rank)), (0, 0))[1]), tuples)
    assert seen == [({"x": 1}, 1, 5, 0), ({"x": None}, 1, 9, 1)]


def test_a_buffer_is_a_sequence() -> None:
    looks = []

    def look(buffer: Any) -> bool:
        looks.append(([r.rank for r in buffer], [r.rank for r in buffer[-2:]], buffer[-1].rank))
        with pytest.raises(IndexError):
            buffer[3]
        return False

    cut(w.trigger(look, lambda b: int(len(b) > 3)), Tuples.of(range(5)))
    assert looks[-1] == ([2, 3, 4], [3, 4], 4)


# ---- many keys, and the ends of the axis ------------------------------------------------------------


def test_many_keys_in_one_call() -> None:
    keys, each = 20_000, 3
    time = np.tile(np.arange(each), keys)
    tuples = Tuples(np.arange(keys + 1) * each, time, time.copy())
    cuts = cut(w.count(2), tuples, closing=True, partial=True)
    assert cuts.segment.tolist() == np.repeat(np.arange(keys), 2).tolist()
    assert set(zip(cuts.begin.tolist(), cuts.end.tolist(), strict=True)) == {(0, 2), (2, 3)}


def test_an_endless_list_stops_after_the_newest_tuple() -> None:
    window, tuples = w.last(2, 10), Tuples.of([1, 2, 3])
    assert cut(window, tuples).stop.tolist() == [10]
    assert cut(window, tuples, newest=25).stop.tolist() == [10, 20, 30]
    assert cut(window, tuples, upto=20, closing=True).stop.tolist() == [10, 20]
    assert cut(window, tuples, upto=5, closing=True, newest=14).stop.tolist() == [10, 20]


def test_times_near_the_limits() -> None:
    far = 2**62
    tuples = Tuples.of([-far, far])
    assert cut(w.session(5, 2**60), tuples).intervals() == [(-far, -far + 5), (far, far + 5)]
    assert cut(w.slide_by_tuple(2**60, 1), tuples).begin.tolist() == [0, 1]
    assert cut(w.count(1), tuples).intervals() == [(-far, -far + 1), (far, far + 1)]


def test_contexts_must_be_contiguous() -> None:
    window = w.count(2)
    contexts = window.initial(4)[::2]
    with pytest.raises(ValueError, match="contexts must be contiguous"):
        window.cut(contexts, Tuples(np.zeros(3, np.int64), *[np.zeros(0, np.int64)] * 2), 0)


def test_read_only_columns() -> None:
    tuples = Tuples.of([1, 2, 3])
    for array in (tuples.time, tuples.rank, tuples.offsets):
        array.flags.writeable = False
    assert len(cut(w.count(2), tuples)) == 1
