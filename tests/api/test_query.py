"""Queries: frozen, reusable, checked where they are written."""

from __future__ import annotations

import dataclasses
import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import MuntinError, QueryError
from muntin.timeline import Micros

MINUTE = w.tumbling("1 minute")


def dashboard() -> mt.Query:
    return (
        mt.windows(minute=MINUTE, visit=w.session("30 seconds"), hundred=w.count(100))
        .aggregate(total=a.sum("amount"), top=a.arg_max("customer", by="amount"))
        .by("shop")
        .on("ts", allowed_lateness="1 hour", early=mt.every("10 seconds"), late="route", bad="skip")
    )


def test_the_parts_of_a_query() -> None:
    query = dashboard()
    assert query.windows == (
        ("minute", MINUTE),
        ("visit", w.session("30 seconds")),
        ("hundred", w.count(100)),
    )
    assert query.aggregates == (("total", a.sum("amount")), ("top", a.arg_max("customer", by="amount")))
    assert query.keys == ("shop",)
    assert query.time == "ts"
    assert query.allowed_lateness == Micros(3_600_000_000)
    assert query.emit == mt.on_close()
    assert query.early == mt.every(dt.timedelta(seconds=10))
    assert (query.late, query.bad, query.idle_after) == ("route", "skip", None)


def test_queries_are_frozen_equal_and_hashable() -> None:
    query = dashboard()
    assert query == dashboard()
    assert hash(query) == hash(dashboard())
    assert query != query.by("city")
    with pytest.raises(dataclasses.FrozenInstanceError):
        query.time = "at"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(query)) == query  # noqa: S301  # our own bytes


def test_the_order_of_the_calls_does_not_matter() -> None:
    start = mt.windows(minute=MINUTE)
    assert start.on("ts").by("shop").aggregate(n=a.count()) == start.aggregate(n=a.count()).by("shop").on(
        "ts"
    )


def test_queries_can_be_reused() -> None:
    base = mt.windows(minute=MINUTE).aggregate(n=a.count()).on("ts")
    by_shop, by_city = base.by("shop"), base.by("city")
    assert (base.keys, by_shop.keys, by_city.keys) == ((), ("shop",), ("city",))
    more = base.aggregate(total=a.sum("amount"))
    assert [name for name, _ in more.aggregates] == ["n", "total"]
    assert [name for name, _ in base.aggregates] == ["n"]


def test_repr_is_the_source() -> None:
    assert repr(dashboard()) == (
        "mt.windows(minute=w.tumbling(length='1 minute'), visit=w.session(gap='30 seconds'), "
        "hundred=w.count(n=100)).aggregate(total=a.sum(column='amount'), "
        "top=a.arg_max(column='customer', by='amount')).by('shop').on('ts', allowed_lateness='1 hour', "
        "early=mt.every('10 seconds'), late='route', bad='skip')"
    )


def test_fingerprints_tell_queries_apart() -> None:
    base = dashboard()
    variants = [
        base,
        base.by(),
        base.by("city"),
        base.on("at"),
        base.on("ts", allowed_lateness="2 hours"),
        base.on("ts", early=mt.each_batch()),
        base.on("ts", idle_after="1 minute"),
        base.on("ts", max_ahead="1 minute"),
        base.on("ts", max_windows=1_000),
        base.on("ts", forget_keys_after="1 day"),
        base.on("ts", forget_keys_after="2 days"),
        base.aggregate(n=a.count()),
        dataclasses.replace(base, aggregates=base.aggregates[::-1]),
        dataclasses.replace(base, windows=base.windows[:1]),
        dataclasses.replace(base, windows=(("minute", w.tumbling("2 minutes")),)),
        dataclasses.replace(base, windows=(("second", MINUTE),)),
        mt.windows(x=w.punctuation(mt.col("qty") / 2 > 1)).aggregate(n=a.count()).on("ts"),
        mt.windows(x=w.punctuation(mt.col("qty") / 2.0 > 1)).aggregate(n=a.count()).on("ts"),
        mt.windows(x=w.punctuation(mt.col("qty").cast("int8") > 1)).aggregate(n=a.count()).on("ts"),
        mt.windows(x=w.punctuation(mt.col("qty").cast("int16") > 1)).aggregate(n=a.count()).on("ts"),
        mt.windows(x=w.discretize(_begins)).aggregate(n=a.count()).on("ts"),
        mt.windows(x=w.discretize(_ends)).aggregate(n=a.count()).on("ts"),
    ]
    assert len({query.fingerprint() for query in variants}) == len(variants)
    assert base.fingerprint() == dashboard().fingerprint()


