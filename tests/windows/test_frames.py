"""Frames and punctuations: the values say where windows begin and end."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import aggregates as a
from muntin import windows as w
from muntin.timeline import INF

sys.path.insert(0, str(Path(__file__).parent))
from driving import (
    Found,
    Reference,
    Row,
    View,
    between,
    check,
    pieces,
    positions,
    streams,
)  # beside this file, not installed


def punctuation(window: Any, rows: list[Row], view: View) -> list[Found]:
    return between(rows, pieces(rows, lambda run, row: row.flag is True), view, window.measure)


def threshold(window: Any, rows: list[Row], view: View) -> list[Found]:
    parts = pieces(rows, lambda run, row: (row.flag is True) != (run[-1].flag is True))
    frames = [(b, e) for b, e in parts if rows[b].flag is True and e - b >= window.min_count]
    return between(rows, frames, view, window.measure)


def value_of(column: str) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        found = getattr(row, column)
        return None if found is None or found != found else found

    return value


def delta(window: Any, rows: list[Row], view: View) -> list[Found]:
    value = value_of(window.column.column)

    def breaks(run: list[Row], row: Row) -> bool:
        reference = next((value(r) for r in run if value(r) is not None), None)
        return None not in (reference, value(row)) and abs(value(row) - reference) > window.by

    return between(rows, pieces(rows, breaks), view, window.measure)


def boundary(window: Any, rows: list[Row], view: View) -> list[Found]:
    value = value_of(window.column.column)

    def band(row: Row) -> Any:
        return (
            None if value(row) is None else math.floor(Fraction(str(value(row))) / Fraction(str(window.step)))
        )

    def breaks(run: list[Row], row: Row) -> bool:
        reference = next((band(r) for r in run if band(r) is not None), None)
        return None not in (reference, band(row)) and band(row) != reference

    return between(rows, pieces(rows, breaks), view, window.measure)


def until(window: Any, rows: list[Row], view: View) -> list[Found]:
    aggregate, found, begin = window.aggregate, [], 0
    position = positions(rows, window.measure)
    for end in range(1, len(rows) + 1):
        partial = aggregate.identity()
        for rank in range(begin, end):
            values = [getattr(rows[rank], e.column) for e in aggregate.inputs]
            partial = aggregate.combine(partial, aggregate.lift(*values, at=(rows[rank].time, rank)))
        value = aggregate.lower(partial)
        if value is not None and (value >= window.limit or value != value):
            stop = rows[end - 1].time + 1
            marks = position[begin], position[end - 1]
            found.append(Found(begin, end, rows[begin].time, stop, stop, *marks))
            begin = end
    if view.closing and begin < len(rows):
        stop, marks = rows[-1].time + 1, (position[begin], position[-1])
        found.append(Found(begin, len(rows), rows[begin].time, stop, INF, *marks))
    return found


small = st.integers(1, 6)
WINDOWS: dict[str, tuple[st.SearchStrategy[Any], Reference]] = {
    "punctuation": (
        st.builds(w.punctuation, st.just("flag"), measure=st.sampled_from([None, "km", "litres"])),
        punctuation,
    ),
    "threshold": (
        st.builds(w.threshold, st.just("flag"), st.integers(1, 3), measure=st.sampled_from([None, "km"])),
        threshold,
    ),
    "delta": (
        st.builds(
            w.delta, st.sampled_from(["price", "ratio", "cash"]), small, measure=st.sampled_from([None, "km"])
        ),
        delta,
    ),
    "boundary": (
        st.builds(w.boundary, st.sampled_from(["price", "ratio", "cash"]), small | st.just(0.25)),
        boundary,
    ),
    "until": (
        st.builds(
            w.until,
            st.sampled_from(
                [a.count(), a.count("price")]
                + [f(c) for f in (a.sum, a.min, a.max, a.mean, a.stddev) for c in ("price", "ratio")]
            ),
            st.integers(-3, 6),
            measure=st.sampled_from([None, "litres"]),
        ),
        until,
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), keys=streams())
def test_windows_do_not_depend_on_the_split(name: str, data: Any, keys: list[list[Row]]) -> None:
    windows, reference = WINDOWS[name]
    check(data.draw(windows), reference, keys, data)
