"""`run(table, threads=n)`: what one operator gives, from several that share the time or the keys."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError
from muntin.slicing import step as step_module
from muntin.slicing import window_limit
from muntin.slicing.binding import ARRIVAL
from muntin.slicing.emission.result_order import InTurn
from muntin.slicing.parallel import by_time as by_time_module
from muntin.slicing.parallel import key_numbering as numbering_module
from muntin.slicing.parallel import steps as steps_module
from muntin.slicing.parallel import time_ranges as ranges_module

sys.path.insert(0, str(Path(__file__).parent))
from parted import AGGREGATES, WINDOWS, nearly_in_order, seen, stream  # beside this file, not installed


@pytest.fixture(autouse=True)
def everything_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to do."""
    for few in ("LEAST_TUPLES", "LEAST_SLICES", "LEAST_ROWS"):
        monkeypatch.setattr(steps_module, few, 1)
    monkeypatch.setattr(numbering_module, "FIRST", 1)
    monkeypatch.setattr(ranges_module, "BLOCK", 16)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of parts by key of each step, and 0 where the step was made on one thread."""
    found: list[int] = []
    divided, on_threads = steps_module.divided, step_module._on_threads

    def noting_parts(plan: Any, state: Any, bounds: list[int]) -> Any:
        found.append(len(bounds) - 1)
        return divided(plan, state, bounds)

    def noting_none(*arguments: Any) -> Any:
        tables = on_threads(*arguments)
        found.extend([0] if tables is None else [])
        return tables

    monkeypatch.setattr(steps_module, "divided", noting_parts)
    monkeypatch.setattr(step_module, "_on_threads", noting_none)
    return found


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each run was divided: windows by time, tuples in pieces of time, or tuples by key."""
    found: list[str] = []
    results, slice_ranges, share = (
        steps_module.results_by_time, steps_module.slice_ranges, steps_module.share_of,
    )  # fmt: skip

    def noting_time(*arguments: Any) -> Any:
        found.append("time")
        return results(*arguments)

    def noting_pieces(*arguments: Any) -> Any:
        sliced = slice_ranges(*arguments)
        found.extend([] if sliced is None else ["pieces"])
        return sliced

    def noting_share(batch: Any, begin: int, end: int) -> Any:
        found.extend([] if begin else ["keys"])
        return share(batch, begin, end)

    monkeypatch.setattr(steps_module, "results_by_time", noting_time)
    monkeypatch.setattr(steps_module, "slice_ranges", noting_pieces)
    monkeypatch.setattr(steps_module, "share_of", noting_share)
    return found


@pytest.mark.parametrize("aggregates", AGGREGATES)
@pytest.mark.parametrize("windows", WINDOWS)
def test_results_are_the_same_bit_for_bit(windows: str, aggregates: str, ways: list[str]) -> None:
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES[aggregates]).by("k", "j").on("t")
    for ordered, n in ((False, 3_000), (True, 500)):
        table = stream(n, 9, ordered)
        assert seen(query.run(table, threads=3)) == seen(query.run(table))
    assert ways[0] == "keys"
    assert len(ways) == 2


@pytest.mark.parametrize("keys", [(), ("j",), ("k",)])
@pytest.mark.parametrize("aggregates", AGGREGATES)
@pytest.mark.parametrize("windows", ["edges", "time", "sessions"])
def test_pieces_of_time(windows: str, aggregates: str, keys: tuple[str, ...], ways: list[str]) -> None:
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES[aggregates]).by(*keys).on("t")
    for table in (nearly_in_order(20_000, 9), nearly_in_order(20_000, 9, late=0)):
        for threads in (2, 5):
            found = query.run(table, threads=threads)
            assert seen(found) == seen(query.run(table))
            found.to_arrow(nested=True).validate(full=True)
    if windows == "edges":  # among five pieces there are some that windows of 60 are too long for
        by_key = (
            [] if not keys and aggregates == "others" else ["keys" if aggregates == "others" else "pieces"]
        )
        assert ways == ["time", *by_key] * 2
    elif aggregates == "others":  # whose partials grow
        assert ways == (["keys"] * 4 if keys else [])
    else:
        assert ways == ["pieces"] * 4


@pytest.mark.parametrize("windows", ["edges", "time", "sessions"])
def test_times_in_no_order(windows: str, ways: list[str]) -> None:
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES["sums"]).by("k").on("t")
    table = stream(20_000, 9)
    assert seen(query.run(table, threads=2)) == seen(query.run(table))
    assert ways == ["keys"]


