"""How many slices there are: the fewest that the papers promise, and as many combines."""

from __future__ import annotations

import numpy as np
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.windows.base import ContextFreeWindow, Window


def operator(in_order: bool = False, lateness: int = 0, **windows: Window) -> Operator:
    query = mt.windows(**windows).aggregate(n=a.count()).on("t", allowed_lateness=lateness)
    return query.operator(in_order=in_order)


def feed(op: Operator, *times: int) -> None:
    op.process({"t": list(times), "v": [t % 13 for t in times]})


def starts(op: Operator) -> list[int]:
    """Time of the first tuple of each slice, when no more can be folded."""
    op.stats()
    return op._engine.state.slices.first.tolist()


PERIODIC = [
    w.tumbling(5),
    w.tumbling(5, offset=2),
    w.sliding(10, every=4),
    w.sliding(10, every=3, offset=1),
    w.sliding(4, every=10),
    w.cumulate(12, step=4),
    w.fixed_band(7, 20),
]


@pytest.mark.parametrize("window", PERIODIC, ids=lambda window: window.describe())
def test_in_order_slices_start_only_where_windows_start(window: ContextFreeWindow) -> None:
    op = operator(in_order=True, x=window)
    for t in range(60):
        feed(op, t)
        begins, _ = window.windows(np.arange(t + 1), after=t, upto=1_000)
        # The tuples before the first start of a window belong to windows that began before the stream.
        expected = sorted({max(int(begin), 0) for begin in begins})
        assert starts(op) == expected, f"at time {t}"
        assert op.stats().slices == len(expected)


def test_in_order_windows_of_many_queries_start_the_slices_together() -> None:
    op = operator(in_order=True, a=w.sliding(10, every=4), b=w.sliding(30, every=10), c=w.tumbling(7))
    feed(op, *range(100))
    # Alive at 99: a from 92 and 96, b from 70, 80 and 90, c from 98.
    assert starts(op) == [70, 80, 90, 92, 96, 98]


@pytest.mark.parametrize(
    ("windows", "edges"),
    [
        ({"x": w.sliding(10, every=4)}, {s for k in range(-5, 30) for s in (4 * k, 4 * k + 10)}),
        ({"x": w.tumbling(2), "y": w.tumbling(3)}, {*range(0, 100, 2), *range(0, 100, 3)}),
        ({"x": w.sliding(4, every=10)}, {s for k in range(10) for s in (10 * k, 10 * k + 4)}),
        ({"x": w.cumulate(12, step=4)}, set(range(0, 100, 4))),
        ({"x": w.fixed_band(20, 30)}, {20, 50}),
        ({"x": w.landmark(20, every=30)}, {20, 50, 80}),
    ],
    ids=lambda value: ", ".join(x.describe() for x in value.values()) if isinstance(value, dict) else "",
)
def test_out_of_order_slices_also_start_where_windows_end(
    windows: dict[str, Window], edges: set[int]
) -> None:
    op = operator(**windows)
    feed(op, *reversed(range(100)))
    assert starts(op) == sorted(edge for edge in edges if 0 <= edge < 100)


def test_behind_the_watermark_only_the_starts_of_living_windows_remain() -> None:
    op = operator(x=w.sliding(10, every=4))
    feed(op, *range(100))
    op.advance(50)
    # Alive at 50: the windows from 44 and 48 on. After 50, starts at 52, 56, ... and ends at 54, 58, ...
    assert starts(op) == [44, 48, *range(52, 100, 2)]


def test_allowed_lateness_keeps_what_may_still_change() -> None:
    op = operator(lateness=20, x=w.sliding(10, every=4))
    feed(op, *range(100))
    op.advance(70)
    assert starts(op) == [44, 48, *range(52, 100, 2)]


def test_lengths_that_divide_each_other_cost_the_shortest_alone() -> None:
    alone, fused = operator(x=w.tumbling(2)), operator(x=w.tumbling(2), y=w.tumbling(4), z=w.tumbling(6))
    for op in (alone, fused):
        feed(op, *range(120))
        assert starts(op) == list(range(0, 120, 2))


def test_thousand_windows_of_one_grid_cost_one_grid() -> None:
    op = operator(**{f"w{i}": w.tumbling(10 * (1 + i % 100)) for i in range(1000)})
    feed(op, *range(1000))
    assert op.stats().slices == 100


def test_equal_windows_under_two_names_cost_one() -> None:
    windows = {"x": w.sliding(10, every=4), "s": w.session(3), "c": w.count(4)}
    twice = windows | {f"{name}_again": window for name, window in windows.items()}
    times = [t for t in range(100) if t % 20 < 15]
    counts = []
    for named in (windows, twice):
        op = operator(lateness=10, **named)
        feed(op, *times)
        op.advance(60)
        counts.append(op.stats().slices)
    assert counts[0] == counts[1]


# Sessions. ---------------------------------------------------------------------------------------

GAPS_OF_10_AND_30 = [0, 3, 6, 16, 19, 49, 52, 62, 65]
"""Neighbours 3 apart, but for gaps of 10, 30 and 10."""


