"""Which windows lie over which slices, and where edges lie, against the obvious ways to tell."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.slicing.edges import EdgeSet
from muntin.slicing.emission.listing import list_context_free
from muntin.slicing.partials import PartialSet
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.window_limit import WindowLimit
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows import sliding

Row = tuple[int, int]
"""The key of a slice and the time of its first tuple."""
Found = tuple[int, int, int, int, int, int]
"""End, start, number of the query, key, lo and hi of a window."""


@st.composite
def periods(draw: st.DrawFn, most: int) -> list[tuple[int, int, int]]:
    """Lengths, slides and offsets, most of them multiples of a unit; overlapping, tumbling, with gaps."""
    unit = draw(st.sampled_from([1, 1, 3, 1000, 2**40]))
    sizes = st.integers(1, 40).map(lambda n: n * unit)
    one = st.tuples(sizes, sizes, st.integers(-50, 50).map(lambda n: n * draw(st.sampled_from([1, unit]))))
    return draw(st.lists(one, min_size=1, max_size=most))


@st.composite
def slices(draw: st.DrawFn, step: int) -> list[Row]:
    """Slices of a few keys, near each other or at the ends of time."""
    origin = draw(st.sampled_from([0, 0, -(10**12), LIMIT - 200 * step, -LIMIT]))
    near = st.integers(0, 200).map(lambda n: min(origin + n * step, LIMIT))
    far = st.sampled_from([-LIMIT, 0, LIMIT])
    times = draw(st.sampled_from([near, near, st.one_of(near, far)]))
    rows = draw(st.lists(st.tuples(st.integers(0, 3), times), min_size=1, max_size=30, unique=True))
    return sorted(rows)


def obvious_windows(rows: list[Row], queries: list[ServedWindow], after: int, upto: int) -> list[Found]:
    """All windows that hold a slice and end in (after, upto], in the order of results."""
    found = set()
    for number, query in enumerate(queries):
        length, slide, offset = query.window.length, query.window.slide, query.window.offset  # type: ignore[attr-defined]
        for key, first in rows:
            for k in range((first - offset - length) // slide + 1, (first - offset) // slide + 1):
                start, end = k * slide + offset, k * slide + offset + length
                if max(after, query.after) < end <= upto and start >= query.since:
                    inside = [i for i, (k, f) in enumerate(rows) if k == key and start <= f < end]
                    found.add((end, start, number, key, inside[0], inside[-1] + 1))
    return sorted(found)


def table_of(rows: list[Row]) -> SliceTable:
    columns = {name: np.zeros(len(rows), dtype=np.int64) for name in SliceTable.SCHEMA.columns}
    columns["key"] = np.array([key for key, _ in rows], dtype=np.int64)
    columns["first"] = np.array([first for _, first in rows], dtype=np.int64)
    return SliceTable.of(PartialSet((), (), (), (), ()), columns, None)


@given(data=st.data(), sizes=periods(6))
def test_periodic_windows_are_those_that_hold_a_slice_that_drives(
    data: st.DataObject, sizes: list[tuple[int, int, int]]
) -> None:
    rows = data.draw(slices(max(1, sizes[0][1] // 3)))
    low, high = min(first for _, first in rows), max(first for _, first in rows)
    times = st.one_of(st.integers(low, high), st.sampled_from([low - 1, low, high, high + sizes[0][0]]))
    after = data.draw(st.one_of(st.just(NEG_INF), times))
    upto = data.draw(st.one_of(st.just(INF), times))
    queries = [
        ServedWindow(
            str(number),
            sliding(length, every=slide, offset=offset),
            since=data.draw(st.one_of(st.just(NEG_INF), times.map(lambda time: max(time, -LIMIT + 1)))),
            after=data.draw(st.one_of(st.just(NEG_INF), times)),
        )
        for number, (length, slide, offset) in enumerate(sizes)
        if length <= 40 * slide
    ]
    if not queries or upto <= after:
        return
    drives = data.draw(st.one_of(st.none(), st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    driver = None if drives is None else np.array(drives, dtype=np.bool_)
    found = list_context_free(
        ServedWindows(tuple(queries)), table_of(rows), 4, high, after, upto, WindowLimit(), driver
    )
    listed = [
        tuple(map(int, window))
        for listing in found
        for window in zip(
            listing.end, listing.start, listing.number, listing.key, listing.lo, listing.hi, strict=True
        )
    ]
    wanted = obvious_windows(rows, queries, after, upto)
    assert listed == [found for found in wanted if drives is None or any(drives[found[4] : found[5]])]


@given(
    sizes=periods(50),
    low=st.one_of(st.integers(-(10**6), 10**6), st.sampled_from([-LIMIT, LIMIT - 10**6])),
    reach=st.integers(0, 3000),
)
def test_edges_are_all_members_and_one_beyond(
    sizes: list[tuple[int, int, int]], low: int, reach: int
) -> None:
    edges = EdgeSet.of([sliding(length, every=slide, offset=offset) for length, slide, offset in sizes])
    high = low + reach * min(slide for _, slide, _ in sizes)
    wanted = set()
    for offset, period in zip(edges.offsets.tolist(), edges.periods.tolist(), strict=True):
        first = low - (low - offset) % period
        wanted.update(range(first, high + period + 1 - (high - offset) % period, period))
    many = np.full(100_000, low, dtype=np.int64)  # so that all edges between are asked for
    none = np.zeros(0, dtype=np.int64)
    assert edges.around(low, high, many, none, none).tolist() == sorted(wanted)