@pytest.mark.parametrize("n", [200, 1_000])
@pytest.mark.parametrize("shift", [0, -700, 2**61])
@pytest.mark.parametrize("few", [1, 10**9])
def test_seams_between_parts_by_time(
    n: int, shift: int, few: int, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tuples are few, so that keys and whole stretches of time have none; windows are of any length."""
    monkeypatch.setattr(steps_module, "LEAST_SLICES", few)
    monkeypatch.setattr(by_time_module, "LONG", 1)
    rng = np.random.default_rng(n)
    for seed in range(12):
        table = nearly_in_order(n, 5 + seed, late=seed)
        table = table.set_column(0, "t", pa.array(table["t"].to_numpy() + shift))
        length, every = rng.integers(1, 300, 2).tolist()
        windows = {"a": w.sliding(length, every, offset=seed), "b": w.tumbling(7), "c": w.sliding(40, 9)}
        query = mt.windows(**windows).aggregate(**AGGREGATES["sums"]).by("k").on("t")
        for threads in (2, 3, 4):
            assert seen(query.run(table, threads=threads)) == seen(query.run(table))
    assert ("time" in ways) == (few == 1)


@pytest.mark.parametrize("windows", ["edges", "sessions"])
def test_a_piece_may_have_rows_anywhere(
    windows: str, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also among all others, or all rows with those of another piece among them."""
    monkeypatch.setattr(by_time_module, "LONG", 1)
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES["sums"]).by("j").on("t")
    table = nearly_in_order(20_000, 9, late=0)
    for late, first in ((0.15, 0.99), (0.85, 0.9), (0.5, 0.51), (0.15, 0.0)):
        times = table["t"].to_numpy().copy()
        # The one in the middle tells where the pieces meet.
        times[10_000], times[0] = times[int(late * 20_000)], times[int(first * 20_000)]
        given = table.set_column(0, "t", pa.array(times))
        assert seen(query.run(given, threads=2)) == seen(query.run(given))
    assert "keys" in ways
    assert {"edges": "time", "sessions": "pieces"}[windows] in ways


def test_few_slices_are_combined_by_one_thread(ways: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_module, "LEAST_SLICES", 20_000)
    query = mt.windows(**WINDOWS["time"]).aggregate(**AGGREGATES["sums"]).by("j").on("t")
    table = nearly_in_order(20_000, 9)
    taken: list[int] = []
    add = step_module.add
    monkeypatch.setattr(step_module, "add", lambda *given: (taken.append(1), add(*given))[1])
    assert seen(query.run(table, threads=2)) == seen(query.run(table))
    assert ways == ["pieces"]
    assert len(taken) == 1  # of the run on one thread: on two the tuples are not sliced again