def test_sessions_are_cut_by_the_smallest_gap_only() -> None:
    for gaps in ([5], [5, 20], [5, 8, 20, 40]):
        op = operator(**{f"s{gap}": w.session(gap) for gap in gaps})
        feed(op, *GAPS_OF_10_AND_30)
        assert starts(op) == [0, 16, 49, 62]
    larger = operator(s20=w.session(20), s40=w.session(40))
    feed(larger, *GAPS_OF_10_AND_30)
    assert starts(larger) == [0, 49]


def test_slices_of_a_session_are_dropped_with_it() -> None:
    op = operator(s=w.session(5))
    feed(op, *GAPS_OF_10_AND_30)
    op.advance(60)
    assert starts(op) == [62]


def test_expired_small_sessions_fold_into_the_large_one_that_goes_on() -> None:
    op = operator(small=w.session(5), large=w.session(20))
    feed(op, *range(0, 200, 10))  # a small session each, one large session
    assert op.stats().slices == 20
    op.advance(150)
    # Small sessions up to 140 have expired (140 + 5 < 150): one slice. 150 to 190 are one slice each.
    assert starts(op) == [0, 150, 160, 170, 180, 190]


def test_a_tuple_that_closes_a_gap_fuses_two_slices() -> None:
    op = operator(s=w.session(5))
    feed(op, 0, 8)
    assert starts(op) == [0, 8]
    feed(op, 4)
    assert starts(op) == [0]


def test_a_tuple_inside_a_gap_that_stays_open_adds_a_slice() -> None:
    op = operator(s=w.session(5))
    feed(op, 0, 20)
    feed(op, 10)
    assert starts(op) == [0, 10, 20]


# Different measures. [cutty §5.3] ----------------------------------------------------------------


def test_count_tumbling_and_punctuation_share_slices() -> None:
    op = operator(in_order=True, c=w.count(7), t=w.tumbling(10), p=w.punctuation(mt.col("v") == 0))
    feed(op, *range(100))
    # Open at 99: the tumbling window from 90, the punctuation window from 91 and the count window from 98.
    assert starts(op) == [90, 91, 98]
    assert op.stats().kept_tuples == 0


def test_edges_that_coincide_cost_one_slice() -> None:
    op = operator(in_order=True, c=w.count(7), t=w.tumbling(7), m=w.tumbling(14, measure="t"))
    feed(op, *range(100))
    assert starts(op) == [98]


def test_between_watermark_and_lateness_slices_start_at_the_edges_of_all_measures() -> None:
    op = operator(lateness=40, c=w.count(7), t=w.tumbling(10))
    feed(op, *range(100))
    op.advance(80)
    # Final are tuples before 40: the tumbling window from 40 on and the count window from 35 on live.
    # Tuples up to the watermark are sliced, the others wait.
    assert starts(op) == [35, 40, 42, 49, 50, 56, 60, 63, 70, 77, 80]
    assert op.stats().kept_tuples == 60


# Combines. ---------------------------------------------------------------------------------------


def lifts(queries: dict[str, Window], lateness: int = 0, **aggregates: a.Aggregate) -> tuple[int, int]:
    query = mt.windows(**queries).aggregate(**aggregates).on("t", allowed_lateness=lateness)
    op = query.operator()
    rng = np.random.default_rng(7)
    times = np.arange(1000) + rng.integers(-15, 15, 1000)
    for part in np.array_split(times, 7):
        op.process({"t": part, "v": part % 10, "x": part * 0.5})
        op.advance(int(part.max()) - 5)
    op.finish()
    return op.stats().lifts, op.stats().tuples


@pytest.mark.parametrize(
    ("aggregates", "partials"),
    [
        ({"n": a.count()}, 1),
        ({"total": a.sum("v")}, 2),  # with the number of values, for null over none
        ({"mean": a.mean("v")}, 2),
        ({"mean": a.mean("v"), "total": a.sum("v")}, 2),
        ({"spread": a.stddev("v")}, 3),
        ({"mean": a.mean("v"), "spread": a.stddev("v"), "variance": a.variance("v")}, 3),
        ({"mean": a.mean("v"), "spread": a.stddev("v"), "other": a.mean("x")}, 5),
        ({"first": a.mean("v"), "second": a.mean("v")}, 2),
    ],
    ids=lambda value: ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value),
)
def test_each_tuple_is_combined_once_into_each_distinct_partial(
    aggregates: dict[str, a.Aggregate], partials: int
) -> None:
    done, tuples = lifts({"x": w.tumbling(10)}, **aggregates)
    assert tuples == 1000
    assert done == partials * tuples


@pytest.mark.parametrize(
    "queries",
    [
        {"x": w.tumbling(10)},
        {f"w{i}": w.sliding(10 + i, every=1 + i) for i in range(50)},
        {
            "s": w.session(3),
            "c": w.count(9, every=2),
            "p": w.punctuation(mt.col("v") == 0),
            "t": w.tumbling(10),
        },
        {"l": w.last(9, every=10), "r": w.slide_by_tuple(10, every=3)},
    ],
    ids=["one", "fifty", "measures", "forward aware"],
)
@pytest.mark.parametrize("lateness", [0, 30])
def test_the_update_cost_does_not_depend_on_the_queries(queries: dict[str, Window], lateness: int) -> None:
    done, tuples = lifts(queries, lateness, mean=a.mean("v"), spread=a.stddev("v"))
    assert done == 3 * tuples