def _begins(record: Any) -> tuple[int, int]:
    return 1, 0


def _ends(record: Any) -> tuple[int, int]:
    return 1, 1


@pytest.mark.parametrize("numbers", [(1, 1.0, Decimal(1), Decimal("1.0")), (0.5, Decimal("0.50"))])
def test_equal_numbers_make_equal_fingerprints(numbers: tuple[Any, ...]) -> None:
    queries = [mt.windows(x=w.delta("c", by=n)).aggregate(n=a.count()).on("t") for n in numbers]
    assert all(query == queries[0] for query in queries)
    assert len({query.fingerprint() for query in queries}) == 1


def test_a_fingerprint_never_changes() -> None:
    query = mt.windows(minute=w.tumbling("1 minute")).aggregate(total=a.sum("amount")).by("shop").on("ts")
    # Snapshots carry it: a change here refuses the snapshots of earlier versions.
    assert query.fingerprint() == "368461952732d630102f1409c3f3f73fc4d2864e199cc5f648081c9fbd59206e"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: mt.windows(), "a query needs a window"),
        (lambda: mt.windows(MINUTE), "windows need names"),
        (lambda: mt.windows(minute="1 minute"), "\"minute\" must be a window: got '1 minute'; write minute="),
        (lambda: mt.windows(minute=w.tumbling), "did you forget to call it?"),
        (lambda: mt.windows(minute=a.count()), '"minute" must be a window'),
        (lambda: mt.windows(minute=None), '"minute" must be a window'),
        (lambda: mt.windows(m=MINUTE).aggregate(), "aggregates need names"),
        (lambda: mt.windows(m=MINUTE).aggregate(a.count()), "aggregates need names"),
        (lambda: mt.windows(m=MINUTE).aggregate(n=a.count), "did you forget to call it?"),
        (lambda: mt.windows(m=MINUTE).aggregate(n="amount"), '"n" must be an aggregate'),
        (lambda: mt.windows(m=MINUTE).aggregate(n=MINUTE), '"n" must be an aggregate'),
        (lambda: mt.windows(m=MINUTE).aggregate(n=a.count()).aggregate(n=a.count()), '"n" twice'),
        (lambda: mt.windows(m=MINUTE).by("x", "x"), '"x" twice'),
        (lambda: mt.windows(m=MINUTE).by(3), "by() takes names of columns"),
        (lambda: mt.windows(m=MINUTE).by(["x", "y"]), "by() takes names of columns"),
        (lambda: mt.windows(m=MINUTE).by(""), "by() takes names of columns"),
        (lambda: mt.windows(m=MINUTE).aggregate(kind=a.count()), 'the aggregate "kind" has the name'),
        (lambda: mt.windows(m=MINUTE).by("window"), 'the key column "window" has the name'),
        (lambda: mt.windows(m=MINUTE).by("n").aggregate(n=a.count()), "is a key column and an aggregate"),
        (lambda: mt.windows(m=MINUTE).on(3), "on() takes the name of the time column"),
        (lambda: mt.windows(m=MINUTE).on("ts", allowed_lateness="-1 s"), "must not be negative"),
        (
            lambda: mt.windows(m=MINUTE).on("ts", allowed_lateness="soon"),
            "allowed_lateness must be a duration",
        ),
        (lambda: mt.windows(m=MINUTE).on("ts", allowed_lateness=10), "all durations"),
        (lambda: mt.windows(m=MINUTE).on("ts", early=mt.every(10)), "all durations"),
        (lambda: mt.windows(m=MINUTE, n=w.tumbling(10)), 'got "1 minute" in window "m" and 10 in window "n"'),
        (lambda: mt.windows(m=MINUTE).on("ts", emit=mt.each_batch()), "early results go to early="),
        (lambda: mt.windows(m=MINUTE).on("ts", early="10 seconds"), "early must be mt.every"),
        (lambda: mt.windows(m=MINUTE).on("ts", early=mt.each_batch), "did you forget to call it?"),
        (lambda: mt.windows(m=MINUTE).on("ts", early=mt.on_close()), "early must be mt.every"),
        (lambda: mt.windows(m=MINUTE).on("ts", late="rout"), 'Did you mean "route"?'),
        (lambda: mt.windows(m=MINUTE).on("ts", bad="ignore"), 'bad must be "fail" or "skip" or "route"'),
        (lambda: mt.windows(m=MINUTE).on("ts", late=["drop"]), "late must be"),
        (lambda: mt.windows(m=MINUTE).on("ts", idle_after=30), 'write idle_after="30 seconds"'),
        (lambda: mt.windows(m=MINUTE).on("ts", idle_after="0 s"), "idle_after must be a positive"),
        (lambda: mt.windows(m=MINUTE).on("ts", max_ahead=30), 'write max_ahead="1 hour"'),
        (lambda: mt.windows(m=MINUTE).on("ts", max_ahead="-1 s"), "max_ahead must be a positive"),
        (lambda: mt.windows(m=MINUTE).on("ts", max_ahead="soon"), "max_ahead must be a duration"),
        (
            lambda: mt.windows(n=w.tumbling(10)).on("t", max_ahead="1 hour"),
            'an integer time column has no clock: got max_ahead="1 hour" and 10 in window "n"',
        ),
        (
            lambda: mt.windows(m=MINUTE).on("ts", max_windows=0),
            "max_windows must be a whole number from 1 on",
        ),
        (
            lambda: mt.windows(m=MINUTE).on("ts", max_windows=1e6),
            "got 1000000.0; leave it out for 10_000_000",
        ),
        (lambda: mt.windows(m=MINUTE).on("ts", max_windows=True), "max_windows must be a whole number"),
        (
            lambda: mt.windows(y=w.sliding("365 days", every="1 second")).on("ts"),
            (
                'not lie in more than 10,000,000 windows of one name: got "y" (sliding 365 days every '
                "1 second), of which 31,536,000 hold each tuple; let fewer of them overlap, "
                "or allow more with .on(..., max_windows=31_536_000)"
            ),
        ),
        (
            lambda: mt.windows(c=w.cumulate(10**12, step=1)).on("t"),
            "allow more with .on(..., max_windows=1_000",
        ),
        (
            lambda: mt.windows(c=w.cumulate(10**12, step=1, measure="km")).on("t"),
            "of which 1,000,000,000,000 hold each tuple",
        ),
        (
            lambda: mt.windows(s=w.sliding(60, every=1)).on("t", max_windows=59),
            "not lie in more than 59 windows",
        ),
        (
            lambda: mt.windows(m=MINUTE).on("ts", forget_keys_after="0 s"),
            "forget_keys_after must be a positive",
        ),
        (lambda: mt.windows(m=MINUTE).on("ts", forget_keys_after=-5), "or leave it out to forget no key"),
        (lambda: mt.windows(m=MINUTE).on("ts", forget_keys_after=5), "and 5 in forget_keys_after"),
        (
            lambda: mt.windows(m=MINUTE).on("ts", forget_keys_after="soon"),
            "forget_keys_after must be a duration",
        ),
        (lambda: mt.every("0 seconds"), "period must be positive"),
        (lambda: mt.windows(m=MINUTE).on("ts").run({}), "the query has no aggregate"),
        (lambda: mt.windows(m=MINUTE).aggregate(n=a.count()).operator(), "the query has no time column"),
        (lambda: mt.windows(m=MINUTE).explain(), "the query has no aggregate"),
        (lambda: mt.windows(m=MINUTE).to_toml(), "the query has no aggregate"),
    ],
)
def test_mistakes_are_explained(wrong: Any, words: str) -> None:
    with pytest.raises(QueryError) as error:
        wrong()
    assert words in str(error.value)


