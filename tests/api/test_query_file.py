"""Queries as TOML files: what is written reads back, and mistakes are named."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError
from muntin.query_file import loads

SPANS = st.one_of(
    st.integers(1, 10**9).map(lambda n: f"{n} us"),
    st.tuples(st.integers(1, 500), st.sampled_from(["ms", "seconds", "minutes", "hours", "days"])).map(
        lambda pair: f"{pair[0]} {pair[1]}"
    ),
)
COUNTS = st.integers(1, 10_000)
NAMES = st.text(min_size=1, max_size=8).filter(
    lambda name: name not in ("window_name", "window", "kind", "revision")
)
COLUMNS = st.sampled_from(["amount", "unit price", "ümsatz", 'a"b'])
INPUTS = st.one_of(COLUMNS, st.sampled_from([mt.col("price") * 2, mt.col("a b") + 0.5]))
PREDICATES = st.sampled_from([mt.col("price") < 10, mt.col("side") == 'b"uy', mt.col("x").is_null()])
STARTS = st.sampled_from(["2024-01-31T12:00:00", "1969-12-31T23:59:59.999999+00:00"])

ONE_COLUMN = [
    a.bit_and, a.bit_or, a.bit_xor, a.geometric_mean, a.kurtosis, a.max_count, a.min_count, a.skewness,
]  # fmt: skip
RESULTS = st.sampled_from(["estimate", "bytes"])

AGGREGATES = st.one_of(
    st.just(a.count()),
    INPUTS.map(a.count),
    INPUTS.map(a.sum),
    INPUTS.map(a.min),
    INPUTS.map(a.max),
    INPUTS.map(a.mean),
    INPUTS.map(a.variance),
    INPUTS.map(a.stddev),
    INPUTS.map(a.first),
    INPUTS.map(a.last),
    INPUTS.map(a.collect),
    INPUTS.map(a.median),
    st.builds(a.quantile, INPUTS, st.floats(0, 1)),
    st.builds(a.percentiles, INPUTS, st.lists(st.floats(0, 1), min_size=1, max_size=3)),
    st.builds(a.approx_quantile, INPUTS, st.floats(0, 1), st.integers(8, 400)),
    st.builds(a.approx_count_distinct, INPUTS, st.integers(7, 21), result=RESULTS),
    st.builds(a.theta, INPUTS, result=RESULTS),
    INPUTS.map(a.frequent_items),
    st.builds(a.count_min, INPUTS, st.sampled_from([[1, 2], ["a", 'b"']]), st.floats(0.001, 0.5)),
    st.builds(a.bloom, INPUTS, COUNTS, st.floats(0.001, 0.5)),
    INPUTS.map(a.m4),
    st.builds(a.nth, INPUTS, COUNTS, st.booleans()),
    st.builds(lambda column, k, by: a.top_k(column, k, by=by), INPUTS, COUNTS, st.none() | INPUTS),
    st.builds(a.concat, INPUTS, st.sampled_from(["", ", ", '"'])),
    INPUTS.map(a.collect_set),
    INPUTS.map(a.count_distinct),
    st.builds(a.count_distinct, COLUMNS, COLUMNS, COLUMNS),
    INPUTS.map(a.mode),
    st.builds(a.histogram, INPUTS, COUNTS),
    st.builds(lambda column: a.histogram(column, edges=[-math.inf, 0, 2.5]), INPUTS),
    st.builds(lambda column, by: a.arg_min(column, by=by), INPUTS, INPUTS),
    st.builds(lambda column, by: a.arg_max(column, by=by), INPUTS, INPUTS),
    st.builds(lambda make, column: make(column), st.sampled_from(ONE_COLUMN), INPUTS),
    st.builds(lambda make, keep: make(keep), st.sampled_from([a.count_if, a.every, a.some]), PREDICATES),
    st.builds(a.weighted_mean, INPUTS, INPUTS),
    st.builds(a.naive_bayes, INPUTS, st.lists(COLUMNS, min_size=1, max_size=2)),
    st.builds(a.covariance, INPUTS, INPUTS, population=st.booleans()),
    st.builds(a.correlation, INPUTS, INPUTS),
    st.builds(lambda column, keep: a.sum(column, filter=keep), INPUTS, PREDICATES),
    st.builds(lambda keep: a.count(filter=keep), PREDICATES),
)
WINDOWS = st.one_of(
    SPANS.map(w.tumbling),
    st.builds(w.tumbling, SPANS, offset=SPANS),
    st.builds(lambda length, every: w.sliding(length, every=every), SPANS, SPANS),
    st.builds(lambda step, n: w.cumulate(f"{step * n} seconds", f"{step} seconds"), COUNTS, COUNTS),
    SPANS.map(w.session),
    st.just(w.session("10 seconds", max_length="1 minute")),
    COUNTS.map(w.count),
    st.builds(lambda n, every: w.count(n, every=every), COUNTS, COUNTS),
    st.builds(lambda n: w.tumbling(n, measure="km"), COUNTS),
    st.builds(lambda n: w.session(n, measure="unit price"), COUNTS),
    st.builds(lambda n: w.session(n, max_length=n + 0.5, measure="km"), COUNTS),
    st.builds(lambda step, n: w.cumulate(step * n, step, measure="km"), COUNTS, COUNTS),
    st.builds(w.fixed_band, STARTS, SPANS),
    st.builds(w.landmark, STARTS, SPANS),
    PREDICATES.map(w.punctuation),
    st.builds(w.threshold, PREDICATES, min_count=COUNTS),
    st.builds(w.delta, COLUMNS, st.floats(0.001, 1e6)),
    st.builds(w.boundary, COLUMNS, st.integers(1, 100)),
    st.builds(w.until, INPUTS.map(a.sum), st.integers(1, 100)),
    st.builds(w.until, INPUTS.map(a.max), st.dates() | st.datetimes() | st.text(max_size=3)),
    st.builds(lambda length, n: w.slide_by_tuple(length, every=n), SPANS, COUNTS),
    st.builds(lambda n, every: w.last(n, every=every), COUNTS, SPANS),
    st.builds(
        w.calendar,
        st.sampled_from(["day", "week", "month", "year"]),
        tz=st.sampled_from(["UTC", "Asia/Tokyo"]),
    ),
)


def _plain(windows: dict[str, Any]) -> bool:
    """Whether no tuple lies in very many windows."""
    return all(window.per_tuple <= 10_000_000 for window in windows.values())


@st.composite
def queries(draw: st.DrawFn) -> mt.Query:
    windows = draw(st.dictionaries(NAMES, WINDOWS, min_size=1, max_size=3))
    aggregates = draw(st.dictionaries(NAMES, AGGREGATES, min_size=1, max_size=3))
    keys = draw(st.lists(NAMES.filter(lambda name: name not in aggregates), max_size=2, unique=True))
    query = mt.windows(**windows).aggregate(**aggregates).by(*keys)
    return query.on(
        draw(NAMES),
        allowed_lateness=draw(st.one_of(st.just(0), SPANS)),
        early=draw(st.one_of(st.none(), st.just(mt.each_batch()), SPANS.map(mt.every))),
        late=draw(st.sampled_from(["drop", "route"])),
        bad=draw(st.sampled_from(["fail", "skip", "route"])),
        idle_after=draw(st.one_of(st.none(), SPANS)),
        max_ahead=draw(st.one_of(st.none(), SPANS)),
        max_windows=draw(st.none() if _plain(windows) else st.integers(2**62)),
        forget_keys_after=draw(st.one_of(st.none(), SPANS)),
    )


@given(queries())
def test_what_is_written_reads_back(query: mt.Query) -> None:
    text = query.to_toml()
    again = loads(text)
    assert again == query
    assert again.to_toml() == text
    assert again.fingerprint() == query.fingerprint()
    text.encode()


def test_every_constructor_is_covered() -> None:
    """A new window or aggregate without a line above would go unproved."""
    source = Path(__file__).read_text("utf-8")
    exempt = {"aggregate", "col", "discretize", "trigger"}  # Python functions, and Arrow's own
    for prefix, package in (("w", w), ("a", a)):
        for name in package.__all__:
            assert not name.islower() or name in exempt or f"{prefix}.{name}" in source


def test_integer_lengths_read_back() -> None:
    query = mt.windows(ten=w.tumbling(10), s=w.session(5)).aggregate(n=a.count())
    query = query.on("at", allowed_lateness=3, early=mt.every(2))
    assert loads(query.to_toml()) == query


EXAMPLE = """\
[stream]
time = "ts"
key = ["shop"]
allowed_lateness = "1 hour"

