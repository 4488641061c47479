"""Windows that the user's code cuts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import windows as w
from muntin.timeline import INF

sys.path.insert(0, str(Path(__file__).parent))
from driving import Found, Reference, Row, View, check, streams  # beside this file, not installed


def discretize(window: Any, rows: list[Row], view: View) -> list[Found]:
    found, begun = [], []
    for rank, row in enumerate(rows):
        begins, ends = turns(row.price, rank)
        found += [Found(b, rank, rows[b].time, row.time, row.time) for b in begun[:ends]]
        begun = begun[ends:] + [rank] * begins
    if view.closing and rows:
        stop = rows[-1].time + 1
        found += [Found(b, len(rows), rows[b].time, stop, INF) for b in begun]
    return found


def turns(price: int | None, rank: int) -> tuple[int, int]:
    return (price or 0) % 3, rank % 3


def trigger(window: Any, rows: list[Row], view: View) -> list[Found]:
    found, buffer = [], []
    for rank, row in enumerate(rows):
        buffer = [*buffer, rank]
        buffer = buffer[older_than_ten([rows[i].time for i in buffer]) :]
        if buffer and sum(rows[i].price or 0 for i in buffer) % 2:
            found.append(Found(buffer[0], rank + 1, rows[buffer[0]].time, row.time + 1, row.time + 1))
    return found


def older_than_ten(times: list[int]) -> int:
    return sum(times[-1] - time > 10 for time in times)


class Visits(w.ForwardContextFree):
    """A window from each flagged tuple to the third one after it; the state is changed in place."""

    columns = ("flag",)

    def initial_state(self) -> Any:
        return {"open": []}

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        ends = sum(record.rank - begin >= 3 for begin in state["open"])
        del state["open"][:ends]
        begins = int(record["flag"] is True)
        state["open"] += [record.rank] * begins
        return state, begins, ends


def visits(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for begin, row in enumerate(rows):
        if row.flag is True and begin + 3 < len(rows):
            time = rows[begin + 3].time
            found.append(Found(begin, begin + 3, row.time, time, time))
        elif row.flag is True and view.closing:
            found.append(Found(begin, len(rows), row.time, rows[-1].time + 1, INF))
    return found


class Peaks(w.ForwardContextAware):
    """Each new highest price, with up to two tuples before it; the state is changed in place."""

    columns = ("price",)

    def initial_state(self) -> Any:
        return {"highest": -100}

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[int, int]]]:
        price = record["price"]
        if price is None or price <= state["highest"]:
            return state, []
        state["highest"] = price
        return state, [(max(0, record.rank - 2), record.rank + 1)]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


def peaks(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for rank, row in enumerate(rows):
        before = [r.price for r in rows[:rank] if r.price is not None]
        if row.price is not None and row.price > max(before, default=-100):
            begin = max(0, rank - 2)
            found.append(Found(begin, rank + 1, rows[begin].time, row.time + 1, row.time + 1))
    return found


WINDOWS: dict[str, tuple[st.SearchStrategy[Any], Reference]] = {
    "discretize": (st.just(w.discretize(lambda r: turns(r["price"], r.rank), columns=["price"])), discretize),
    "trigger": (
        st.just(
            w.trigger(
                lambda buffer: sum(r["price"] or 0 for r in buffer) % 2 == 1,
                lambda buffer: older_than_ten([r.time for r in buffer]),
                columns=["price"],
            )
        ),
        trigger,
    ),
    "forward context free": (st.just(Visits()), visits),
    "forward context aware": (st.just(Peaks()), peaks),
}


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), keys=streams())
def test_windows_do_not_depend_on_the_split(name: str, data: Any, keys: list[list[Row]]) -> None:
    windows, reference = WINDOWS[name]
    check(data.draw(windows), reference, keys, data)
