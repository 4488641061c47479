"""Snapshots with a right checksum and wrong contents: how they are made, and what must become of them.

Run as a program, it is a worker: each line of its input names an operator and a seed, each line of its
output says what became of the snapshot forged so. Whatever crashes ends the worker alone.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import MuntinError
from muntin.slicing.snapshots import archive
from muntin.windows import ForwardContextAware, ForwardContextFree

ROOM = 3 << 30
"""Bytes of memory that a worker may take beyond those that it has when it begins."""
NUMBERS = (0, 1, -1, 7, 2**31, 2**40, -(2**40), 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
OTHERS = (None, True, 1.5, float("nan"), 10**30, -(10**30), "", "x", [], {}, [[]], {"x": 1}, 10**12)


class Pairs(ForwardContextFree):
    """Windows between two values above 6, in the user's code."""

    columns = ("v",)

    def observe(self, state: Any, record: Any) -> tuple[Any, int, int]:
        high = record["v"] > 6
        return (state or 0) + 1, int(high), int(high and bool(state))


class Peaks(ForwardContextAware):
    """Each new highest value, with the two tuples before it, in the user's code."""

    columns = ("v",)

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        if state is not None and record["v"] <= state:
            return state, []
        return record["v"], [(max(0, record.rank - 2), record.rank + 1)]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


def _summed(commutative: bool) -> Any:
    return a.aggregate(
        "v", lift=lambda v: (1, v), combine=lambda p, q: (p[0] + q[0], p[1] + q[1]),
        lower=lambda p: p[1] / p[0], name="mean", commutative=commutative,
    )  # fmt: skip


def _joined() -> Any:
    return a.aggregate(
        "s", lift=lambda s: (s,), combine=lambda p, q: (p + q)[:4], lower=lambda p: "".join(p),
        type=pa.string(), commutative=False, name="texts",
    )  # fmt: skip


FEW = {"n": a.count(), "total": a.sum("v")}
MANY = {
    "n": a.count(), "f": a.sum("f"), "d": a.sum("d"), "x": a.stddev("f"), "ku": a.kurtosis("v"),
    "c": a.correlation("v", "f"), "lo": a.min("s"), "hi": a.max("f"), "m": a.max_count("v"),
    "b": a.bit_or("v"), "h": a.histogram("v", edges=[0, 3, 6, 10]), "g": a.geometric_mean("f"),
    "w": a.weighted_mean("f", weight="v"), "e": a.every("flag"),
}  # fmt: skip
HOLDING = {
    "middle": a.median("v"), "p": a.quantile("f", 0.9), "all": a.collect("s"), "set": a.collect_set("s"),
    "distinct": a.count_distinct("s"), "mode": a.mode("v"), "text": a.concat("s", ","), "nth": a.nth("s", 2),
    "top": a.top_k("f", 3), "first": a.first("s"), "arg": a.arg_max("s", by="f"), "m4": a.m4("f"),
    "bayes": a.naive_bayes("s", ["v"]),
}  # fmt: skip
SKETCHED = {
    "hll": a.approx_count_distinct("s"), "kll": a.approx_quantile("f", 0.5), "theta": a.theta("v", lg_k=5),
    "often": a.frequent_items("s", lg_size=4), "cm": a.count_min("s", ["s1"], error=0.1),
    "bloom": a.bloom("s", size=20),
}  # fmt: skip
OWN = {"mean": _summed(True), "ordered": _summed(False), "text": _joined()}

