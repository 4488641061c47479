"""explain(): the characteristics of a workload, every decision with its reason, and what follows from it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError
from muntin.planning.plan import decide
from muntin.planning.rules import TREES, Rule
from muntin.planning.workload import Workload
from muntin.windows.base import Window

SUM = {"total": a.sum("v")}
ORDERED = {"words": a.aggregate("v", lift=str, combine=lambda x, y: x + y, commutative=False, name="words")}


def query(windows: dict[str, Window], aggregates: dict[str, Any] | None = None, **on: Any) -> Any:
    return mt.windows(**windows).aggregate(**(aggregates or SUM)).on("t", **on)


TUMBLING, COUNT, FRAME = {"x": w.tumbling(10)}, {"x": w.count(5)}, {"x": w.punctuation(mt.col("v") == 1)}
AWARE = {"x": w.last(5, every=10)}
SLIDING = {"x": w.sliding(2_000, every=1)}

# One row of one table each: (question, number of the row, query, in order, answer, words of the reason).
ROWS: list[tuple[str, int, Any, bool, str, str]] = [
    ("keep tuples?", 0, query(AWARE), True, "yes", "may begin before the tuples that reveal it"),
    ("keep tuples?", 1, query(COUNT, allowed_lateness=5), True, "yes", "watermark set by hand may overtake"),
    ("keep tuples?", 2, query(COUNT), True, "no", "never changes an edge that has passed"),
    ("keep tuples?", 3, query(COUNT), False, "yes", "shifts the rank of all later ones"),
    ("keep tuples?", 4, query(FRAME), False, "yes", "may open or close a window"),
    ("keep tuples?", 5, query(TUMBLING, ORDERED), False, "in the partials", "keeps its lifted tuples"),
    ("keep tuples?", 6, query(TUMBLING), False, "no", "all windows are context free or sessions"),
    ("split slices?", 0, query(AWARE), False, "yes", "may begin inside a slice"),
    ("split slices?", 1, query(TUMBLING, allowed_lateness=5), False, "no", "edges are known before"),
    ("split slices?", 2, query(FRAME), False, "no", "sliced when the watermark reaches them"),
    ("split slices?", 3, query(COUNT, allowed_lateness=5), False, "no", "moves tuples from slice to slice"),
    (
        "split slices?",
        4,
        query(FRAME, early=mt.each_batch()),
        False,
        "yes",
        "early results slice tuples beyond",
    ),
    (
        "split slices?",
        5,
        query(FRAME, allowed_lateness=5),
        False,
        "yes",
        "a late tuple moves edges of its key",
    ),
    ("remove tuples from slices?", 0, query(FRAME), False, "no", "only when ranks shift"),
    ("remove tuples from slices?", 1, query(COUNT), False, "no", "ranks are final when tuples are sliced"),
    (
        "remove tuples from slices?",
        2,
        query(COUNT, allowed_lateness=5),
        False,
        "invert",
        "it is inverted out",
    ),
    (
        "remove tuples from slices?",
        4,
        query(COUNT, {"most": a.max("v")}, allowed_lateness=5),
        False,
        "recompute",
        "these slices are recomputed",
    ),
    ("store?", 0, query(TUMBLING), False, "lazy", "few slices per window"),
    ("store?", 2, query(SLIDING, ORDERED), True, "two_stacks", "a queue persists between watermarks"),
    ("store?", 3, query({"x": w.sliding(140_000, every=1)}), False, "fiba", "windows of very many slices"),
    (
        "store?",
        3,
        query({"x": w.slide_by_tuple(140_000, every=1)}),
        False,
        "fiba",
        "windows of very many slices",
    ),
    ("store?", 5, query(SLIDING), False, "flatfat", "over integers and decimals prefix takes its place"),
    ("store?", 6, query(SLIDING, {"most": a.max("v")}), False, "flatfat", "shared by all windows"),
]
# These need the types of the input, see below.
WITH_TYPES = {("store?", 1), ("store?", 4), ("remove tuples from slices?", 3)}


@pytest.mark.parametrize(
    ("question", "row", "shape", "in_order", "answer", "reason"), ROWS, ids=[f"{q} {i}" for q, i, *_ in ROWS]
)
def test_each_decision_comes_with_its_reason(
    question: str, row: int, shape: Any, in_order: bool, answer: str, reason: str
) -> None:
    rule: Rule = dict(TREES)[question][row]
    decision = decide(question, dict(TREES)[question], Workload.of(shape, in_order))
    assert (decision.answer, decision.reason, decision.section) == (rule.answer, rule.reason, rule.section)
    assert decision.answer == answer
    assert reason in decision.reason
    text = str(shape.explain(in_order=in_order, verbose=True))
    assert f"{question} {answer}: {decision.reason}" in text
    assert f"[{rule.section}]" in text


def test_every_row_of_every_table_is_reachable() -> None:
    shown = {(question, row) for question, row, *_ in ROWS}
    assert shown | WITH_TYPES == {(question, row) for question, table in TREES for row in range(len(table))}


# The prose of [scotty §5.1, §5.2] and Fig. 4 to 6: (windows, aggregates, in order, keep, split, remove).
PROSE: list[tuple[dict[str, Window], dict[str, Any], bool, str, str, str]] = [
    # "For in-order streams, only forward context aware windows require" tuples, and splits.
    (TUMBLING, SUM, True, "no", "no", "no"),
    (COUNT, SUM, True, "no", "no", "no"),
    (FRAME, SUM, True, "no", "no", "no"),
    (AWARE, SUM, True, "yes", "yes", "no"),
    # Out of order: context-free windows on time never split, sessions split where there is no tuple.
    (TUMBLING, SUM, False, "no", "no", "no"),
    (SLIDING, SUM, False, "no", "no", "no"),
    ({"x": w.session(5)}, SUM, False, "no", "no", "no"),
    # The count measure: remove tuples, by invert where there is an exact one, else recompute.
    (COUNT, SUM, False, "yes", "no", "invert"),
    (COUNT, {"n": a.count()}, False, "yes", "no", "invert"),
    (COUNT, {"d": a.stddev("v")}, False, "yes", "no", "recompute"),
    # "Min, Max, MinCount, MaxCount, ArgMin, and ArgMax are not invertible" but rarely affected [§10.3.2].
    (COUNT, {"x": a.max("v")}, False, "yes", "no", "invert or check"),
    (COUNT, {"x": a.min_count("v"), "y": a.arg_max("v", by="t")}, False, "yes", "no", "invert or check"),
    # "In out-of-order data streams, all context aware windows can require split operations."
    (FRAME, SUM, False, "yes", "yes", "no"),
    (AWARE, SUM, False, "yes", "yes", "no"),
    (COUNT | {"y": FRAME["x"]}, SUM, False, "yes", "yes", "invert"),
]


@pytest.mark.parametrize(("windows", "aggregates", "in_order", "keep", "split", "remove"), PROSE)
def test_decisions_agree_with_the_prose_of_the_paper(
    windows: dict[str, Window], aggregates: dict[str, Any], in_order: bool, keep: str, split: str, remove: str
) -> None:
    shape = query(windows, aggregates, **({} if in_order else {"allowed_lateness": 5}))
    schema = pa.schema({"t": pa.int64(), "v": pa.int64()})
    explanation = shape.explain(in_order=in_order, schema=schema, verbose=True)
    answers = [decision.answer for decision in explanation.plan.decisions]
    assert answers[:3] == [keep, split, remove]
    assert f"remove tuples from slices? {remove}:" in str(explanation)


def test_what_can_be_subtracted_is_known_with_the_types() -> None:
    rule = dict(TREES)["store?"][4]
    assert rule.answer == "prefix"
    for kind, store in ((pa.int64(), "prefix"), (pa.decimal128(10, 2), "prefix"), (pa.float64(), "flatfat")):
        plan = query(SLIDING).explain(schema=pa.schema([("t", pa.int64()), ("v", kind)])).plan
        assert plan.store == store
        assert (plan.decisions[-1].reason == rule.reason) is (store == "prefix")


def test_a_tree_of_numbers_persists_where_windows_have_very_many_slices() -> None:
    rule = dict(TREES)["store?"][1]
    long = {"x": w.sliding(40_000, every=1)}
    for aggregate, kind, stands in [
        (a.sum("v"), pa.int64(), True),
        (a.mean("v"), pa.float64(), True),
        (a.max("v"), pa.float32(), True),
        (a.sum("v"), pa.decimal128(30, 2), False),
        (a.stddev("v"), pa.float64(), False),
    ]:
        plan = query(long, {"x": aggregate}).explain(schema=pa.schema([("t", pa.int64()), ("v", kind)])).plan
        assert (plan.store, plan.decisions[-1].reason == rule.reason)[1] is stands
        assert plan.store == "flatfat" or not stands


def test_the_last_row_of_every_table_always_applies() -> None:
    workload = Workload.of(query(TUMBLING), in_order=False)
    for _, table in TREES:
        assert table[-1].applies(workload) is True


def test_a_decision_names_what_made_it() -> None:
    windows = {"plain": w.tumbling(10), "hundred": w.count(100), "marks": w.punctuation(mt.col("v") == 1)}
    text = str(query(windows, allowed_lateness=5).explain(verbose=True))
    assert "tuples stay until their rank is final (hundred)" in text
    text = str(
        query({"plain": w.tumbling(10), "tail": w.last(5, every=10)}).explain(in_order=True, verbose=True)
    )
    assert "those it can reach back to stay (tail)" in text


def test_the_four_characteristics() -> None:
    windows = {
        "minute": w.tumbling(60),
        "hundred": w.count(100),
        "trip": w.tumbling(10, measure="km"),
        "tail": w.last(5, every=10),
        "visit": w.session(30),
    }
    aggregates = {"total": a.sum("v"), "mean": a.mean("v"), "middle": a.median("v")} | ORDERED
    text = str(query(windows, aggregates).explain(verbose=True))
    assert "stream order: out of order" in text
    assert "aggregates: algebraic, distributive, holistic; order matters to words" in text
    assert "measures: time, count, km" in text
    for words in (
        'window "minute": tumbling 60 (context free)',
        'window "hundred": count 100 (forward context free)',
        'window "trip": tumbling 10 on km (forward context free)',
        'window "tail": last 5 every 10 (forward context aware)',
        'window "visit": session 30 (forward context free)',
    ):
        assert words in text
    assert "stream order: in order" in str(query(windows).explain(in_order=True, verbose=True))


@pytest.mark.parametrize(
    ("windows", "in_order", "words"),
    [
        ({"x": w.tumbling("10 seconds")}, False, "0.1 per second of event time and key"),
        ({"x": w.tumbling(10)}, False, "0.1 per unit of event time and key"),
        ({"x": w.tumbling(2), "y": w.tumbling(4), "z": w.tumbling(6)}, False, "0.5 per unit"),
        ({"x": w.tumbling(2), "y": w.tumbling(3)}, False, "0.6667 per unit"),
        (
            {"x": w.sliding(10, every=4)},
            False,
            "0.5 per unit of event time and key, where periodic windows start or end",
        ),
        (
            {"x": w.sliding(10, every=4)},
            True,
            "0.25 per unit of event time and key, where periodic windows start",
        ),
        ({"x": w.sliding("10 minutes", every="5 seconds")}, False, "0.2 per second"),
        ({"x": w.cumulate(12, step=4)}, False, "0.25 per unit"),
        ({"x": w.cumulate(12, step=4)}, True, "0.08333 per unit"),
        ({f"w{i}": w.tumbling(f"{i} seconds") for i in range(1, 21)}, False, "1 per second"),
        ({"x": w.tumbling("7 ms"), "y": w.tumbling("30 days")}, False, "142.9 per second"),
        (
            {"x": w.session("30 seconds"), "y": w.session("5 minutes")},
            False,
            "each gap longer than 30 seconds",
        ),
        ({"x": w.session(3)}, False, "one more at each gap longer than 3"),
        (
            {"c": w.count(5), "p": w.punctuation(mt.col("v") == 1)},
            False,
            "where a window of c, p begins or ends",
        ),
        ({"x": w.fixed_band(0, 10)}, False, "where windows start and end"),
    ],
    ids=lambda value: (
        " ".join(x.describe() for x in value.values())[:40] if isinstance(value, dict) else None
    ),
)
def test_slices_per_second(windows: dict[str, Window], in_order: bool, words: str) -> None:
    assert words in str(query(windows).explain(in_order=in_order, verbose=True))


def test_the_slices_that_are_told_are_the_slices_that_come() -> None:
    windows = {"x": w.sliding(10, every=4), "y": w.tumbling(6), "z": w.tumbling(9, offset=2)}
    op = query(windows).operator()
    op.process({"t": list(range(36_000)), "v": [1] * 36_000})
    rate = op.stats().slices / 36_000
    assert f"{rate:.4g} per unit" in str(query(windows).explain(verbose=True))


def test_how_each_aggregate_runs() -> None:
    aggregates = {"total": a.sum("v"), "mean": a.mean("v"), "middle": a.median("v")} | ORDERED
    text = str(query(TUMBLING, aggregates).explain(verbose=True))
    assert "total: sum(v), distributive, compiled" in text
    assert "mean: mean(v), algebraic, compiled" in text
    assert "middle: median(v), holistic, compiled" in text
    assert "words: aggregate(v, name='words'), algebraic, Python functions; explain(schema=...) tells" in text


def test_a_store_can_be_forced_and_a_wrong_one_names_the_nearest() -> None:
    assert "store? flatfat: forced by store=" in str(query(TUMBLING).explain(store="flatfat", verbose=True))
    for act in (
        lambda: query(TUMBLING).explain(store="lasy"),
        lambda: query(TUMBLING).operator(store="lasy"),
    ):
        with pytest.raises(QueryError, match=r'no store "lasy".*Did you mean "lazy"'):
            act()


def test_it_prints_as_text_and_holds_the_plan() -> None:
    explanation = query(COUNT).explain(verbose=True)
    assert str(explanation) == repr(explanation)
    assert explanation.plan.keeps_tuples
    assert not query(TUMBLING).explain().plan.keeps_tuples
    assert [line.split("  ")[0] for line in str(explanation).splitlines() if not line.startswith(" ")] == [
        "computes",
        "keeps",
        "emits",
        "query",
        "workload",
        "decisions",
        "slices",
        "aggregates",
    ]


def test_a_query_that_is_not_complete_cannot_be_explained() -> None:
    with pytest.raises(QueryError, match="no aggregate"):
        mt.windows(x=w.tumbling(5)).explain(verbose=True)


# The plan and the operator agree. ----------------------------------------------------------------

EVERY_WINDOW = [
    w.tumbling(10),
    w.sliding(10, every=4),
    w.cumulate(12, step=4),
    w.fixed_band(0, 50),
    w.landmark(0, every=10),
    w.session(3),
    w.session(3, max_length=10),
    w.count(5),
    w.punctuation(mt.col("v") == 1),
    w.slide_by_tuple(9, every=2),
    w.last(4, every=10),
    w.threshold(mt.col("v") > 3),
    w.delta("v", by=3),
    w.boundary("v", step=3),
    w.until(a.sum("v"), 20),
    w.tumbling(10, measure="t"),
    w.session(3, measure="t"),
    w.discretize(lambda record: (1, 1)),
    w.trigger(lambda buffer: True, lambda buffer: max(0, len(buffer) - 3)),
]


@pytest.mark.parametrize("window", EVERY_WINDOW, ids=lambda window: window.describe())
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "out of order"])
@pytest.mark.parametrize("lateness", [0, 20])
def test_tuples_are_kept_exactly_where_the_plan_says_so(
    window: Window, in_order: bool, lateness: int
) -> None:
    shape = query({"x": window}, allowed_lateness=lateness)
    op = shape.operator(in_order=in_order)
    op.process({"t": list(range(100)), "v": [t % 10 for t in range(100)]})
    assert (op.stats().kept_tuples > 0) == shape.explain(in_order=in_order).plan.keeps_tuples


class Weekly(w.ContextFree):
    """Windows of seven."""

    def next_edge(self, time: int) -> int:
        return time - time % 7 + 7

    def containing(self, time: int) -> list[tuple[int, int]]:
        return [(time - time % 7, time - time % 7 + 7)]


class WeeklyToo(Weekly):
    """Also without tuples."""

    emit_empty = True

    def describe(self) -> str:
        return super().describe().replace("WeeklyToo", "Weekly")


OPTIONS: dict[str, tuple[Any, Any]] = {
    "tumbling offset": (w.tumbling(10), w.tumbling(10, offset=3)),
    "tumbling empty": (w.tumbling(10), w.tumbling(10, emit_empty=True)),
    "sliding every": (w.sliding(10, every=5), w.sliding(10, every=4)),
    "sliding empty": (w.sliding(10, every=5), w.sliding(10, every=5, emit_empty=True)),
    "cumulate offset": (w.cumulate(20, 10), w.cumulate(20, 10, offset=1)),
    "cumulate empty": (w.cumulate(20, 10), w.cumulate(20, 10, emit_empty=True)),
    "session length": (w.session(3), w.session(3, max_length=9)),
    "session measure": (w.session(3), w.session(3, measure="v")),
    "count every": (w.count(4), w.count(4, every=2)),
    "count partial": (w.count(4), w.count(4, emit_partial=True)),
    "band empty": (w.fixed_band(0, 10), w.fixed_band(0, 10, emit_empty=True)),
    "landmark empty": (w.landmark(0, 10), w.landmark(0, 10, emit_empty=True)),
    "calendar zone": (w.calendar("day"), w.calendar("day", tz="Europe/Berlin")),
    "calendar offset": (w.calendar("day"), w.calendar("day", offset="6 hours")),
    "calendar empty": (w.calendar("day"), w.calendar("day", emit_empty=True)),
    "last offset": (w.last(2, every=10), w.last(2, every=10, offset=3)),
    "slide every": (w.slide_by_tuple(10, every=2), w.slide_by_tuple(10, every=3)),
    "threshold count": (w.threshold("v > 1"), w.threshold("v > 1", min_count=2)),
    "punctuation measure": (w.punctuation("v > 1"), w.punctuation("v > 1", measure="v")),
    "delta by": (w.delta("v", by=1), w.delta("v", by=2)),
    "boundary measure": (w.boundary("v", step=1), w.boundary("v", step=1, measure="v")),
    "until limit": (w.until(a.sum("v"), 5), w.until(a.sum("v"), 6)),
    "own empty": (Weekly(), WeeklyToo()),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_of_a_window_is_told(option: str) -> None:
    plain, other = (str(query({"x": window}).explain(verbose=True)) for window in OPTIONS[option])
    assert plain != other


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ({}, "allowed lateness: 0\n"),
        ({"allowed_lateness": 5}, "allowed lateness: 5\n"),
        ({}, "early results: none\n"),
        ({"early": mt.each_batch()}, "early results: after each batch\n"),
        ({"early": mt.every(7)}, "early results: whenever the watermark passes a multiple of 7\n"),
        ({}, "late tuples: counted and dropped\n"),
        ({"late": "route"}, "late tuples: counted and routed\n"),
        ({}, "bad tuples: an error\n"),
        ({"bad": "skip"}, "bad tuples: counted and skipped\n"),
        ({"bad": "route"}, "bad tuples: counted and routed\n"),
        ({}, "a silent stream: stays open\n"),
        ({"idle_after": "30 seconds"}, "a silent stream: closes its windows after 30 seconds\n"),
    ],
)
def test_every_policy_is_told(policies: dict[str, Any], words: str) -> None:
    assert words in str(query({"x": w.tumbling(10)}, **policies).explain(verbose=True))


def test_keys_that_are_held_for_ever_are_told_with_the_cure() -> None:
    shape = mt.windows(x=w.count(3), y=w.tumbling(10), z=w.tumbling(10, emit_empty=True))
    shape = shape.aggregate(n=a.count())
    assert "silent keys" not in str(shape.on("t").explain(verbose=True))  # all tuples have one key
    words = str(shape.by("k").on("t").explain(verbose=True))
    assert "silent keys: held for ever by x, z, so memory grows with the number of keys; forget_" in words
    words = str(shape.by("k").on("t", forget_keys_after=50).explain(verbose=True))
    assert "silent keys: forgotten 50 after their last tuple, when open windows of x, z close" in words
    assert "held for ever" not in words


def test_keys_that_windows_forget_by_themselves_are_told() -> None:
    shape = mt.windows(x=w.tumbling(10), y=w.session(5), z=w.slide_by_tuple(10, every=1))
    words = str(shape.aggregate(n=a.count()).by("k").on("t").explain(verbose=True))
    assert "silent keys: forgotten when the windows around their tuples are over" in words


def test_landmarks_hold_their_keys_in_any_case() -> None:
    shape = mt.windows(x=w.landmark(0, every=10)).aggregate(n=a.count()).by("k")
    for policies in ({}, {"forget_keys_after": 50}):
        words = str(shape.on("t", **policies).explain(verbose=True))
        assert "silent keys: held for ever by x, whose windows hold all tuples since their start" in words


def test_time_and_keys_are_told() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count())
    assert "time: t\n  keys: none\n" in str(shape.on("t").explain(verbose=True))
    assert "time: ts\n  keys: shop, city\n" in str(shape.by("shop", "city").on("ts").explain(verbose=True))


DAILY = {"minute": w.tumbling("1 minute"), "visit": w.session("30 seconds"), "hundred": w.count(100)}
SUMMARIES: list[tuple[str, Any, dict[str, Any], tuple[str, str, str]]] = [
    (
        "one window",
        query({"x": w.tumbling(10)}),
        {},
        (
            "1 aggregate over 1 window (x) from slices: 0.1 a unit of time",
            "slices, no tuples",
            "a window when the watermark reaches its end; late tuples are counted and dropped",
        ),
    ),
    (
        "all of it",
        query(DAILY, {"n": a.count(), "p": a.median("v")}, allowed_lateness="1 hour", late="route").by(
            "k", "j"
        ),
        {},
        (
            (
                "2 aggregates over 3 windows (minute, visit, hundred) from shared slices per k, j: "
                "1 a minute, one more after each silence above 30 seconds, "
                "one more at each edge of hundred"
            ),
            (
                "slices; tuples while they can change windows of hundred; values of tuples for p; "
                "every key for ever, for hundred (forget_keys_after= limits it)"
            ),
            (
                "a window when the watermark reaches its end; late tuples change it for 1 hour more, "
                "then they are counted and routed"
            ),
        ),
    ),
    (
        "in order, forgetting keys",
        query({f"w{i}": w.count(i) for i in range(1, 9)}, forget_keys_after=7, early=mt.every(5)).by("k"),
        {"in_order": True},
        (
            (
                "1 aggregate over 8 windows (w1, w2, w3, w4, w5, w6 and 2 more) from shared slices per k: "
                "one at each edge of w1, w2, w3, w4, w5, w6, w7, w8"
            ),
            "slices, no tuples; silent keys for 7",
            (
                "a window when a tuple reaches its end, and early results every 5; "
                "a tuple out of order is an error"
            ),
        ),
    ),
    (
        "an order that matters, a landmark",
        query({"x": w.landmark(0, 10)}, ORDERED, early=mt.each_batch(), forget_keys_after=7).by("k"),
        {},
        (
            "1 aggregate over 1 window (x) from slices per k: one between two edges of windows",
            "slices, with every lifted tuple for words; silent keys for 7, but with x for ever",
            (
                "a window when the watermark reaches its end, and early results after each batch; "
                "late tuples are counted and dropped"
            ),
        ),
    ),
]


@pytest.mark.parametrize(
    ("shape", "options", "lines"), [s[1:] for s in SUMMARIES], ids=[s[0] for s in SUMMARIES]
)
def test_it_begins_with_three_lines_for_users(shape: Any, options: Any, lines: tuple[str, str, str]) -> None:
    shown = shape.explain(**options)
    assert tuple(text for _, text in shown.summary) == lines
    printed = str(shown).splitlines()
    assert [line.split()[0] for line in printed[:3]] == ["computes", "keeps", "emits"]
    assert all(text in line for text, line in zip(lines, printed, strict=False))
    assert len(printed) == 4
    assert str(shape.explain(**options, verbose=True)).splitlines()[:3] == printed[:3]


def test_a_notebook_shows_the_lines_and_folds_the_decisions() -> None:
    shown = query({"x": w.punctuation(mt.col("v") < 1)}).explain()._repr_html_()
    assert shown.startswith("<table><tbody><tr>")
    assert "<details><summary>every decision and its reason</summary><pre>query\n" in shown
    assert "v &lt; 1" in shown
    assert "v < 1" not in shown
