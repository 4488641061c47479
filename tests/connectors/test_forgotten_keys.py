"""Silent keys in the key groups of Spark: each step goes through the state store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.slicing.key_compaction import LEAST_KEYS

sys.path.insert(0, str(Path(__file__).parent))
from key_group import KeyGroup  # beside this file, not installed

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
WINDOWS = {
    "c": w.count(3, emit_partial=True),
    "p": w.punctuation(mt.col("v") == 0),
    "last": w.last(2, every=10),
    "empty": w.tumbling(10, emit_empty=True),
    "km": w.tumbling(2, measure="v"),
}


def query(**on: Any) -> mt.Query:
    return mt.windows(**WINDOWS).aggregate(all=a.collect("v")).by("k").on("t", **on)


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(
        f"{row['window_name']} {row['k']} {row['window']} {row['all']} {row['kind']} {row['revision']}"
        for row in rows
    )


@pytest.mark.parametrize("lateness", [0, 25])
def test_a_key_group_gives_what_an_operator_gives(lateness: int) -> None:
    asked = query(forget_keys_after=20, allowed_lateness=lateness)
    steps: list[tuple[list[tuple[int, int, int]], int]] = [
        ([(1, 1, 0), (2, 1, 1), (3, 2, 0)], 5),
        ([(12, 1, 1), (9, 2, 3)], 15),
        ([], 28),
        ([], 33),
        ([(33, 1, 0), (34, 1, 1), (40, 2, 2)], 41),
        ([(28, 1, 5), (17, 2, 1)], 45),
        ([], 90),
        ([(95, 2, 0)], 200),
        ([], 300),
    ]
    for warm in (False, True):
        group, op = KeyGroup(asked, SCHEMA, warm=warm), asked.operator()
        for rows, watermark in steps:
            if rows:
                columns = zip(*rows, strict=True)
                op.process(pa.table([pa.array(c, pa.int64()) for c in columns], schema=SCHEMA))
            # The watermark alone moves a group on, as the timer does.
            found = group.step(rows, arrival=range(len(rows)), watermark=watermark)
            assert shown(found) == shown(op.advance(watermark).to_pylist()), watermark
        assert group.load().operator.state.slices.n.sum() == 0


def test_the_state_of_a_group_stays_bounded_while_keys_come_and_go() -> None:
    largest = {}
    for forget in (None, 50):
        group = KeyGroup(query(forget_keys_after=forget), SCHEMA, warm=True)
        sizes = []
        for step in range(60):
            group.step([(step * 10 + n % 10, step * 60 + n, n % 3) for n in range(60)], watermark=step * 10)
            sizes.append(sum(map(len, group.parts.values())))
        # Keys are dropped when there are twice as many as were alive, so it goes up and down.
        largest[forget] = max(sizes[:30]), max(sizes[30:]), len(group.load().operator.state.keys)
    early, late, keys = largest[50]
    assert late < 1.2 * early
    assert keys <= 2 * LEAST_KEYS
    early, late, keys = largest[None]
    assert late > 1.7 * early
    assert keys == 60 * 60
