"""State parts and payloads on Spark with wrong contents: how they are made, and what must become of them.

A worker like that of `forging.py` in tests/core: each line of its input names what is forged ("state" or
"payload"), an operator and a seed.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
from forging import (
    SCHEMA,
    SHAPES,
    change_table,
    change_value,
    json_text,
    outcome,
    packed,
    serve,
    tuples,
    with_other_bytes,
)
from key_group import KeyGroup

from muntin.connectors.spark.group_state import write
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.step import Given, step
from muntin.connectors.spark.stored_query import WINDOWS
from muntin.connectors.spark.table_parts import DIGEST, from_body, plain_of, to_body
from muntin.slicing.binding import ARRIVAL
from muntin.slicing.snapshots import archive
from muntin.timeline import INF

QUERIES = f"{WINDOWS}#"
NAMES = ("tumbling", "keyless", "sessions", "count", "aware", "empty", "early", "many", "holding", "sketched")


def rows(begin: int, end: int) -> list[tuple[Any, ...]]:
    """Tuples in the order of their columns."""
    return [tuple(row.values()) for row in tuples(begin, end, begin).to_pylist()]


@cache
def saved(name: str) -> tuple[bytes, dict[str, bytes]]:
    """The head and the parts of a running key group."""
    group = KeyGroup(SHAPES[name](), SCHEMA)
    for begin in range(0, 200, 50):
        group.step(rows(begin, begin + 50), range(begin, begin + 50), watermark=begin + (begin // 40) * 8 - 5)
    group.step(rows(60, 70), range(300, 310))
    assert group.head is not None
    return group.head, group.parts


@cache
def payloads(name: str) -> tuple[bytes, ...]:
    """What a partition sends."""
    table = tuples(195, 230).append_column(GROUP, pa.array([0] * 35, pa.int32()))
    table = table.append_column(ARRIVAL, pa.array(range(35), pa.int64()))
    packer = PartitionPacker(SHAPES[name](), (0,), SCHEMA.append(pa.field(ARRIVAL, pa.int64())))
    return tuple(payload for _, payload in packer.pack(table.to_batches())[1] if payload is not None)


def go_on(name: str, head: bytes, parts: dict[str, bytes], given: tuple[bytes, ...]) -> None:
    """A step of a key group that was read from the state store."""
    group = KeyGroup(SHAPES[name](), SCHEMA)
    group.head, group.parts = head, parts
    stored = group.load()
    step(stored, group.job, Given(given, 260, watermark=250))
    written = write(stored)
    stay = {path: body for path, body in parts.items() if path not in written.gone}
    group.head, group.parts = written.head, stay | written.changed
    step(group.load(), group.job, Given(watermark=INF))


def forged_state(name: str, random: Random) -> tuple[bytes, dict[str, bytes]]:
    """A head and parts, of which some are changed."""
    head, parts = saved(name)
    parts = dict(parts)
    if random.random() < 0.3:
        _, queries = from_body(parts[QUERIES])
        texts = {"head": head, "queries": queries.column(0)[0].as_py()}
        which = random.choice(sorted(texts))
        found = json.loads(texts[which])
        change_value(found, random)
        text = json_text(found).encode()
        if which == "head":
            return text, parts
        table = pa.table({queries.column_names[0]: pa.array([text])})
        return head, parts | {QUERIES: to_body("", bytes(archive._to_ipc(table)))}
    for path in random.sample(sorted(parts), random.choice([1, 1, 2])):
        digest, table = from_body(parts[path])
        if random.random() < 0.2:
            parts[path] = parts[path][:DIGEST] + with_other_bytes(parts[path][DIGEST:], random)
        elif random.random() < 0.25:
            parts[path] = to_body(digest, with_other_bytes(bytes(plain_of(parts[path])), random))
        else:
            alone = {"only": table}
            change_table(alone, random)
            parts[path] = to_body(digest, bytes(archive._to_ipc(alone.get("only", table))))
    return head, parts


def forged_payload(name: str, random: Random) -> tuple[bytes, ...]:
    """Payloads, of which one is changed."""
    found = list(payloads(name))
    place = random.randrange(len(found))
    if random.random() < 0.4:
        found[place] = found[place][:8] + with_other_bytes(found[place][8:], random)
    else:
        header, tables = archive.unpack(found[place], checked=False)
        if random.random() < 0.2:
            change_value(header, random)
        else:
            change_table(tables, random)
        found[place] = packed(header, tables, checked=False)
    return tuple(found)


def became_of(what: str, name: str, seed: str) -> str:
    """What became of a forged state, or of a forged payload."""
    random = Random(f"{what} {name} {seed}")
    (head, parts), given = saved(name), payloads(name)
    if what == "state":
        head, parts = forged_state(name, random)
    else:
        given = forged_payload(name, random)
    return outcome(lambda: KeyGroup(SHAPES[name](), SCHEMA), lambda _: go_on(name, head, dict(parts), given))


def prepare() -> None:
    """Compile what is needed."""
    for name in NAMES:
        go_on(name, saved(name)[0], dict(saved(name)[1]), payloads(name))


if __name__ == "__main__":
    serve(prepare, became_of)