def test_zero_and_other_measures_fit_every_unit() -> None:
    assert mt.windows(ten=w.tumbling(10)).on("at", allowed_lateness=0).allowed_lateness == 0
    assert mt.windows(ten=w.tumbling(10)).on("at", allowed_lateness="0 seconds").allowed_lateness == 0
    mixed = mt.windows(minute=MINUTE, km=w.tumbling(10, measure="km"), hundred=w.count(100)).on("ts")
    assert [name for name, _ in mixed.windows] == ["minute", "km", "hundred"]


def test_a_query_transforms_data_frames_of_spark_only() -> None:
    with pytest.raises(MuntinError, match=r"Spark DataFrame: got a dict; use \.run\(table\)"):
        dashboard()({"ts": [1]})


def test_repr_of_computed_columns_and_of_the_users_own() -> None:
    double = a.sum(mt.col("x") * 2)
    mine = a.aggregate("x", lift=float, combine=float.__add__, name="mine")
    query = mt.windows(enough=w.until(double, 5), d=w.discretize(_begins)).aggregate(double=double, mine=mine)
    assert repr(query) == (
        "mt.windows(enough=w.until(aggregate=a.sum(column=Expr('x * 2')), limit=5), "
        "d=w.discretize(function=_begins))"
        ".aggregate(double=a.sum(column=Expr('x * 2')), mine=a.aggregate(x, name='mine'))"
    )


