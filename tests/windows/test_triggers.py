"""Triggers in time, without the record that fires, and the work of looking into the buffer."""

from __future__ import annotations

import random
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.windows import triggers


def all_but_ten(buffer: Any) -> int:
    return max(0, len(buffer) - 10)


def rows(results: mt.Results) -> list[tuple[Any, ...]]:
    return [
        (
            row["k"],
            row["window"]["start"],
            row["window"]["end"],
            row["kind"],
            row["revision"],
            tuple(row["ids"]),
        )
        for row in results.to_pylist()
    ]


@pytest.mark.parametrize("lateness", [0, 30])
@pytest.mark.parametrize("offset", [0, 2])
def test_every_5_seconds_the_last_10_records_equal_last(lateness: int, offset: int) -> None:
    """The example of the paper [cutty §3.2]: a trigger by time, an evictor by count."""
    mine, built_in = (
        mt.windows(x=window)
        .aggregate(ids=a.collect("id"))
        .by("k")
        .on("t", allowed_lateness=lateness)
        .operator()
        for window in (
            w.trigger(evict=all_but_ten, every=5, offset=offset),
            w.last(10, every=5, offset=offset),
        )
    )
    rng = random.Random(lateness + offset)
    times = sorted((rng.randrange(300) for _ in range(240)), key=lambda time: time + rng.randint(0, 40))
    for number, time in enumerate(times):
        for operator in (mine, built_in):
            operator.process({"t": time, "id": number, "k": number % 2})
        if number % 6 == 5:
            watermark = max(times[: number + 1]) - 20
            assert rows(mine.advance(watermark)) == rows(built_in.advance(watermark))
    assert rows(mine.finish()) == rows(built_in.finish())


def test_durations_on_timestamps() -> None:
    window = w.trigger(evict=all_but_ten, every="5 seconds")
    assert window.describe() == "trigger every 5 seconds, evict by all_but_ten"
    assert window != w.trigger(evict=all_but_ten, every="6 seconds")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trigger": len}, "evict must be a function: got null"),
        ({"evict": len}, "trigger must be a function: got null"),
        ({"evict": len, "trigger": 3, "every": 5}, "trigger must be a function: got 3"),
        ({"evict": len, "every": 0}, "every must be positive: got 0"),
        ({"evict": len, "every": 5, "offset": "1 second"}, "every and offset must be of one kind"),
        ({"evict": len, "trigger": len, "offset": 5}, "offset must come with every: got 5"),
        ({"evict": len, "trigger": len, "exclusive": 1}, "exclusive must be True or False: got 1"),
        ({"evict": len, "every": 5, "exclusive": True}, "exclusive must be left out with every: got True"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mt.MuntinError, match=message.replace("null", "(null|None)")):
        w.trigger(**options)


@pytest.mark.parametrize("every", [None, 50])
def test_a_step_makes_only_the_records_that_are_looked_at(
    every: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, each step made a record of every tuple in the buffer: 1,000 here."""
    made = [0]
    records_of = triggers.records_of

    def counting(tuples: Any) -> Any:
        record_at = records_of(tuples)

        def record(i: int, base: int) -> Any:
            made[0] += 1
            return record_at(i, base)

        return record

    monkeypatch.setattr(triggers, "records_of", counting)
    window = w.trigger(
        lambda buffer: buffer[-1].rank % 50 == 49, lambda buffer: max(0, len(buffer) - 1_000), every=every
    )
    operator = mt.windows(x=window).aggregate(n=a.count()).on("t").operator()
    for begin in range(0, 3_000, 50):
        operator.process({"t": list(range(begin, begin + 50))})
        operator.advance(begin + 50)
    operator.finish()
    assert made[0] <= 2 * 3_000 + 100  # once where it is sliced, once where it is final