@pytest.mark.parametrize("keys", [range(7), [5, 5, 9, 2**40, 5], range(20_000), [-(2**63), 2**63 - 1, 0]])
def test_integer_keys_are_numbered_as_they_come(keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first tuples do not show all of them."""
    given = np.resize(np.array(keys, dtype=np.int64), 20_000)
    table = pa.table({"t": np.arange(20_000), "k": np.concatenate([given[:50].repeat(20), given])[:20_000]})
    query = mt.windows(all=w.tumbling(30_000)).aggregate(n=a.count()).by("k").on("t")
    for few in (1, 100, 1500):
        monkeypatch.setattr(numbering_module, "FIRST", few)
        for threads in (2, 3):
            assert seen(query.run(table, threads=threads)) == seen(query.run(table))


def test_pieces_are_left_alone_where_slices_have_few_tuples(ways: list[str]) -> None:
    windows = {"ten": w.tumbling(10), "grown": w.cumulate(50, 10)}
    query = mt.windows(**windows).aggregate(total=a.sum("f")).by("k").on("t")
    table = nearly_in_order(20_000, 2_000)
    assert seen(query.run(table, threads=2)) == seen(query.run(table))
    assert ways == ["keys"]


def test_an_error_in_a_piece_is_that_of_one_thread() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t")
    table = {"t": [*range(40)], "k": [1, 2] * 20, "v": [2**62] * 40}
    with pytest.raises(DataError) as alone:
        query.run(table)
    with pytest.raises(DataError, match=f"^{re.escape(str(alone.value))}$"):
        query.run(table, threads=3)


def test_a_hot_key_and_keys_without_tuples_of_their_own(parts: list[int]) -> None:
    windows = {"ten": w.tumbling(10), "visit": w.session(3)}
    query = mt.windows(**windows).aggregate(total=a.sum("f"), middle=a.median("f")).by("k").on("t")
    table = nearly_in_order(2_000, 3)
    hot = pa.array(np.where(np.arange(2_000) % 50 < 48, 0, np.arange(2_000) % 7), pa.int64())
    table = table.set_column(1, "k", hot)
    assert seen(query.run(table, threads=4)) == seen(query.run(table))
    assert 1 < parts[0] <= 4


def test_tuples_so_far_apart_that_not_all_edges_are_listed(parts: list[int]) -> None:
    query = mt.windows(seven=w.tumbling(7), visit=w.session(50)).aggregate(**AGGREGATES["sums"]).by("k")
    table = stream(400, 9)
    table = table.set_column(0, "t", pa.array(table["t"].to_numpy() * 10**9 // 7))
    assert seen(query.on("t").run(table, threads=3)) == seen(query.on("t").run(table))
    assert parts == [3]


def test_many_tuples_of_many_keys(parts: list[int]) -> None:
    query = mt.windows(hundred=w.tumbling(100)).aggregate(**AGGREGATES["sums"]).by("k").on("t")
    table = stream(150_000, 5_000)  # enough for keys to be numbered in pieces
    assert query.run(table, threads=2) == query.run(table)
    assert parts == [2]


def test_tuples_that_say_themselves_in_which_order_they_came(parts: list[int]) -> None:
    query = mt.windows(ten=w.tumbling(10), c=w.count(7)).aggregate(all=a.collect("i")).by("k").on("t")
    table = stream(300, 5)
    arrival = pa.array(np.random.default_rng(1).permutation(300))
    asked = table.append_column(ARRIVAL, arrival)
    assert seen(query.run(asked, threads=3)) == seen(query.run(asked))
    in_turn = query.run(table.take(np.argsort(arrival.to_numpy())))  # where keys come in another order
    assert sorted(query.run(asked).to_pylist(), key=repr) == sorted(in_turn.to_pylist(), key=repr)
    assert parts == [3]


def test_early_results_and_updates(parts: list[int]) -> None:
    query = mt.windows(**WINDOWS["sessions"]).aggregate(**AGGREGATES["sums"]).by("k")
    query = query.on("t", early=mt.each_batch(), allowed_lateness=20)
    table = stream(500, 7)
    assert seen(query.run(table, threads=3)) == seen(query.run(table))
    assert parts == [3]


@pytest.mark.parametrize("bad", ["skip", "route", "fail"])
def test_bad_tuples(bad: str, caplog: pytest.LogCaptureFixture) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t", bad=bad)
    rows = [{"t": i % 50, "k": i % 7, "v": i / 3} for i in range(100)]
    rows[41] |= {"t": None}
    rows[60] |= {"v": "much"}
    if bad == "fail":
        with pytest.raises(DataError) as alone:
            query.run(rows)
        with pytest.raises(DataError, match=f"^{re.escape(str(alone.value))}$"):
            query.run(rows, threads=2)
        return
    with caplog.at_level(logging.WARNING):
        assert seen(query.run(rows, threads=2)) == seen(query.run(rows))
    assert len({record.getMessage() for record in caplog.records}) == 1
    assert len(caplog.records) == 2


@pytest.mark.parametrize("windows", ["edges", "sessions", "tuples"])
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_an_error_without_parts_is_raised(
    windows: str, keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are none, or they are given up, or there are too few slices to share."""
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES["sums"]).by(*keys).on("t")

    def refuse(*_: Any) -> None:
        raise DataError("no")

    monkeypatch.setattr(step_module, "add", refuse)
    monkeypatch.setattr(steps_module, "add_slices", refuse)
    for few, table in ((1, stream(500, 9)), (10**6, nearly_in_order(500, 9))):
        monkeypatch.setattr(steps_module, "LEAST_SLICES", few)
        with pytest.raises(DataError, match=r"^no$"):
            query.run(table, threads=2)


def test_an_error_in_a_part_is_that_of_one_thread(parts: list[int]) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t")
    table = {"t": [1, 2, 3, 4], "k": ["a", "b", "b", "c"], "v": [1, 2**62, 2**62, 1]}
    with pytest.raises(DataError) as alone:
        query.run(table)
    with pytest.raises(DataError, match=f"^{re.escape(str(alone.value))}$"):
        query.run(table, threads=2)
    assert parts == [2, 0]


def test_an_error_in_a_part_by_time_is_that_of_one_thread(ways: list[str]) -> None:
    """Slices fit, and so do the windows of one piece; those of another do not."""
    query = mt.windows(long=w.sliding(20, 10)).aggregate(total=a.sum("v")).by("k").on("t")
    times = np.arange(4_000) // 2
    values = np.where((times >= 1_500) & (times < 1_520), 2**62 // 20 + 1, 1)
    table = pa.table({"t": times, "k": times * 0, "v": values})
    with pytest.raises(DataError) as alone:
        query.run(table)
    with pytest.raises(DataError, match=f"^{re.escape(str(alone.value))}$"):
        query.run(table, threads=2)
    assert ways[0] == "time"


@pytest.mark.parametrize("most", [10_000, 16_000, 20_000])
def test_a_flood_is_judged_as_a_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_limit, "MOST", most)
    query = mt.windows(ten=w.tumbling(10, emit_empty=True)).aggregate(n=a.count()).by("k").on("t")
    table = {"t": [0, 0, 0, 70_000, 70_000, 7_000], "k": [1, 2, 3, 1, 2, 3]}
    outcomes = []
    for threads in (1, 2, 3):
        try:
            outcomes.append(seen(query.run(table, threads=threads)))
        except DataError as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert (outcomes[0][0] is DataError) == (most < 14_000)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"t": [], "k": [], "v": []},
        {"t": 5, "k": "a", "v": 1.0},
        [{"t": 5, "k": "a", "v": 1.0}, {"t": 7, "k": None, "v": 0.5}],
        {"t": [5, 6, 7], "k": [0.0, -0.0, float("nan")], "v": [1, 2, 3]},
        {"t": [None, None], "k": ["a", "b"], "v": [1, 2]},
        pa.RecordBatchReader,
    ],
)
def test_whatever_holds_tuples(data: Any) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t", bad="skip")

    def fresh() -> Any:
        if data is not pa.RecordBatchReader:
            return data
        return pa.table({"t": [1, 2], "k": ["a", "b"], "v": [2**63 - 1, 1]}).to_reader()  # read once

    assert seen(query.run(fresh(), threads=4)) == seen(query.run(fresh()))