class Wednesday(w.ContextFree):
    """A window class of the user, which no constructor makes."""

    def __init__(self, length: int) -> None:
        self.length = length

    def next_edge(self, time: int) -> int:
        return time + self.length

    def containing(self, time: int) -> list[tuple[int, int]]:
        return [(time, time + self.length)]


def test_window_classes_of_the_user() -> None:
    def query(length: int) -> mt.Query:
        return mt.windows(mine=Wednesday(length)).aggregate(n=a.count()).on("ts")

    assert query(5).fingerprint() == query(5).fingerprint() != query(6).fingerprint()
    assert "Wednesday" in repr(query(5))
    with pytest.raises(QueryError, match=r'windows "mine": .*Wednesday'):
        query(5).to_toml()


# Names of result columns. ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["window_name", "window", "kind", "revision"])
def test_names_of_result_columns_are_taken(name: str) -> None:
    shape = mt.windows(x=w.tumbling(10))
    for wrong in (lambda: shape.aggregate(**{name: a.count()}), lambda: shape.by(name)):
        with pytest.raises(QueryError, match=rf'"{name}" has the name of a result column .* rename it'):
            wrong()


@pytest.mark.parametrize("name", ["query", "start", "end", "ordinal", "start_rank", "reason", "time", "x"])
def test_all_other_names_are_free(name: str) -> None:
    """Edges lie inside the column `window`, so no name of a column can collide with them."""
    windows = mt.windows(x=w.tumbling(10), c=w.count(1), p=w.punctuation("v > 0"))
    data = {"t": [1], "v": [1], name: ["a"]}
    named = windows.aggregate(**{name: a.sum("v")}).on("t").run({"t": [1], "v": [1]})
    assert named[name].to_pylist() == [1, 1, 1]
    keyed = windows.aggregate(n=a.count()).by(name).on("t").run(data)
    assert keyed[name].to_pylist() == ["a", "a", "a"]


def test_a_measure_named_rank_beside_ranks_is_refused() -> None:
    by_rank, counted = w.tumbling(10, measure="rank"), w.count(2)
    with pytest.raises(QueryError, match=r'"m" and "c", whose edges would both be start_rank.*rename'):
        mt.windows(m=by_rank, c=counted)
    alone = mt.windows(m=by_rank).aggregate(n=a.count()).on("t")
    (row,) = alone.run({"t": [1], "rank": [25]}).to_pylist()
    assert row["window"] == {"start": 1, "end": 2, "start_rank": 20, "end_rank": 30}
    op = alone.operator()
    op.process({"t": [1], "rank": [25]})
    with pytest.raises(QueryError, match="rename the column"):
        op.add(c=counted)


@pytest.mark.parametrize("measure", ["km", "start", "start_km", "rank_rank", "ordinal", "a b"])
def test_measures_of_any_other_name_have_edges_of_their_own(measure: str) -> None:
    windows = mt.windows(m=w.tumbling(10, measure=measure), c=w.count(1), p=w.punctuation("v > 0"))
    rows = windows.aggregate(n=a.count()).on("t").run({"t": [1], "v": [1], measure: [25]}).to_pylist()
    edges = {row["window_name"]: row["window"] for row in rows}
    assert (edges["m"][f"start_{measure}"], edges["m"][f"end_{measure}"]) == (20, 30)
    assert (edges["c"]["start_rank"], edges["c"][f"start_{measure}"]) == (0, None)
    assert (edges["p"]["ordinal"], edges["m"]["ordinal"]) == (0, None)


def test_forgetting_is_part_of_the_query_as_it_is_shown() -> None:
    query = mt.windows(c=w.count(3)).aggregate(n=a.count()).by("k").on("ts", forget_keys_after="7 days")
    assert query.forget_keys_after == Micros(7 * 86_400_000_000)
    assert repr(query).endswith(".on('ts', forget_keys_after='7 days')")


def test_the_unit_of_forgetting_must_fit_the_time_column() -> None:
    query = mt.windows(c=w.count(3)).aggregate(n=a.count()).by("k")
    with pytest.raises(QueryError, match="7 days"):
        query.on("t", forget_keys_after="7 days").run({"t": [1], "k": [1]})
    with pytest.raises(QueryError, match="timestamp"):
        query.on("t", forget_keys_after=7).run({"t": [dt.datetime(2026, 1, 1)], "k": [1]})
