"""A stream that the page plays: its steps, changes of its query, and what it remembers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.command_line.settings import InputSettings
from muntin.dashboard.feeds import Feed, flights_feed, of_batches, of_files, of_transcripts
from muntin.dashboard.frames import Frames, View
from muntin.dashboard.history import MOST_KEYS, MOST_RESULTS, MOST_SAMPLES, MOST_TUPLES, History
from muntin.dashboard.live_stream import LiveStream
from muntin.dashboard.recent_rows import RecentRows
from muntin.dashboard.shown_stream import MOST_NOTES
from muntin.dashboard.zoomed_lines import COLUMNS, LEVELS, MOST_CHANGEABLE, ZoomedLines
from muntin.errors import QueryError
from muntin.testing.transcript_files import Step
from tests.dashboard.streams import MINUTE, TRANSCRIPT, batch, endless, failing, query


def played(steps: int, behind: int = 5) -> LiveStream:
    stream = LiveStream([endless(behind=behind)])
    for _ in range(steps):
        stream.step()
    assert stream.state == "playing", stream.error
    return stream


def drawn(stream: LiveStream, kind: str, tag: str = "g", **view: float) -> list[ET.Element]:
    sections = Frames(stream, View(**view)).sections()
    root = ET.fromstring(sections["strip"])
    return [one for one in root.iter() if kind in (one.get("class") or "").split() and one.tag.endswith(tag)]


def test_strip_shows_the_slices_and_windows_of_the_operator() -> None:
    stream = played(25)
    slices = stream.operator.slices().to_arrow()
    mine = [row for row in slices.to_pylist() if row["shop"] == "a"]
    groups = drawn(stream, "slice")
    assert [int(g.attrib["data-value"]) for g in groups] == [row["n"] for row in mine]
    names = [g.attrib["data-name"] for g in drawn(stream, "window")]
    assert set(names) == {"ten", "visit"}
    assert len(names) >= len([r for r in stream.operator.open_windows().to_pylist() if r["shop"] == "a"])


def test_a_late_tuple_is_drawn_over_its_slice_and_changes_it() -> None:
    stream = played(40)
    late = [int(g.attrib["data-time"]) for g in drawn(stream, "tuple") if "late" in g.attrib["class"]]
    assert late
    assert set(late) <= {(9 + 10 * i - 5) * MINUTE for i in range(4)}
    changed = [g for g in drawn(stream, "slice") if any("late" in part.attrib["class"] for part in g)]
    for group in changed:
        assert any(int(group.attrib["data-start"]) <= time < int(group.attrib["data-end"]) for time in late)
    assert changed


def test_watermark_is_drawn() -> None:
    assert len(drawn(played(20), "watermark", tag="line")) == 1


def test_lines_show_the_results_at_each_level() -> None:
    stream = played(200, behind=12)
    results = stream.history.results.table()
    assert results is not None
    for level in range(LEVELS):
        lines = Frames(stream, View(level=level)).sections()["lines"]
        root = ET.fromstring(lines["picture"])
        assert {p.get("data-name") for p in root.iter() if p.get("data-name")} <= {"ten", "visit"}
        assert lines["shown"]
    assert stream.lines is not None
    first = [c for line in stream.lines.of_level(0, ["ten"]) for c in line.columns]
    newest = {
        row["window_start"]: row["n"]
        for row in results.to_pylist()
        if (row["shop"], row["window_name"]) == ("a", "ten")
    }
    assert "update" in results["kind"].to_pylist()
    # The columns are two minutes wide, so that each has one result, with its newest value.
    assert [c.last for c in first] == [*newest.values()]
    assert [c.first for c in first] == [*newest.values()]


def test_lines_follow_sessions_that_are_withdrawn_and_end_with_bounded_memory() -> None:
    lines = ZoomedLines(width=10, aggregate="n", lateness=100)
    names = ("window_name", "window_start", "window_end", "n", "kind")

    def add(*rows: tuple[object, ...]) -> None:
        lines.add(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]))

    def points() -> list[tuple[int, float]]:
        return [(c.start, c.last) for line in lines.of_level(0, ["s"]) for c in line.columns]

    add(("s", 0, 5, 1, "final"), ("s", 20, 25, 2, "final"))
    assert points() == [(0, 1), (20, 2)]
    add(("s", 0, 5, 1, "retract"), ("s", 20, 25, 2, "retract"), ("s", 0, 25, 4, "final"))
    assert points() == [(20, 4)]
    add(("s", 300, 305, 9, "final"))  # the first one changes no more
    assert points() == [(20, 4), (300, 9)]
    add(*(("s", 400, 400 + n, n, "final") for n in range(3 * MOST_CHANGEABLE)))
    assert len(lines._changeable) <= MOST_CHANGEABLE


@pytest.mark.parametrize("key", ["ключ", "<&\"'>", "a\x01b", "", "\U0001f600", None])
def test_any_key_has_pictures(key: str | None) -> None:
    batches = [batch([n, n], shop=[key, "b"]) for n in range(40)]
    feed = of_batches("keys", query(), lambda: batches, 1, watermark_lag="2 minutes")
    stream = LiveStream([feed])
    for _ in batches:
        stream.step()
    stream.choose_key(stream.label((key,)))
    assert drawn(stream, "slice")
    ET.fromstring(Frames(stream, View()).sections()["lines"]["picture"])


def test_nothing_jumps_in_the_strip() -> None:
    stream, frames = LiveStream([endless()]), None
    heights = []
    for number in range(120):
        stream.step()
        frames = Frames(stream, View()) if frames is None and number > 60 else frames
        if frames is not None and (root := ET.fromstring(frames.sections()["strip"])) is not None:
            heights.append(int(root.attrib["height"]))
            labels = [e.text for e in root.iter() if "right strong w" in (e.get("class") or "")]
            assert labels[:2] == ["ten", "visit"]
    assert heights == sorted(heights)
    assert len(set(heights)) <= 3


def test_late_tuples_are_those_behind_the_watermark() -> None:
    stream = played(40)
    (tile,) = [one for one in Frames(stream, View()).sections()["numbers"] if one["name"] == "late tuples"]
    assert (tile["value"], tile["remark"]) == ("4", "0 too late")


def test_lines_of_another_key_and_aggregate_come_from_the_results_in_memory() -> None:
    stream = played(100)
    stream.choose_key("b")
    stream.choose_aggregate("total")
    assert stream.lines is not None
    (line,) = stream.lines.of_level(0, ["ten"])
    assert len(line.columns) > 5
    with pytest.raises(QueryError, match='no tuple has the key "c" yet'):
        stream.choose_key("c")


def test_an_added_window_gives_results_and_shows_the_new_plan() -> None:
    stream = played(20)
    stream.add("window", "half", 'type = "tumbling"\nlength = "5 minutes"')
    assert stream.notes[0].kind == "change"
    assert '"half" (tumbling 5 minutes)' in stream.notes[0].text
    assert any(line.startswith("+ computes") and "half" in line for line in stream.notes[0].lines)
    for _ in range(30):
        stream.step()
    assert stream.history.rows_by_window["half"] > 3
    stream.remove("window", "half")
    assert [name for name, _ in stream.query.windows] == ["ten", "visit"]
    before = stream.history.rows_by_window["half"]
    for _ in range(30):
        stream.step()
    assert stream.history.rows_by_window["half"] == before


def test_an_added_aggregate_is_shown_by_windows_that_begin_later() -> None:
    stream = played(25)
    stream.add("aggregate", "greatest", 'function = "max"\ncolumn = "v"')
    assert '"greatest" (max(v)) is shown by windows that begin' in stream.notes[0].text
    assert "greatest" in stream.aggregates
    stream.choose_aggregate("greatest")
    assert Frames(stream, View()).sections()["strip"]
    for _ in range(30):
        stream.step()
    results = stream.history.results.table()
    assert results is not None
    tens = [row for row in results.to_pylist() if row["window_name"] == "ten"]
    assert tens[-1]["greatest"] is not None
    assert stream.lines is not None
    assert stream.lines.of_level(0, ["ten"])
    stream.remove("aggregate", "greatest")
    assert "greatest" not in stream.aggregates
    stream.step()
    assert stream.state == "playing"


@pytest.mark.parametrize(
    ("kind", "name", "text", "message"),
    [
        ("window", "x", 'type = "tumblin"\nlength = "5 minutes"', "tumbling"),
        ("window", "x", 'type = "tumbling"', 'needs the key "length"'),
        ("window", "ten", 'type = "tumbling"\nlength = "5 minutes"', "there is a window"),
        ("window", "", 'type = "tumbling"\nlength = "5 minutes"', "needs a name"),
        ("window", "x", "__import__('os').system('true')", "not valid TOML"),
        ("window", "x", 'type = "threshold"\npredicate = "__import__(1)"', "there is no function __import__"),
        ("window", "x", "a = 1\n" * 1000, "at most 2,000"),
        ("aggregate", "x", 'function = "sum"\ncolumn = "w"', "w"),
        ("aggregate", "n", 'function = "count"', "there is an aggregate|already"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(kind: str, name: str, text: str, message: str) -> None:
    stream = played(5)
    before = stream.query, stream.operator
    with pytest.raises(Exception, match=message) as caught:
        stream.add(kind, name, text)
    assert isinstance(caught.value, ValueError)  # every error of Muntin is one
    assert (stream.query, stream.operator) == before
    stream.step()
    assert stream.state == "playing"


def test_a_bad_tuple_stops_the_stream_with_its_message() -> None:
    stream = LiveStream([failing()])
    stream.step()
    stream.step()
    assert stream.state == "error"
    assert "ts" in stream.error
    assert Frames(stream, View()).sections()["head"]["error"] == stream.error
    stream.play()
    assert (stream.state, stream.steps_done) == ("playing", 0)


def test_memory_is_bounded() -> None:
    history = History("ts", ["shop"])
    many = [f"shop {n}" for n in range(900)]
    for number in range(300):
        history.take(pa.table(batch([number] * 900, shop=many)), number)
        history.give(pa.table({"window_name": ["ten"] * 100, "kind": ["final"] * 100}))
        history.sample({"slices": number})
    assert len(history.tuples) == MOST_TUPLES
    assert len(history.results) == MOST_RESULTS
    assert len(history.samples) == MOST_SAMPLES
    assert len(history.keys) == MOST_KEYS
    table = history.tuples.table()
    assert table is not None
    assert table.num_rows == MOST_TUPLES
    assert table.get_total_buffer_size() < 4_000_000  # of 270,000 tuples it took
    assert (history.taken, history.given) == (270_000, 30_000)


def test_memory_stays_the_same_while_a_stream_plays_on() -> None:
    stream = LiveStream([endless()])
    stream.history.tuples, stream.history.results = RecentRows(400), RecentRows(300)
    sizes = []
    for number in range(3000):
        stream.step()
        if number % 500 == 499:
            frames = Frames(stream, View())
            assert frames.next()
            state = sum(len(text) for text in frames._sent.values())
            sizes.append(
                (len(stream.history.tuples), len(stream.history.results), len(stream.history.samples))
            )
            assert state < 200_000
            assert stream.lines is not None
            assert stream.lines.columns <= 2 * LEVELS * COLUMNS
            assert len(stream.notes) <= MOST_NOTES
    assert stream.state == "playing"
    assert all(size[:2] == (400, 300) for size in sizes[3:])
    assert stream.lines is not None
    assert stream.lines.columns > COLUMNS  # so the bound was reached for one level at least


def test_only_changed_sections_are_sent() -> None:
    stream = played(20)
    frames = Frames(stream, View())
    first = frames.next()
    assert first is not None
    assert set(first) >= {"head", "strip", "lines", "numbers", "windows", "results", "plan", "notes"}
    assert frames.next() is None
    stream.step()
    second = frames.next()
    assert second is not None
    assert "strip" in second
    assert "plan" not in second


def test_transcripts_are_replayed_a_tuple_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "late.yaml"
    path.write_text(TRANSCRIPT)
    stream = LiveStream(of_transcripts(path))
    assert (stream.state, stream.feed.title) == ("paused", "late_tuple")
    values = []
    while stream.state != "ended":
        stream.step()
        rows = stream.history.results.table()
        values.append([] if rows is None else rows["total"].to_pylist())
    assert values == [[], [], [7], [7], [7, 12], [7, 12]]
    assert not stream.notes
    assert [bool("late" in g.attrib["class"]) for g in drawn(stream, "tuple")] == [False, False, False]
    labels = [
        one.text for one in drawn(stream, "small", tag="text") if not one.get("class", "").endswith("quiet")
    ]
    assert labels == ["3", "4", "5", "late", "watermark"]
    stream.choose("wrong_expectation")
    for _ in range(2):
        stream.step()
    assert "differs from the transcript" in stream.notes[0].text
    for _ in range(2):
        stream.step()
    assert [name for name, _ in stream.query.windows] == ["five"]
    assert stream.state == "paused", stream.error


def test_the_example_shows_a_late_sale_and_both_visits_that_it_joins() -> None:
    (feed,) = of_transcripts(Path(__file__).parents[2] / "examples" / "late_sale.yaml")
    stream = LiveStream([feed])
    for _ in range(14):
        stream.step()
    windows = [(g.attrib["data-name"], g.attrib["data-kind"]) for g in drawn(stream, "window")]
    assert windows.count(("visit", "retracted")) == 2
    assert windows.count(("ten", "changed")) == 1
    assert windows.count(("smooth", "changed")) == 2
    stream.step()
    assert not stream.notes  # all results are those of the transcript
    stream.step()
    assert stream.state == "ended"


def test_steps_that_are_made_together_take_the_same_tuples_in() -> None:
    one, many = LiveStream([flights_feed()]), LiveStream([flights_feed()])
    for _ in range(60):
        one.step()
    for _ in range(10):
        many.step(together=6)
    assert one.history.taken == many.history.taken
    steps = iter([Step("input", pa.table({"t": [1]})), Step("input", {"t": [2]}), Step("watermark", 9)])
    tens = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    stream = LiveStream([Feed("mixed", tens, lambda: steps, rate=1)])
    while stream.state == "playing":
        stream.step(together=5)
    assert (stream.history.taken, stream.history.given, stream.steps_done) == (2, 0, 3)


def test_files_are_played_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    lines = [f"2024-01-01T00:{minute:02}:00,a,{minute}" for minute in range(55)]
    path.write_text("\n".join(["ts,shop,v", *lines]))
    feed = of_files(query(), [str(path)], InputSettings(watermark_lag="5 minutes"))
    stream = LiveStream([feed])
    while stream.state == "playing":
        stream.step()
    assert (stream.state, stream.error) == ("ended", "")
    rows = stream.history.results.table()
    assert rows is not None
    assert rows.filter(pa.compute.equal(rows["window_name"], "ten"))["total"].to_pylist() == [
        sum(range(start, min(start + 10, 55))) for start in range(0, 60, 10)
    ]


def test_flights_go_on_after_a_year() -> None:
    feed = flights_feed()
    stream = LiveStream([feed])
    for _ in range(60):
        stream.step()
    assert stream.history.given > 10
    assert [stream.label(key) for key in stream.history.keys] == ["EWR", "LGA", "JFK"]