@pytest.mark.parametrize(
    "query",
    [
        mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("f")).on("t"),
        mt.windows(ten=w.tumbling(10)).aggregate(x=a.aggregate("i", lift=abs, combine=max)).by("k").on("t"),
        mt.windows(ten=w.tumbling(10)).aggregate(x=a.approx_count_distinct("i")).by("k").on("t"),
        mt.windows(d=w.discretize(lambda r: (1, 0))).aggregate(n=a.count()).by("k").on("t"),
        mt.windows(long=w.sliding(1000, 1)).aggregate(total=a.sum("f")).by("k").on("t"),
    ],
    ids=["no key", "own function", "sketch", "own window", "a tree of floats"],
)
def test_one_thread_does_it_alone(query: Any, parts: list[int]) -> None:
    table = stream(300, 5)
    assert seen(query.run(table, threads=2)) == seen(query.run(table))
    assert parts in ([], [0])


def test_a_tree_of_whole_numbers_is_split(parts: list[int]) -> None:
    query = mt.windows(long=w.sliding(1000, 1)).aggregate(total=a.sum("i")).by("k").on("t")
    table = stream(300, 5)
    assert seen(query.run(table, threads=2)) == seen(query.run(table))
    assert parts == [2]


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two", None])
def test_a_number_of_threads_that_makes_no_sense(threads: Any) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    with pytest.raises(QueryError, match=r"threads must be a whole number from 1 on: got .*cpu_count"):
        query.run({"t": [1]}, threads=threads)


@pytest.mark.parametrize("keys", [1, 40, 4_000])
def test_results_of_parts_are_moved_as_ranges_or_by_row(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys have their windows of one end in a row; sessions never do."""
    moved: list[int] = []
    of_sorted = InTurn.of_sorted
    monkeypatch.setattr(InTurn, "of_sorted", lambda parts: (moved.append(len(parts)), of_sorted(parts))[1])
    for windows, expected in (("time", [6] if keys == 4_000 else []), ("sessions", [])):
        query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES["sums"]).by("k").on("t")
        table = stream(40_000, keys)
        found = query.run(table, threads=3)
        assert seen(found) == seen(query.run(table))
        found.to_arrow(nested=True).validate(full=True)
        assert moved == expected
        moved.clear()


def test_a_batch_of_one_key_out_of_order_goes_to_its_key() -> None:
    """Its slices are made without the number of the key, which is not the first that the operator knows."""
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).by("k").on("t")
    both = pa.record_batch({"t": [1, 2], "k": ["a", "b"], "v": [1, 2]})
    times = np.arange(400) // 4 + 3
    times[::7] -= 2
    late_key = pa.record_batch({"t": times, "k": ["b"] * 400, "v": np.arange(400)})
    operators = [query.operator(), query.operator(threads=2)]
    one, two = ([op.process(both), op.process(late_key), op.advance(60), op.finish()] for op in operators)
    assert [table.to_pylist() for table in two] == [table.to_pylist() for table in one]


def test_early_results_are_ordered_among_final_ones() -> None:
    query = mt.windows(x=w.delta("v", by=3)).aggregate(n=a.count()).by("k").on("t", early=mt.every(10))
    keys = np.where(np.arange(200) < 2, 7, np.arange(200) % 7)  # one is silent after two tuples
    tuples = pa.record_batch({"t": np.arange(200) // 2, "k": keys, "v": np.arange(200) % 11})
    operators = [query.operator(), query.operator(threads=3)]
    one, two = ([op.process(tuples), op.advance(60), op.advance(75)] for op in operators)
    assert {*mt.Results.concat(one)["kind"].to_pylist()} == {"early", "final"}
    assert [table.to_pylist() for table in two] == [table.to_pylist() for table in one]