[windows.minute]
type = "tumbling"
length = "1 minute"

[aggregates.total]
function = "sum"
column = "amount"
"""


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    path.write_text(EXAMPLE, "utf-8")
    query = mt.load(path)
    assert query == (
        mt.windows(minute=w.tumbling("1 minute"))
        .aggregate(total=a.sum("amount"))
        .by("shop")
        .on("ts", allowed_lateness="1 hour")
    )
    assert mt.load(str(path)).to_toml() == EXAMPLE


def test_computed_columns_and_aggregates_in_windows() -> None:
    query = loads("""
        [stream]
        time = "ts"
        key = "shop"
        emit = "on_close"
        early = "each_batch"
        [windows.cheap]
        type = "threshold"
        predicate = 'price < 10 and side == "buy"'
        [windows.enough]
        type = "until"
        aggregate = { function = "sum", expression = "price * volume" }
        limit = 100
        [windows.since]
        type = "landmark"
        start = 2024-01-31T12:00:00Z
        every = "1 hour"
        [aggregates.turnover]
        function = "sum"
        expression = "price * volume"
        [aggregates.best]
        function = "arg_max"
        column = "customer"
        by_expression = "price * volume"
    """)
    turnover = mt.col("price") * mt.col("volume")
    assert query == (
        mt.windows(
            cheap=w.threshold((mt.col("price") < 10) & (mt.col("side") == "buy")),
            enough=w.until(a.sum(turnover), 100),
            since=w.landmark("2024-01-31T12:00:00", "1 hour"),
        )
        .aggregate(turnover=a.sum(turnover), best=a.arg_max("customer", by=turnover))
        .by("shop")
        .on("ts", early=mt.each_batch())
    )


def edited(old: str, new: str) -> str:
    assert old in EXAMPLE
    return EXAMPLE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "q.toml, [stream]: must be a table"),
        ("a = ", "q.toml is not valid TOML"),
        ("stream = 3", "q.toml, [stream]: must be a table"),
        (
            EXAMPLE + "[window.x]",
            'q.toml: unknown table "window"; use stream, windows, aggregates, input. Did you mean "windows"?',
        ),
        (edited("allowed_lateness", "alowed_lateness"), 'Did you mean "allowed_lateness"?'),
        (edited('"1 hour"', '"soon"'), "q.toml, [stream]: allowed_lateness must be a duration"),
        (edited('time = "ts"\n', ""), "the query has no time column"),
        (edited('time = "ts"', "time = 3"), "on() takes the name of the time column"),
        (edited('["shop"]', "[3]"), "key must be the name of a column or a list of names: got [3]"),
        (edited('["shop"]', "3"), "q.toml, [stream]: key must be the name of a column or a list of names"),
        (edited('["shop"]', '[""]'), "by() takes names of columns"),
        (edited('["shop"]', '["total"]'), "is a key column and an aggregate"),
        (edited('key = ["shop"]', 'emit = "always"'), 'emit must be "on_close"'),
        (edited('key = ["shop"]', 'early = "often"'), "early must be"),
        (edited('key = ["shop"]', 'bad = "skp"'), 'Did you mean "skip"?'),
        (edited('"tumbling"', '"tumblin"'), "q.toml, [windows.minute]: type 'tumblin' is not known"),
        (edited('"tumbling"', '"tumblin"'), 'Did you mean "tumbling"?'),
        (edited('"tumbling"', '"ContextFree"'), "is not known"),
        (edited('"tumbling"', '"base"'), "is not known"),
        (edited('"tumbling"', '["tumbling"]'), "is not known"),
        (edited('type = "tumbling"\n', ""), "type is missing; choose one of boundary, "),
        (edited("length", "lenght"), 'unknown key "lenght"; it takes length'),
        (edited("length", "lenght"), 'Did you mean "length"?'),
        (edited('length = "1 minute"\n', ""), 'tumbling needs the key "length"'),
        (edited('"1 minute"', '"0 minutes"'), "q.toml, [windows.minute]: length must be positive"),
        (edited('"1 minute"', "[1]"), "q.toml, [windows.minute]: length must be a duration"),
        (edited('"1 minute"', "{ a = 1 }"), "q.toml, [windows.minute.length]: function is missing"),
        (
            edited("[windows.minute]", "[windows]\nminute = 3\n[windows.x]"),
            "[windows.minute]: must be a table",
        ),
        (edited('"sum"', '"summ"'), "q.toml, [aggregates.total]: function 'summ' is not known"),
        (edited('"sum"', '"__import__"'), "is not known"),
        (edited("column =", "colum ="), 'Did you mean "column"?'),
        (edited("column =", "expression ="), None),
        (edited('column = "amount"', 'expression = "amount +"'), "q.toml, [aggregates.total]: cannot read"),
        (edited('column = "amount"', "expression = 3"), "must be a text like"),
        (edited('column = "amount"', 'column = "a"\nexpression = "b"'), "is given twice"),
        (edited('column = "amount"', 'by_expression = "b"'), 'unknown key "by_expression"'),
        (edited("[aggregates.total]", "[aggregates.window]"), "has the name of a result column"),
        (
            edited('type = "tumbling"\nlength = "1 minute"', 'type = "discretize"\nfunction = "os.system"'),
            "takes a Python function",
        ),
    ],
)
def test_mistakes_are_named(text: str, words: str | None) -> None:
    if words is None:
        loads(text, "q.toml")
        return
    with pytest.raises(QueryError) as error:
        loads(text, "q.toml")
    assert words in str(error.value)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(QueryError, match="is not a text in UTF-8"):
        mt.load(path)


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "queries.toml").write_text(EXAMPLE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError, match=r'there is no file /.*/querys\.toml; .*Did you mean "queries.toml"'):
        mt.load("querys.toml")
    with pytest.raises(FileNotFoundError):
        mt.load("querys.toml")
    with pytest.raises(QueryError, match=r"there is no file /.*/no/such/querys\.toml; give the path"):
        mt.load("no/such/querys.toml")
    with pytest.raises(QueryError, match=r"cannot read .*: Is a directory; give the path of a query file"):
        mt.load(tmp_path)


def _discretize(record: Any) -> tuple[int, int]:
    return 1, 1


def test_python_functions_stay_in_python() -> None:
    query = mt.windows(mine=w.discretize(_discretize)).aggregate(n=a.count()).on("ts")
    with pytest.raises(QueryError, match=r'windows "mine": .*function'):
        query.to_toml()


def test_aggregates_of_python_functions_stay_in_python() -> None:
    mine = a.aggregate("x", lift=float, combine=float.__add__)
    query = mt.windows(minute=w.tumbling("1 minute")).aggregate(mine=mine).on("ts")
    with pytest.raises(QueryError, match=r'aggregates "mine": .*user-defined'):
        query.to_toml()


def test_arrow_expressions_beyond_the_language_stay_in_python() -> None:
    query = mt.windows(minute=w.tumbling("1 minute")).on("ts")
    with pytest.raises(QueryError, match=r'aggregates "n": .*no text form'):
        query.aggregate(n=a.sum(mt.col("x").cast("int8"))).to_toml()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'alowed_lateness = "1 hour"',
            'query, [stream]: unknown key "alowed_lateness"; use time, key',
        ),
        (
            'early = "each_btach"',
            'query, [stream]: early must be "each_batch" or a duration like',
        ),
        ('late = "rout"', 'query, [stream]: late must be "drop" or "route": got'),
    ],
)
def test_a_mistake_in_the_stream_is_told_once_with_the_nearest_name(line: str, words: str) -> None:
    text = f"""
[stream]
time = "t"
{line}
[windows.x]
type = "count"
n = 3
[aggregates.n]
function = "count"
"""
    with pytest.raises(QueryError) as error:
        loads(text)
    assert str(error.value).startswith(words)
    assert "Did you mean" in str(error.value)
