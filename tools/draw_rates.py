"""The chart of docs/performance.md, drawn from the tables of that page: it can show no other numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from muntin.drawing.svg_elements import STYLE, element, text

__all__ = ["chart", "rates"]

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
ROWS = {
    "W1 N=1": "1 tumbling window",
    "W1 N=10": "10 tumbling windows",
    "W1 N=100": "100 tumbling windows",
    "W1 N=1000": "1,000 tumbling windows",
    "W3 1 s": "60 s every 1 s",
    "W3 100 ms": "60 s every 100 ms",
    "W2 N=20": "20 and a session, late tuples",
    "W2 N=1000": "1,000 and a session, late tuples",
    "W5": "median of 21, late tuples",
    "W7": "200 mixed, late tuples",
    "W4": "1,000 tuples, late tuples",
    "W6": "100,000 keys",
}
"""Workloads with what the chart calls them."""
PEERS = ("polars", "DuckDB")
SCOTTY, BEST = "Scotty (Java)", "best technique of the papers"
COLOURS = {"Muntin": "w0", "polars": "w2", "DuckDB": "w3", SCOTTY: "ink", BEST: "w1"}
LOW, HIGH = 0.05, 5_000.0
WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 760, 206, 84, 58, 24, 14
SIZE = 4.5

Rates = dict[str, dict[str, float]]


def rates(page: str) -> Rates:
    r"""Million tuples per second by workload and engine, from the tables that have a rate of Muntin.

    >>> rates("| workload | Muntin | polars |\n|---|---:|---:|\n| W1 | **5** | 2 (3) |\n")
    {'W1': {'Muntin': 5.0, 'polars': 2.0}}
    """
    found: Rates = {}
    for table in re.findall(r"^\| workload \|.*\n\|[-:| ]+\n(?:\|.*\n)+", page, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
        if "Muntin" not in head and "Scotty" not in head:
            continue
        for row in rows:
            for name, cell in zip(head, row, strict=True):
                number = re.match(r"\**([\d.]+)\**( \([\d.]+\))?$", cell)
                if number and name not in ("workload", "query"):
                    found.setdefault(row[0], {})[name] = float(number[1])
    return found


def chart(page: str | None = None) -> str:
    """The chart as the text of an SVG file: a bar for Muntin, marks for the others, a logarithmic axis."""
    found = rates(PAGE.read_text() if page is None else page)
    bottom = TOP + STEP * len(ROWS)
    title = "Million tuples per second of CPU time: Muntin, polars, DuckDB, Scotty and techniques of papers"
    parts = [element("title", title), element("style", STYLE), *_legend(), *_axis(bottom)]
    for number, (workload, label) in enumerate(ROWS.items()):
        parts.extend(_row(workload, label, _shown(found[workload]), TOP + STEP * number + STEP / 2))
    return (
        element(
            "svg",
            parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {bottom + 40}",
            width=WIDTH,
            height=bottom + 40,
            role="img",
        )
        + "\n"
    )


def _shown(found: dict[str, float]) -> dict[str, float]:
    """What a row shows: the techniques only by the best of them."""
    others = ("M/s", "goal", "reduceat", "copy", "Scotty", "Muntin", *PEERS)
    techniques = [rate for name, rate in found.items() if name not in others]
    shown = {name: found[name] for name in ("Muntin", *PEERS) if name in found}
    shown |= {SCOTTY: found["Scotty"]} if "Scotty" in found else {}
    return shown | ({BEST: max(techniques)} if techniques else {})


def _place(rate: float) -> float:
    share = math.log(rate / LOW) / math.log(HIGH / LOW)
    return round(LEFT + share * (WIDTH - RIGHT - LEFT), 1)


def _row(workload: str, label: str, shown: dict[str, float], middle: float) -> Iterator[str]:
    yield text(label, LEFT - 10, middle + 4, "right ink")
    ours = shown.pop("Muntin")
    bar = element(
        "rect", x=LEFT, y=middle - BAR / 2, width=round(_place(ours) - LEFT, 1), height=BAR, rx=2, class_="w0"
    )
    yield element("g", bar, class_="rate", data_workload=workload, data_engine="Muntin", data_rate=ours)
    for name, rate in shown.items():
        mark = _mark(name, _place(rate), middle)
        yield element("g", mark, class_="rate", data_workload=workload, data_engine=name, data_rate=rate)
    yield text(f"{ours:g}", WIDTH - 16, middle + 4, "right strong w0")


def _mark(name: str, x: float, y: float) -> str:
    """A triangle, a square, a cross or a diamond, so that marks differ without colours."""
    s = SIZE
    paths = {
        "polars": f"M{x:g} {y - s:g}l{s:g} {2 * s:g}h{-2 * s:g}z",
        "DuckDB": f"M{x - s + 0.5:g} {y - s + 0.5:g}h{2 * s - 1:g}v{2 * s - 1:g}h{1 - 2 * s:g}z",
        SCOTTY: f"M{x - s:g} {y - s:g}l{2 * s:g} {2 * s:g}m0 {-2 * s:g}l{-2 * s:g} {2 * s:g}",
        BEST: f"M{x:g} {y - s - 1:g}l{s + 1:g} {s + 1:g}l{-s - 1:g} {s + 1:g}l{-s - 1:g} {-s - 1:g}z",
    }
    return element("path", d=paths[name], class_=COLOURS[name], stroke_width=2 if name == SCOTTY else 1)


def _legend() -> Iterator[str]:
    x = 16.0
    for name, colour in COLOURS.items():
        if name == "Muntin":
            yield element("rect", x=x, y=11, width=16, height=10, rx=2, class_=colour)
        else:
            yield _mark(name, x + 8, 16)
        yield text(name, x + 24, 20, f"strong {colour}")
        x += 24 + 7.4 * len(name) + 22
    yield text("Muntin, M/s", WIDTH - 16, TOP - 10, "right small quiet")


def _axis(bottom: float) -> Iterator[str]:
    """Powers of ten, with what the axis means below."""
    for power in range(-1, 4):
        x = _place(10.0**power)
        yield element("line", x1=x, y1=TOP - 6, x2=x, y2=bottom, class_="line edge")
        yield text(f"{10.0**power:,g}", x, bottom + 15, "middle small quiet")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield text("million tuples per second of CPU time", middle, bottom + 32, "middle small quiet")
