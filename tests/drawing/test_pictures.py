"""Pictures show what the engine did: every slice and window of a run, at its edges."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.drawing import observe, svg, terminal
from muntin.drawing.lanes import Scale, lanes
from muntin.drawing.svg_picture import LEFT, RIGHT, WIDTH
from tools.draw_pictures import FOLDER, PICTURES, STREAM, WINDOWS
from tools.draw_rates import COLOURS, PAGE, ROWS, chart, rates

TUPLES = {"t": [11, 14, 24, 27], "v": [3, 1, 5, 9]}
LATE = {"t": [19], "v": [7]}


def query(**windows: w.ContextFree) -> mt.Query:
    return mt.windows(**windows).aggregate(total=a.sum("v")).on("t", allowed_lateness=1_000)


def groups(picture: str, kind: str) -> list[ET.Element]:
    root = ET.fromstring(picture)
    return [group for group in root.iter() if group.get("class") == kind]


def edges_of(group: ET.Element) -> tuple[float, float]:
    box = next(part for part in group if part.tag.endswith("rect"))
    left = float(box.attrib["x"]) - 1
    return left, left + float(box.attrib["width"]) + 2


@pytest.mark.parametrize("name", sorted(WINDOWS))
def test_every_window_of_the_results_is_drawn_at_its_edges(name: str) -> None:
    asked = query(x=WINDOWS[name])
    run = observe(asked, STREAM)
    scale = Scale(*run.extent, LEFT, WIDTH - RIGHT)
    drawn = groups(svg(run), "window")
    rows = asked.run(STREAM).to_pylist()
    expected = sorted((row["window"]["start"], row["window"]["end"], row["total"]) for row in rows)
    assert expected
    assert (
        sorted(tuple(int(g.attrib[f"data-{n}"]) for n in ("start", "end", "value")) for g in drawn)
        == expected
    )
    for group in drawn:
        places = [scale.place(int(group.attrib[f"data-{side}"])) for side in ("start", "end")]
        assert edges_of(group) == pytest.approx(places, abs=0.11)


def test_every_tuple_lies_in_the_slice_that_counts_it() -> None:
    run = observe(query(ten=w.tumbling(10), six=w.tumbling(6)), STREAM)
    for found in run.slices:
        inside = [v for t, v in zip(STREAM["t"], STREAM["v"], strict=True) if found.start <= t < found.end]
        assert (len(inside), sum(inside)) == (found.tuples, found.value)
    assert sum(found.tuples for found in run.slices) == len(STREAM["t"])


def test_a_late_tuple_changes_its_slice_and_the_windows_that_hold_it() -> None:
    run = observe(query(ten=w.tumbling(10), twenty=w.sliding(20, every=10)), TUPLES, late=LATE)
    changed = {(bar.name, bar.start, bar.end, bar.before, bar.value) for bar in run.windows if bar.changed}
    assert changed == {("ten", 10, 20, 4, 11), ("twenty", 0, 20, 4, 11), ("twenty", 10, 30, 18, 25)}
    assert [(part.start, part.before, part.value) for part in run.slices if part.changed] == [(10, 4, 11)]
    assert [tuple_.late for tuple_ in run.tuples] == [False] * 4 + [True]
    kinds = [group.get("data-kind") for group in groups(svg(run), "window")]
    assert sorted(set(kinds)) == ["changed", "unchanged"]
    assert "4 → 11" in svg(run)


def test_a_session_that_grows_is_drawn_beside_the_ones_it_replaces() -> None:
    run = observe(query(visit=w.session(6)), TUPLES, late=LATE)
    assert [(bar.start, bar.end, bar.value, bar.retracted) for bar in run.windows] == [
        (11, 20, 4, True),
        (11, 33, 25, False),
        (24, 33, 14, True),
    ]
    assert [[bar.start for bar in lane] for lane in lanes(run.windows)] == [[11, 24], [11]]


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_the_pictures_of_the_documentation_are_those_of_today(name: str) -> None:
    # `python -m tools.draw_pictures` draws them anew.
    assert (FOLDER / f"{name}.svg").read_text() == PICTURES[name]()


@pytest.mark.parametrize("name", [name for name in w.__all__ if name.islower()])
def test_the_page_of_windows_has_a_picture_of_every_constructor(name: str) -> None:
    page = (FOLDER.parent / "windows.md").read_text()
    assert f"](pictures/{name}.svg)" in page.partition(f"`w.{name}(")[2].partition("`w.")[0]


def test_the_folder_holds_no_other_picture() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)


def test_pictures_fetch_nothing_and_follow_the_colour_scheme() -> None:
    for path in FOLDER.glob("*.svg"):
        picture = path.read_text()
        ET.fromstring(picture)
        assert "prefers-color-scheme: dark" in picture
        assert picture.count("http") == 1  # the name space


def test_names_are_escaped() -> None:
    run = observe(query(x=w.tumbling(10)), {"t": [1], "v": [2], "<id>": ["a&<b>"]}, label="<id>")
    assert [text.text for text in groups(svg(run), "tuple")[0] if text.tag.endswith("text")] == ["a&<b>"]


def test_the_terminal_shows_changes_in_colour() -> None:
    run = observe(query(ten=w.tumbling(10)), TUPLES, late=LATE)
    shown = terminal(run, 60)
    lines = shown.plain.splitlines()
    assert [line.split()[0] for line in lines] == ["ten", "tuples", "slices", "10"]
    assert "4→11" in lines[0]
    assert all(len(line) == 60 for line in lines)
    assert any("yellow" in str(span.style) for span in shown.spans)


def test_a_query_with_keys_is_refused() -> None:
    with pytest.raises(mt.MuntinError, match=r"leave \.by out"):
        observe(query(ten=w.tumbling(10)).by("k"), TUPLES)


def test_pictures_are_found_by_the_pages() -> None:
    root = Path(__file__).parents[2]
    pages = "".join(page.read_text() for page in [root / "README.md", *(root / "docs").rglob("*.md")])
    assert [name for name in PICTURES if f"pictures/{name}.svg" not in pages] == []


def test_the_chart_shows_the_numbers_of_its_page() -> None:
    page = PAGE.read_text()
    marks = groups(chart(page), "rate")
    assert {mark.attrib["data-workload"] for mark in marks} == set(ROWS)
    for mark in marks:
        number = f"{float(mark.attrib['data-rate']):g}"
        lines = [line for line in page.splitlines() if line.startswith(f"| {mark.attrib['data-workload']} |")]
        assert any(re.search(rf"[| *]{re.escape(number)}(\.0)?[ *]", line) for line in lines), number
    ours = {m.attrib["data-workload"]: m for m in marks if m.attrib["data-engine"] == "Muntin"}
    width = {name: float(next(iter(mark)).attrib["width"]) for name, mark in ours.items()}
    rate = {name: float(mark.attrib["data-rate"]) for name, mark in ours.items()}
    assert sorted(width, key=width.__getitem__) == sorted(rate, key=rate.__getitem__)


def test_the_best_technique_is_a_mark_of_the_chart() -> None:
    found = rates("| workload | Muntin | Panes | Cutty |\n|---|---:|---:|---:|\n| W1 | 5 | 7 | **9** |\n")
    assert found == {"W1": {"Muntin": 5, "Panes": 7, "Cutty": 9}}
    marks = {m.attrib["data-engine"]: m.attrib["data-rate"] for m in groups(chart(), "rate")}
    assert set(marks) == set(COLOURS)
