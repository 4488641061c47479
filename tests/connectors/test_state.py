"""The state of a key group: what is written, what stays, and which other queries can go on from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark import table_parts
from muntin.connectors.spark.group_state import (
    SMALL_PARTS,
    blank_operator,
    read,
    restore,
    write,
)
from muntin.connectors.spark.migration import asked_for
from muntin.connectors.spark.step import Given, step
from muntin.connectors.spark.stored_query import WINDOWS
from muntin.connectors.spark.stream_stats import COUNTERS, counted
from muntin.connectors.spark.table_parts import DIGEST, Part, from_body, plain_of
from muntin.errors import SnapshotError
from muntin.slicing.snapshots.archive import VERSION
from muntin.slicing.snapshots.snapshot import current_spec
from muntin.timeline import INF

sys.path.insert(0, str(Path(__file__).parent))
from key_group import KeyGroup  # beside this file, not installed

QUERIES = f"{WINDOWS}#"
SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])


def query(**windows: Any) -> mt.Query:
    return mt.windows(**windows).aggregate(total=a.sum("v"), p=a.median("v")).by("k").on("t")


@pytest.mark.parametrize("window", [w.sliding(10_000, every=10), w.sliding(10_000, every=10, offset=3)])
def test_bytes_written_stay_flat_while_the_state_grows(window: Any) -> None:
    group = KeyGroup(query(q=window), SCHEMA)
    written, stored = [], []
    for batch in range(30):
        times = range(batch * 100, batch * 100 + 100)
        group.step([(f"key {i % 40}", t, i % 7) for t in times for i in range(40)], watermark=batch * 100)
        written.append(group.written)
        stored.append(sum(map(len, group.parts.values())))
    assert stored[29] > 3 * stored[5]
    # Now and then the parts become longer, and all are written; not more often than the state doubles.
    assert median(written[20:]) < 1.2 * median(written[5:15])
    assert sum(size > stored[i] / 3 for i, size in enumerate(written) if i > 3) <= 3


def plain_parts(group: KeyGroup) -> dict[str, bytes]:
    """The rows of each part, not compressed."""
    return {path: bytes(plain_of(body)) for path, body in group.parts.items()}


def growing(group: KeyGroup, batches: int, keys: int = 50) -> Iterator[KeyGroup]:
    """The same amount of tuples again and again, behind those of before."""
    for batch in range(batches):
        times = range(batch * 60, batch * 60 + 60)
        group.step([(f"key {i}", t, i % 7) for t in times for i in range(keys)], watermark=batch * 60)
        yield group


def late(**windows: Any) -> mt.Query:
    """All slices stay: tuples may come very late."""
    return mt.windows(**windows).aggregate(total=a.sum("v")).by("k").on("t", allowed_lateness=10**6)


def test_bytes_written_are_the_same_with_twenty_times_the_state() -> None:
    group = KeyGroup(late(q=w.tumbling(1)), SCHEMA, warm=True)
    steps = [
        (sum(map(len, plain_parts(g).values())), g.written, g.trips, len(g.head or b""))
        for g in growing(group, 110)
    ]
    stored, written, trips, heads = zip(*steps, strict=True)
    assert stored[-1] > 20 * stored[4] > 20 * 300_000
    # Once there are a few parts of 64 kB, no step writes more than its own tuples and those next to them.
    assert mean(written[-20:]) < 1.1 * mean(written[5:15])
    assert max(written[5:]) < 1.5 * mean(written[5:])
    assert max(trips[5:]) <= 8
    assert heads[-1] < heads[4] + 100
    assert len(group.parts) > 100


def test_a_small_table_does_not_make_the_parts_of_a_large_one_long() -> None:
    # Sessions are few, and reach as far back as the slices and tuples beside them.
    windows = {"second": w.tumbling(1), "session": w.session(5, max_length=600)}
    group = KeyGroup(late(**windows), SCHEMA, warm=True)
    *_, group = growing(group, 40)
    sizes: dict[str, list[int]] = {}
    for path, body in plain_parts(group).items():
        sizes.setdefault(path.rpartition("#")[0], []).append(len(body))
    assert len(sizes["emitted/session"]) <= 5
    assert sum(sizes["emitted/session"]) < 50_000
    assert sum(sizes["slices"]) > 1_000_000
    assert sum(sizes["tuples"]) > 1_000_000
    assert max(sizes["slices"] + sizes["tuples"]) < 200_000


FOLLOWING = {
    "count": w.count(10),
    "capped": w.session(5, max_length=20),
    "threshold": w.threshold("v > 3"),
    "delta": w.delta("v", by=4),
    "last": w.last(5, every=10),
    "measured": w.tumbling(15, measure="v"),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_windows_that_follow_tuples_write_no_more_when_there_are_many(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_parts, "PART_BYTES", 1 << 13)  # so that all tables have many parts soon
    schema = SCHEMA.set(2, pa.field("v", pa.float64()))
    group = KeyGroup(late(q=FOLLOWING[name]), schema, warm=True)
    written, stored = [], []
    for batch in range(80):
        times = range(batch * 60, batch * 60 + 60)
        rows = [
            (f"key {i}", t, t + 0.5 if name == "measured" else t * 7 % 11) for t in times for i in range(9)
        ]
        group.step(rows, watermark=batch * 60)
        written.append(group.written)
        stored.append(sum(map(len, group.parts.values())))
    assert stored[-1] > 3 * stored[19]
    assert mean(written[-20:]) < 1.15 * mean(written[10:30])
    again = read(group.head or b"", group.parts, group.query, schema=group.schema)
    (rest,) = step(again, group.job, Given(watermark=INF))
    assert sorted(map(str, rest.to_pylist())) == sorted(map(str, group.step(watermark=INF)))


def test_a_key_that_goes_on_does_not_write_what_there_is_of_all_others() -> None:
    group = KeyGroup(late(c=w.count(10)), SCHEMA, warm=True)
    group.step([(f"key {i}", 0, 1) for i in range(20_000)], watermark=0)
    group.step([("key 1", 1, 1)], watermark=1)
    group.step([("key 1", 2, 1)], watermark=2)
    known = {"keys", "progress", "contexts"}
    sizes = [
        len(body) for path, body in group.parts.items() if path.partition("#")[0].partition("/")[0] in known
    ]
    assert len(sizes) > 12
    assert group.written < sum(sizes) / 2


MANY = {
    "tumbling": (5_000, {"window": w.tumbling}),
    "remembered": (300, {"window": w.session, "allowed_lateness": 50}),
}


@pytest.mark.parametrize("name", MANY)
def test_windows_that_do_not_change_are_not_written_again(name: str) -> None:
    number, given = MANY[name]
    window, policies = given["window"], {k: v for k, v in given.items() if k != "window"}
    many = mt.windows(**{f"w{i}": window(10_000 + i) for i in range(number)}).aggregate(total=a.sum("v"))
    group = KeyGroup(many.by("k").on("t", **policies), SCHEMA, warm=True)
    written = []
    for time in range(6):  # no window completes
        group.step([("a", time, 1), ("b", time, 2)], watermark=time)
        written.append(group.written)
    assert written[0] > 100_000  # the query, and the windows that are served
    assert max(written[1:]) < 2_100
    assert group.trips == 2  # the head, and the slices
    group.warm = None  # another worker goes on
    group.step([("a", 6, 1), ("b", 6, 2)], watermark=6)
    assert group.written < 2_100
    totals = [row["total"] for row in group.step(watermark=INF)]
    assert sorted(totals) == [7] * number + [14] * number


def test_late_tuples_of_each_window_outlive_a_restart() -> None:
    group = KeyGroup(query(ten=w.tumbling(10), five=w.tumbling(5), thirty=w.tumbling(30)), SCHEMA)
    group.step([("a", 1, 1), ("a", 22, 2)], watermark=20)
    assert not any(path.startswith("late_counts") for path in group.parts)
    group.step([("a", 3, 4), ("a", 24, 1)], watermark=25)
    assert group.load().operator.state.late_counts == {"ten": 1, "five": 1, "thirty": 0}
    group.step([("a", 25, 1)], watermark=26)
    assert group.load().operator.state.late_counts == {"ten": 1, "five": 1, "thirty": 0}


def test_what_was_read_is_not_written_again() -> None:
    group = KeyGroup(late(q=w.tumbling(1), c=w.count(7)), SCHEMA)
    *_, group = growing(group, 6)
    assert len(group.parts) > 15
    stored = group.load()
    again = write(stored)
    assert not again.changed
    assert not again.gone
    assert stored.nbytes == sum(map(len, group.parts.values()))


def test_rows_of_a_part_are_aligned() -> None:
    group = KeyGroup(late(q=w.tumbling(1)), SCHEMA)
    *_, group = growing(group, 1)
    columns = [c for body in group.parts.values() for c in from_body(body)[1].columns if len(c)]
    found = [buffer for column in columns for buffer in column.chunk(0).buffers() if buffer is not None]
    assert {buffer.address % 8 for buffer in found} == {0}


def test_times_before_zero_and_gaps_have_parts_too() -> None:
    group = KeyGroup(late(q=w.tumbling(1)), SCHEMA)
    for begin in (-500, -300, 0, 300):
        group.step([(f"key {i}", begin + i % 60, 1) for i in range(6000)], watermark=-1000)
    rows = group.step(watermark=INF)
    assert sum(row["total"] for row in rows) == 24_000


def test_a_small_state_is_written_in_few_parts() -> None:
    # Each part is a round trip between Python and the state store.
    group = KeyGroup(query(q=w.sliding(60, every=1)), SCHEMA)
    trips = []
    for batch in range(20):
        times = range(batch * 100, batch * 100 + 100)
        group.step([(key, t, t % 7) for t in times for key in "abcd"], watermark=batch * 100)
        timed = [path for path in group.parts if not path.endswith("#") and not path.startswith("keys")]
        assert 1 <= len(timed) <= 4
        trips.append(group.trips)
    assert max(trips) <= 12
    assert median(trips) <= 6


def test_parts_become_shorter_again() -> None:
    group = KeyGroup(query(q=w.sliding(1000, every=1)), SCHEMA)
    group.step([("a", 0, 1), ("a", 10_000_000, 1)], watermark=9_000_000)  # a tuple of long ago
    for batch in range(12):
        begin = 10_000_000 + batch * 100
        rows = [(f"key {i}", t, 1) for t in range(begin, begin + 100) for i in range(40)]
        group.step(rows, watermark=begin)
    # A micro-batch brings a tenth of what is stored, and so writes a small part of it.
    assert group.written < sum(map(len, group.parts.values())) / 2


@pytest.mark.parametrize(
    "windows",
    [{"q": w.tumbling(10)}, {"q": w.session(3)}, {"q": w.tumbling(10), "low": w.threshold("v >= 0")}],
    ids=["slices", "sessions", "kept tuples"],
)
def test_finished_keys_leave_no_state(windows: Any) -> None:
    group = KeyGroup(query(**windows), SCHEMA)
    sizes = []
    for batch in range(40):
        # A thousand keys that are never seen again.
        rows = [(f"key {batch} {i}", batch * 10, i) for i in range(1000)]
        rows += [(f"key {batch} {i}", batch * 10 + 1, -1) for i in range(1000)]
        group.step(rows, watermark=batch * 10)
        sizes.append(sum(map(len, plain_parts(group).values())))
    assert max(sizes[20:]) < 1.5 * max(sizes[5:20])
    group.step([("the last one", 1_000, 1)], watermark=900)
    group.step([("the last one", 1_001, 1)], watermark=1_000)
    left = b"".join(plain_parts(group).values())
    assert b"the last one" in left
    assert len(left) < max(sizes) / 20


def test_a_late_tuple_is_counted_once() -> None:
    group = KeyGroup(query(ten=w.tumbling(10), five=w.tumbling(5), thirty=w.tumbling(30)), SCHEMA)
    group.step([("a", 1, 1), ("a", 22, 2)], watermark=20)
    group.step([("a", 3, 4), ("b", 4, 5), ("a", 24, 1)], watermark=25)  # too late for two of three
    assert dict(zip(COUNTERS, counted(group.load(), 0).split(","), strict=True))["late"] == "2"


def test_a_window_that_is_new_starts_behind_the_newest_tuple_of_the_checkpoint() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1), ("a", 12, 2)], watermark=5)
    group.use(query(ten=w.tumbling(10), five=w.tumbling(5)))
    rows = group.step([("a", 13, 4), ("a", 16, 8)], watermark=100)
    assert [(r["window_name"], r["window"]["start"], r["total"]) for r in rows] == [
        ("ten", 0, 1),
        ("ten", 10, 14),
        ("five", 15, 8),
    ]


WIDER = SCHEMA.append(pa.field("p", pa.int64()))


def fives(record: Any) -> tuple[int, int]:
    return (1, 0) if record["p"] == 5 else (0, 1)


@pytest.mark.parametrize("before", [{}, {"c": w.count(2)}], ids=["slices", "kept tuples"])
@pytest.mark.parametrize("new", [w.threshold("p > 3"), w.discretize(fives)], ids=["column", "record"])
def test_a_new_window_may_read_a_column_that_none_read_before(before: Any, new: Any) -> None:
    group = KeyGroup(query(ten=w.tumbling(10), **before), SCHEMA)
    group.step([("a", 1, 1), ("a", 12, 2)], watermark=5)
    group.use(query(ten=w.tumbling(10), **before, new=new), WIDER)
    # Each step reads the state again, with tuples of before and behind the change.
    rows = group.step([("a", 13, 4, 5), ("a", 14, 8, 5)], watermark=10)
    rows += group.step([("a", 15, 16, 0), ("a", 16, 32, 1)], watermark=100)
    totals = {name: [r["total"] for r in rows if r["window_name"] == name] for name in ("ten", "c", "new")}
    assert totals["ten"] == [1, 62]
    assert totals["c"] == ([3, 12, 48] if before else [])
    assert totals["new"][0] == 12


def test_a_running_change_may_read_a_column_that_is_new_in_the_input() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1)], watermark=0)
    group.use(group.query, WIDER)
    change = '1.toml\n[windows.high]\ntype = "threshold"\npredicate = "p > 3"'
    rows = group.step([("a", 2, 2, 5), ("a", 3, 4, 0)], changes=(change,), watermark=100)
    assert [(r["window_name"], r["total"]) for r in rows] == [("high", 2), ("ten", 7)]


def test_a_column_that_nothing_reads_may_change_its_type() -> None:
    group = KeyGroup(query(ten=w.tumbling(10), high=w.threshold("p > 3")), WIDER)
    group.step([("a", 1, 1, 1)], watermark=0)
    group.use(query(ten=w.tumbling(10)), WIDER)
    group.step([("a", 2, 2, 9)], watermark=0)
    group.use(query(ten=w.tumbling(10), x=w.threshold("p == 'x'")), SCHEMA.append(pa.field("p", pa.string())))
    rows = group.step([("a", 3, 4, "x"), ("a", 4, 8, "y")], watermark=100)
    assert {r["window_name"]: r["total"] for r in rows} == {"ten": 15, "x": 4}


def waiting_late(extra: pa.Field | None = None) -> KeyGroup:
    """A key group whose state has a late tuple that the next watermark judges; it is routed then."""
    one = mt.windows(q=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t", late="route")
    group = KeyGroup(one, SCHEMA if extra is None else SCHEMA.append(extra))
    more = () if extra is None else (0.5,)
    group.step([("a", 35, 1, *more)], watermark=30)
    group.step([("a", 5, 2, *more)])
    return group


def test_a_late_tuple_waits_while_a_column_is_added() -> None:
    group = waiting_late()
    group.use(group.query, SCHEMA.append(pa.field("x", pa.float64())))
    (row,) = group.step(watermark=31)
    assert row["kind"] == "late"
    assert row["late"] == {"k": "a", "t": 5, "v": 2, "x": None}


def test_a_late_tuple_that_does_not_fit_a_changed_column_is_an_error_with_a_cure() -> None:
    group = waiting_late(pa.field("x", pa.float64()))
    group.use(group.query, SCHEMA.append(pa.field("x", pa.int64())))
    with pytest.raises(SnapshotError, match=r"late tuples in the checkpoint do not fit .* cast the columns"):
        group.step(watermark=31)


def test_a_window_that_is_gone_or_another_one_is_replaced() -> None:
    group = KeyGroup(query(ten=w.tumbling(10), gone=w.session(3)), SCHEMA)
    group.step([("a", 1, 1), ("a", 12, 2)], watermark=5)
    group.use(query(ten=w.tumbling(20)))
    rows = group.step([("a", 23, 4)], watermark=100)
    assert [(r["window_name"], r["window"]["start"], r["total"]) for r in rows] == [("ten", 20, 4)]


def test_a_window_of_a_running_change_outlives_a_restart() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step(changes=('1.toml\n[windows.five]\ntype = "tumbling"\nlength = 5',))
    group.use(query(ten=w.tumbling(10)))
    assert {r["window_name"] for r in group.step([("a", 1, 1)], watermark=10)} == {"five", "ten"}
    group.use(query(ten=w.tumbling(10), two=w.tumbling(2)))
    assert {r["window_name"] for r in group.step([("a", 30, 1)], watermark=40)} == {"five", "ten", "two"}


def other(**changed: Any) -> mt.Query:
    given: dict[str, Any] = {
        "keys": ("k",),
        "time": "t",
        "aggregates": {"total": a.sum("v"), "p": a.median("v")},
    }
    given |= changed
    policies = given.get("policies", {})
    return (
        mt.windows(ten=w.tumbling(10)).aggregate(**given["aggregates"]).by(*given["keys"]).on("t", **policies)
    )


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"aggregates": {"total": a.max("v"), "p": a.median("v")}}, r"aggregate total was sum.* and is max"),
        ({"aggregates": {"total": a.sum("v")}}, r"aggregate p .*is gone"),
        ({"aggregates": {"p": a.median("v"), "total": a.sum("v")}}, r"order of the aggregates"),
        ({"keys": ()}, r'keys \["k"\] became \[\]'),
        ({"policies": {"allowed_lateness": 5}}, r"allowed_lateness \(5\) is new"),
        ({"policies": {"late": "route"}}, r'late \("route"\) is new'),
    ],
)
def test_another_query_is_refused_with_what_changed(changed: dict[str, Any], named: str) -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1)])
    before = group.head, dict(group.parts)
    group.use(other(**changed))
    with pytest.raises(SnapshotError, match=named):
        group.step([("a", 2, 1)])
    assert (group.head, group.parts) == before


def test_policies_that_no_state_depends_on_may_change() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1)])
    group.use(other(policies={"idle_after": "1 second", "bad": "skip"}))
    assert len(group.step([("a", 2, 1), ("a", None, 1)], watermark=10)) == 1
    timed = mt.windows(m=w.tumbling("1 minute")).aggregate(n=a.count())
    assert asked_for(timed.on("t", max_ahead="1 hour")) == asked_for(timed.on("t"))


def evens(record: Any) -> tuple[int, int]:
    return (1, 0) if record["v"] % 2 == 0 else (0, 1)


def test_a_window_in_python_that_is_gone_is_refused() -> None:
    group = KeyGroup(query(ten=w.tumbling(10), mine=w.discretize(evens)), SCHEMA)
    group.step([("a", 1, 1)])
    group.use(query(ten=w.tumbling(10), mine=w.discretize(evens), five=w.tumbling(5)))
    group.step([("a", 2, 1)])
    group.use(query(ten=w.tumbling(10)))
    with pytest.raises(SnapshotError, match='serves the window "mine"'):
        group.step([("a", 3, 1)])


def test_another_number_of_key_groups_is_refused() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1)])
    assert group.head is not None
    with pytest.raises(SnapshotError, match=r'spark.conf.set\("spark.sql.shuffle.partitions", "1"\)'):
        read(group.head, group.parts, group.query, groups=4)


def test_input_of_other_types_is_refused() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1)], watermark=0)
    group.use(group.query, SCHEMA.set(2, pa.field("v", pa.float64())))
    with pytest.raises(SnapshotError, match='"v" is double, and was int64 when the checkpoint was written'):
        group.step([("a", 2, 0.75)], watermark=0)
    group.use(group.query, SCHEMA)
    assert [row["total"] for row in group.step([("a", 2, 7)], watermark=10)] == [8]


def test_an_unknown_format_is_refused() -> None:
    group = KeyGroup(query(ten=w.tumbling(10)), SCHEMA)
    group.step([("a", 1, 1)])
    assert group.head is not None
    group.head = group.head.replace(b'"version": %d' % VERSION, b'"version": 99')
    with pytest.raises(SnapshotError, match="format version 99"):
        group.step([("a", 2, 1)])


def without_text(group: KeyGroup) -> KeyGroup:
    """The group with a state of before its query was written as text."""
    _, table = from_body(group.parts[QUERIES])
    queries = json.loads(table.column("queries")[0].as_py())
    del queries["text"]
    older = pa.table({"queries": pa.array([json.dumps(queries).encode()])})
    group.parts[QUERIES] = Part(QUERIES, "older", older).body()
    return group


def test_a_state_restores_without_the_program() -> None:
    group = KeyGroup(query(q=w.tumbling(10), c=w.count(3)).on("t", max_windows=7, bad="skip"), SCHEMA)
    group.step([("a", 3, 1), ("b", 4, 2), ("a", 12, 4)], watermark=5)
    group.use(query(half=w.tumbling(5)))  # a program that asks for another window, and has not run yet
    assert group.head is not None
    operator = restore(group.head, group.parts)
    stored = read(group.head, group.parts, query(q=w.tumbling(10), c=w.count(3)), schema=group.schema)
    assert [served.name for served in operator.served.all] == ["q", "c"]
    assert operator.state.watermark == stored.operator.state.watermark == 4  # tuples of one time may follow
    assert operator.state.slices.to_arrow() == stored.operator.state.slices.to_arrow()
    blank = blank_operator({path: group.parts[path] for path in SMALL_PARTS})
    assert current_spec(blank) == current_spec(operator)
    assert not len(blank.state.slices)
    assert blank.plan is not None
    assert blank.plan.results.schema == stored.operator.nothing().schema


def fives_of(value: float) -> float:
    return value // 5


def test_a_state_that_cannot_hold_its_query_asks_for_it() -> None:
    own = a.aggregate("v", lift=fives_of, combine=max)
    asked = mt.windows(q=w.tumbling(10)).aggregate(own=own).by("k").on("t")
    group = KeyGroup(asked, SCHEMA)
    group.step([("a", 3, 12)])
    assert group.head is not None
    with pytest.raises(SnapshotError, match=r"pass the query of the program: .*query=query"):
        restore(group.head, group.parts)
    assert len(restore(group.head, group.parts, asked).state.slices) == 1
    with pytest.raises(SnapshotError, match="the checkpoint is of another query"):
        restore(group.head, group.parts, query(q=w.tumbling(10)))


def test_an_older_state_without_the_text_of_its_query_gets_it() -> None:
    group = KeyGroup(query(q=w.tumbling(10)), SCHEMA)
    group.step([("a", 3, 1)])
    without_text(group)
    assert group.head is not None
    with pytest.raises(SnapshotError, match="of an older version of Muntin"):
        restore(group.head, group.parts)
    group.step([("a", 4, 1)])
    assert len(restore(group.head, group.parts).state.slices) == 1


def test_parts_are_compressed_and_cannot_claim_any_size() -> None:
    group = KeyGroup(late(q=w.tumbling(1)), SCHEMA)
    *_, group = growing(group, 3)
    path, body = max(group.parts.items(), key=lambda item: len(item[1]))
    assert len(body) < len(plain_of(body)) / 3
    huge = body[:DIGEST] + (1 << 40).to_bytes(8, "big") + body[DIGEST + 8 :]
    with pytest.raises(SnapshotError, match="bytes cannot hold a part of 1099511627776 bytes"):
        read(group.head or b"", group.parts | {path: huge}, group.query, schema=group.schema)
