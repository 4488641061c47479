"""The state of a key group in Spark's state store: what a micro-batch did not change is not written.

An operator comes apart into named tables. Those that grow with the stream are split: slices, kept
tuples and remembered windows by time, keys by number. Each part is one entry of a map, and an entry
is written only when its bytes differ from what was written last. The head holds the plain values, a
digest of each part, and a token that changes with every step: a worker that still has the operator
of that token in memory does not read the parts at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from muntin.errors import SnapshotError
from muntin.query import QuerySpec
from muntin.slicing.archive import VERSION
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshot import assemble, current_spec, dismantle

__all__ = ["Stored", "Written", "read", "write"]

TIMED = {"slices": "first", "tuples": "time", "registry": "due"}
"""Tables that are split by time, and the column that holds it."""
KEYS_TOGETHER = 4096
MOST_PARTS = 48
"""Of one table; with more, the parts become longer."""


@dataclass(slots=True)
class Stored:
    """An operator, and what the state store holds of it."""

    operator: SlicingOperator
    token: str = ""
    digests: dict[str, str] = field(default_factory=dict)
    width: int = 1


@dataclass(frozen=True, slots=True)
class Written:
    """A step's changes: the new head, parts to write, parts to remove."""

    head: bytes
    changed: dict[str, bytes]
    gone: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that go into the state store."""
        return len(self.head) + sum(len(body) for body in self.changed.values())


def write(stored: Stored) -> Written:
    """What must be written so that `read` gives this operator again; `stored` takes note of it."""
    header, tables = dismantle(stored.operator, None)
    stored.width = _width(tables, stored.width)
    bodies = {path: _to_ipc(table) for path, table in _split(tables, stored.width)}
    digests = {path: hashlib.blake2b(body, digest_size=16).hexdigest() for path, body in bodies.items()}
    changed = {path: body for path, body in bodies.items() if stored.digests.get(path) != digests[path]}
    gone = tuple(path for path in stored.digests if path not in digests)
    stored.token, stored.digests = uuid4().hex, digests
    head = {
        "version": VERSION,
        "token": stored.token,
        "width": stored.width,
        "digests": digests,
        "header": header,
    }
    return Written(json.dumps(head).encode(), changed, gone)


def token_of(head: bytes) -> str:
    """The token of the step that wrote this head."""
    return str(json.loads(head)["token"])


def read(head: bytes, part: Callable[[str], bytes], query: QuerySpec) -> Stored:
    """The operator that was written; `part` looks up the parts."""
    found = json.loads(head)
    if found["version"] != VERSION:
        raise SnapshotError(
            f"the checkpoint has format version {found['version']}, this version of Muntin reads {VERSION}; "
            "start from a new checkpoint, or go on with the version that wrote it"
        )
    header = found["header"]
    if header["fingerprint"] != query.fingerprint():
        raise SnapshotError(_other_query(header, query))
    bodies = {path: pa.ipc.open_stream(pa.py_buffer(part(path))).read_all() for path in found["digests"]}
    operator = assemble(header, _joined(bodies), query)
    return Stored(operator, found["token"], found["digests"], found["width"])


def _other_query(header: dict[str, Any], query: QuerySpec) -> str:
    before = {name: text for name, text, *_ in header["windows"]}
    now = {name: window.describe() for name, window in query.windows}
    changes = [f"{name}: {before[name]} is gone" for name in before if name not in now]
    changes += [f"{name}: {now[name]} is new" for name in now if name not in before]
    changes += [
        f"{name}: {before[name]} became {now[name]}"
        for name in before
        if name in now and before[name] != now[name]
    ]
    what = "; ".join(changes) or "its aggregates, keys, time column or policies"
    return f"the checkpoint is of another query ({what}); give this query a checkpoint of its own"


def _width(tables: dict[str, pa.Table], width: int) -> int:
    """How long the parts of timed tables are: as before, unless there would be too many."""
    for name, table in tables.items():
        column = TIMED.get(name.partition("/")[0])
        if column is not None and len(table):
            times = table.column(column).to_numpy()
            while len(np.unique(times // width)) > MOST_PARTS:
                width *= 2
    return width


def _split(tables: dict[str, pa.Table], width: int) -> Iterator[tuple[str, pa.Table]]:
    for name, table in tables.items():
        kind, _, rest = name.partition("/")
        source = tables[f"registry/{rest}"] if kind == "registry_values" else table
        column = TIMED.get("registry" if kind == "registry_values" else kind)
        if column is not None:
            numbers = source.column(column).to_numpy() // width
        elif kind == "keys" and table.num_columns:
            numbers = np.arange(len(table)) // KEYS_TOGETHER
        else:
            yield f"{name}#", table
            continue
        for number in np.unique(numbers):
            yield f"{name}#{number}", table.take(pa.array(np.flatnonzero(numbers == number)))
        yield f"{name}#", table.schema.empty_table()


def _joined(parts: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables that `_split` split, with their rows in the order that the operator wants."""
    by_name: dict[str, list[tuple[int, pa.Table]]] = {}
    for path, table in parts.items():
        name, _, number = path.rpartition("#")
        by_name.setdefault(name, []).append((int(number or 0), table))
    return {name: _sorted(name, _in_order(found)) for name, found in by_name.items()}


def _in_order(parts: Iterable[tuple[int, pa.Table]]) -> pa.Table:
    return pa.concat_tables([table for _, table in sorted(parts, key=lambda part: part[0])]).combine_chunks()


def _sorted(name: str, table: pa.Table) -> pa.Table:
    order = {"slices": ("key", "first"), "tuples": ("key", "time", "seq")}.get(name)
    return table if order is None else table.sort_by([(column, "ascending") for column in order])


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def fingerprint_of(stored: Stored) -> str:
    """The fingerprint of the query that the operator serves now."""
    return current_spec(stored.operator).fingerprint()
