"""Every aggregate over every type in a whole stream: late tuples, nulls, empty windows, snapshots, filters.

The oracle recomputes every window. Which aggregates take a type is found by binding them.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates.base import Aggregate
from muntin.errors import DataError
from muntin.testing.scenarios import Action, Scenario, check

NAN, INF = math.nan, math.inf
NOON, LONG_AGO = dt.datetime(2024, 2, 29, 12), dt.datetime(1960, 1, 1)

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [0, 1, -1, 127, -128, None]),
    "i16": (pa.int16(), [0, 5, -7, 32767, None]),
    "i32": (pa.int32(), [0, 5, -7, 2**31 - 1, -(2**31), None]),
    "i64": (pa.int64(), [0, 1, -1, 2**40, -5, 2**55, None]),
    "u8": (pa.uint8(), [0, 255, 3, None]),
    "u32": (pa.uint32(), [0, 2**32 - 1, 7, None]),
    "u64": (pa.uint64(), [0, 1, 2**40, 2**55, None]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, NAN, INF, -INF, None]),
    "f64": (pa.float64(), [0.0, -0.0, 2.5, NAN, 1e9 + 0.25, -3.0, None]),
    "decimal": (pa.decimal128(9, 2), [Decimal(n).scaleb(-2) for n in (0, 125, -310, 999999999)] + [None]),
    "wide": (pa.decimal128(30, 4), [Decimal(n).scaleb(-4) for n in (0, 10**22, -5)] + [None]),
    "bool": (pa.bool_(), [True, False, None]),
    "string": (pa.string(), ["", "a", "ä", "zz", "b", None]),
    "large": (pa.large_string(), ["", "a", "b", None]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
    "binary": (pa.binary(), [b"", b"a", b"\xff", None]),
    "date": (pa.date32(), [NOON.date(), dt.date(1969, 7, 20), None]),
    "moment": (pa.timestamp("us", "UTC"), [*(one.replace(tzinfo=dt.UTC) for one in (NOON, LONG_AGO)), None]),
    "second": (pa.timestamp("s"), [NOON, LONG_AGO, None]),
    "time": (pa.time64("us"), [dt.time(1, 2), dt.time(0), None]),
    "span": (pa.duration("us"), [dt.timedelta(0), dt.timedelta(3), dt.timedelta(milliseconds=-250), None]),
    "nulls": (pa.float64(), [None]),
}  # fmt: skip

ARGUMENTS: dict[str, dict[str, Any]] = {
    "approx_quantile": {"q": 0.5},
    "bloom": {"size": 20, "error": 0.1},
    "histogram": {"edges": [0, 1, 5]},
    "naive_bayes": {"columns": ["y"]},
    "nth": {"n": 2},
    "percentiles": {"q": [0.3, 0.9]},
    "quantile": {"q": 0.3},
    "top_k": {"k": 2},
}


def aggregates_over(column: str, condition: str | None) -> dict[str, Aggregate]:
    """All that have a meaning for the column."""
    type_ = COLUMNS[column][0]
    found = {}
    for name in a.__all__:
        if not name.islower() or name in ("aggregate", "col"):
            continue
        constructor = getattr(a, name)
        others = getattr(constructor, "column_fields", ("column",))[1:]
        arguments = ARGUMENTS.get(name, {}) | dict.fromkeys(others, "y")
        if name == "count_min":
            arguments["items"] = ["a"] if column in ("string", "large", "dictionary") else [1, 5]
        one = constructor(column, **arguments, filter=condition)
        try:
            one.bind((type_, *(pa.int64(),) * (len(one.inputs) - 1)))
        except DataError:
            continue
        found[name] = one
    return found


def scenario(column: str, condition: str | None) -> Scenario:
    rng = random.Random(f"{column} {condition}")
    named = {
        "short": w.tumbling(5),
        "slide": w.sliding(6, 3),
        "visit": w.session(3),
        "two": w.count(4, every=2),
    }
    if condition is None:
        named["empty"] = w.tumbling(4, emit_empty=True)
    query = mt.windows(**named).aggregate(**aggregates_over(column, condition)).by("k")
    actions: list[Action] = []
    time = number = 0
    for _ in range(4):
        rows = []
        for _ in range(rng.randrange(7)):
            time += rng.choice([0, 1, 1, 2, -3, -6, 8])
            number += 1
            row = {"t": time, "id": number, "k": rng.choice("xy"), "g": rng.choice([0, 1, None])}
            rows.append(row | {"y": rng.choice([1, 2, 5, None]), column: rng.choice(COLUMNS[column][1])})
        late = rng.randrange(6)
        actions += [Action("process", rows), Action("snapshot"), Action("advance", time - late)]
    own = [("t", pa.int64()), ("id", pa.int64()), ("k", pa.string()), ("g", pa.int64()), ("y", pa.int64())]
    schema = pa.schema([*own, (column, COLUMNS[column][0])])
    lateness = rng.choice([0, 5, 20])
    return Scenario(
        query.on("t", allowed_lateness=lateness, late="route"), schema, (*actions, Action("finish"))
    )


@pytest.mark.parametrize("condition", [None, "g > 0"])
@pytest.mark.parametrize("column", COLUMNS)
def test_against_the_oracle(column: str, condition: str | None) -> None:
    assert check(scenario(column, condition))


def test_no_aggregate_is_left_out() -> None:
    taken = {name for column in COLUMNS for name in aggregates_over(column, None)}
    assert taken == {name for name in a.__all__ if name.islower()} - {"aggregate", "col"}