Shape = Callable[[], Any]
SHAPES: dict[str, Shape] = {
    "tumbling": lambda: mt.windows(x=w.tumbling(10)).aggregate(**FEW).by("k").on("t"),
    "keyless": lambda: mt.windows(x=w.sliding(20, every=7)).aggregate(**FEW).on("t", allowed_lateness=9),
    "sessions": lambda: (
        mt.windows(x=w.session(3), y=w.session(6)).aggregate(**FEW).by("k")
        .on("t", allowed_lateness=15, late="route", bad="route")
    ),
    "count": lambda: mt.windows(x=w.count(6, every=4)).aggregate(**FEW).by("k").on("t", allowed_lateness=15),
    "driven": lambda: (
        mt.windows(
            p=w.punctuation(mt.col("v") == 5), t=w.threshold(mt.col("v") > 3), d=w.delta("v", by=4),
            c=w.session(3, max_length=12), u=w.until(a.sum("v"), 30),
        ).aggregate(**FEW).by("k").on("t", allowed_lateness=8)
    ),
    "aware": lambda: (
        mt.windows(l=w.last(4, every=10), s=w.slide_by_tuple(9, every=3), x=w.session(4))
        .aggregate(**FEW).by("k").on("t", allowed_lateness=8)
    ),
    "empty": lambda: (
        mt.windows(e=w.tumbling(5, emit_empty=True), l=w.landmark(0, every=25), c=w.cumulate(20, step=5))
        .aggregate(**FEW).by("k").on("t", allowed_lateness=8)
    ),
    "measured": lambda: (
        mt.windows(
            x=w.sliding(15, every=5, measure="m"), s=w.session(3, measure="m"),
            c=w.cumulate(20, step=5, measure="m"), b=w.boundary("v", step=4),
        ).aggregate(**FEW).by("k").on("t", allowed_lateness=5)
    ),
    "early": lambda: (
        mt.windows(x=w.tumbling(10), s=w.session(4), c=w.count(5)).aggregate(**FEW, top=a.max("s")).by("k")
        .on("t", early=mt.each_batch(), allowed_lateness=5)
    ),
    "forgotten": lambda: (
        mt.windows(
            x=w.count(6, every=4), l=w.last(4, every=10), e=w.tumbling(5, emit_empty=True),
            m=w.sliding(15, every=5, measure="m"),
        ).aggregate(**FEW).by("k").on("t", allowed_lateness=8, forget_keys_after=7, late="route")
    ),
    "many": lambda: mt.windows(x=w.tumbling(10)).aggregate(**MANY).by("k", "j").on("t", allowed_lateness=5),
    "holding": lambda: mt.windows(x=w.sliding(20, every=10)).aggregate(**HOLDING).by("k").on("t"),
    "sketched": lambda: mt.windows(x=w.sliding(20, every=10)).aggregate(**SKETCHED).by("j").on("t"),
    "own": lambda: mt.windows(x=w.sliding(20, every=10)).aggregate(**OWN).by("k").on("t"),
    "own_windows": lambda: (
        mt.windows(f=Pairs(), p=Peaks()).aggregate(**FEW).by("k").on("t", allowed_lateness=4)
    ),
}  # fmt: skip

SCHEMA = pa.schema(
    [
        ("t", pa.int64()), ("k", pa.string()), ("j", pa.int32()), ("v", pa.int64()), ("f", pa.float64()),
        ("d", pa.decimal128(24, 2)), ("m", pa.int64()), ("s", pa.string()), ("flag", pa.bool_()),
    ]
)  # fmt: skip


def tuples(begin: int, end: int, seed: int = 3) -> pa.Table:
    """Tuples of a stream, somewhat out of order."""
    rng = np.random.default_rng(seed)
    i = np.arange(begin, end)
    time = i + (i // 40) * 8 - rng.integers(0, 12, len(i))
    v = rng.integers(0, 10, len(i))
    columns = {
        "t": time, "k": np.array(["a", "b", "c"])[i % 3], "j": i % 5, "v": v,
        "f": rng.normal(5, 2, len(i)) ** 2 + 1, "d": v, "m": i, "s": [f"s{x}" for x in v], "flag": v > 2,
    }  # fmt: skip
    return pa.table({name: pa.array(columns[name]).cast(SCHEMA.field(name).type) for name in SCHEMA.names})


@cache
def saved(name: str) -> bytes:
    """The snapshot of a running operator of this name, with all kinds of tables."""
    op = SHAPES[name]().operator()
    for begin in range(0, 200, 50):
        op.process(tuples(begin, begin + 50, begin))
        if begin:
            op.advance(begin + (begin // 40) * 8 - 5)
    op.process(tuples(60, 70))  # late ones, some of which wait
    op.process(tuples(200, 210))
    return op.snapshot()


def go_on(op: Operator, query: Any) -> None:
    """What a user does with an operator that was restored."""
    op.stats()
    op.process(tuples(195, 230))
    op.advance(250)
    op.take_late(), op.take_bad()
    again = op.snapshot()
    op.finish()
    Operator.restore(again, query)


# Forging. -------------------------------------------------------------------------------------------


NESTED = "nested too deeply"
"""Stands for lists in lists, which Python's encoder of JSON would refuse to write."""


def forged(name: str, seed: int) -> bytes:
    """A snapshot with a right checksum and something wrong in it."""
    random = Random(f"{name} {seed}")
    header, tables = archive.unpack(saved(name))
    return _forged(header, tables, random)


def packed(header: dict[str, Any], tables: dict[str, pa.Table], **options: Any) -> bytes:
    """A snapshot of these; its header may be nested too deeply."""
    with patch.object(archive, "json", SimpleNamespace(dumps=json_text)):
        return archive.pack(header, tables, **options)


def json_text(value: Any, **options: Any) -> str:
    """The JSON of a value that `change_value` has changed."""
    return json.dumps(value, **options).replace(json.dumps(NESTED), "[" * 5_000 + "1" + "]" * 5_000)


def _forged(header: dict[str, Any], tables: dict[str, pa.Table], random: Random) -> bytes:
    kind = random.choice(["header", "table", "table", "bytes", "bytes"])
    if kind == "bytes":
        data = archive.pack(header, tables, checked=False)
        size = int.from_bytes(data[8:16], "big")
        # Mostly in the tables: their numbers and offsets lie at multiples of 8.
        broken = data[:8] + with_other_bytes(data[8:], random, 0 if random.random() < 0.1 else 8 + size)
        return broken + archive._checksum([broken])
    for _ in range(random.choice([1, 1, 2])):
        if kind == "header":
            change_value(header, random)
        else:
            change_table(tables, random)
    return packed(header, tables)


def change_value(value: Any, random: Random) -> None:
    """Replace, or remove, one value somewhere inside a dictionary or a list."""
    while True:
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not places:
            return
        place = random.choice(places)
        inner = value[place]
        if not isinstance(inner, dict | list) or not inner or random.random() < 0.3:
            break
        value = inner
    what = random.randrange(6)
    if what == 0:
        del value[place]
    elif what == 1:
        value[place] = NESTED
    elif what == 2 and isinstance(value, list):
        value.append(inner)
    elif what < 5:
        value[place] = random.choice(NUMBERS)
    else:
        value[place] = random.choice(OTHERS)


def change_table(tables: dict[str, pa.Table], random: Random) -> None:
    """Change one of the tables, or which there are."""
    path = random.choice(sorted(tables))
    table = tables[path]
    what = random.randrange(16)
    if what == 0:
        del tables[path]
    elif what == 1:
        tables[path] = tables[random.choice(sorted(tables))]
    elif what == 2:
        tables[f"{path.partition('/')[0]}/{random.choice(['x', 'y', '0', '../z', ''])}"] = table
    elif what == 3:
        tables[path] = table.slice(random.randrange(len(table) + 1))
    elif what == 4:
        tables[path] = table.slice(0, random.randrange(len(table) + 1))
    elif what == 5:
        tables[path] = pa.concat_tables([table] * random.choice([2, 3]))
    elif what == 6 and len(table):
        order = list(range(len(table)))
        random.shuffle(order)
        tables[path] = table.take(pa.array(order))
    elif table.num_columns:
        tables[path] = _with_other_column(table, random, what)


def _with_other_column(table: pa.Table, random: Random, what: int) -> pa.Table:
    i = random.randrange(table.num_columns)
    name, column = table.column_names[i], table.column(i)
    if what == 7:
        return table.remove_column(i)
    if what == 8:
        return table.append_column(random.choice(["x", name, "0/0", "9/9"]), column)
    if what == 9:
        return table.set_column(i, name, table.column(random.randrange(table.num_columns)))
    if what == 10:
        return table.set_column(i, name, pa.nulls(len(table), column.type))
    if what == 11:
        kind = random.choice(
            [pa.int32(), pa.float64(), pa.string(), pa.binary(), pa.uint64(), pa.bool_(), pa.null()]
        )
        try:
            return table.set_column(i, name, column.cast(kind))
        except pa.ArrowException:
            return table.set_column(i, name, pa.nulls(len(table), kind))
    if str(column.type).endswith(("binary", "string")) and len(table) and what < 15:
        values = column.to_pylist()
        place = random.randrange(len(values))
        values[place] = _with_other_content(values[place], random)
        return table.set_column(i, name, pa.array(values, column.type))
    if pa.types.is_integer(column.type) and len(table):
        values = column.to_pylist()
        for _ in range(random.choice([1, 1, 3, len(values)])):
            place = random.randrange(len(values))
            info = np.iinfo(column.type.to_pandas_dtype())
            near = (values[place] or 0) + random.choice([-1, 1, 2, -7, 100])
            value = random.choice([near, near, *NUMBERS])
            values[place] = value if info.min <= value <= info.max and what < 15 else None
        return table.set_column(i, name, pa.array(values, column.type))
    if len(table):
        mask = [random.random() < 0.5 for _ in range(len(table))]
        return table.set_column(i, name, pa.chunked_array([_masked(column.combine_chunks(), mask)]))
    return table


def _with_other_content(value: Any, random: Random) -> Any:
    if not value:
        return value
    if isinstance(value, str):
        return random.choice(
            [
                "",
                "x",
                "null",
                "[]",
                "[1, 2]",
                '{"tuple": [1]}',
                "[" * 9_999,
                "1e999",
                value + value,
                value[:-1],
            ]
        )
    changed = bytearray(value)
    for _ in range(random.choice([1, 2, 8])):
        changed[random.randrange(min(len(changed), random.choice([16, len(changed)])))] = random.randrange(
            256
        )
    return bytes(changed)[: random.choice([len(changed), len(changed), random.randrange(len(changed) + 1)])]


def _masked(array: pa.Array, mask: list[bool]) -> pa.Array:
    index = pa.array([None if hide else i for i, hide in enumerate(mask)], pa.int64())
    return array.take(index)


def with_other_bytes(data: bytes, random: Random, low: int = 0) -> bytes:
    """The bytes with others in some places from `low` on."""
    broken = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.randrange(low, len(broken))
        what = random.randrange(5)
        if what == 0:
            broken[at] ^= 1 << random.randrange(8)
        elif what == 1:
            del broken[at : at + random.choice([1, 8, 64])]
        elif what == 2:
            broken[at:at] = bytes(random.choice([1, 8, 64]))
        else:
            at -= at % 8
            broken[at : at + 8] = random.choice(NUMBERS).to_bytes(8, "little", signed=True)
    return bytes(broken)


# The worker. ----------------------------------------------------------------------------------------


def outcome(restore: Callable[[], Any], go_on: Callable[[Any], None]) -> str:
    """What became of something forged: it is refused, it runs, it fails with an error of Muntin, or WRONG."""
    try:
        restored = restore()
    except MuntinError as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001  # which is what is looked for
        return f"WRONG at restore: {type(error).__name__}: {error}"
    try:
        go_on(restored)
    except MuntinError as error:
        return f"fails: {error}"
    except Exception as error:  # noqa: BLE001
        return f"WRONG afterwards: {type(error).__name__}: {error}"
    return "runs"


def became_of(name: str, seed: str) -> str:
    """What became of a forged snapshot."""
    data, query = forged(name, int(seed)), SHAPES[name]()
    return outcome(lambda: Operator.restore(data, query), lambda op: go_on(op, query))


def prepare() -> None:
    """Compile what is needed."""
    for name in SHAPES:
        go_on(Operator.restore(saved(name), SHAPES[name]()), SHAPES[name]())


def serve(prepare: Callable[[], None], answer: Callable[..., str]) -> None:
    """Answer each line of the input; memory is bounded once all is compiled."""
    prepare()
    status = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (held + ROOM, held + ROOM))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(answer(*line.split()).replace("\n", " ")[:400] + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(prepare, became_of)
