"""The format of snapshots: named Arrow tables behind a header, with a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from muntin.errors import SnapshotError

MAGIC = b"MUNTIN"
VERSION = 5
_CHECK = 32
_ALIGNED = 8
"""Arrow wants numbers to lie at multiples of it, and its streams are so long: the first must begin at one."""


def pack(header: dict[str, Any], tables: dict[str, pa.Table], checked: bool = True) -> bytes:
    """One bytes object: magic, version, header as JSON, Arrow IPC streams, checksum.

    >>> header, tables = unpack(pack({"a": 1}, {"t": pa.table({"x": [1, 2]})}))
    >>> header["a"], tables["t"].column("x").to_pylist()
    (1, [1, 2])

    Not `checked`, there is no checksum: for what only passes from one process to another.
    """
    bodies = {name: _to_ipc(table) for name, table in tables.items()}
    parts = [[name, body.size] for name, body in bodies.items()]
    head = json.dumps(header | {"parts": parts}, sort_keys=True).encode()
    head += b" " * (-len(head) % _ALIGNED)
    start = MAGIC + VERSION.to_bytes(2, "big") + len(head).to_bytes(8, "big") + head
    data = [start, *bodies.values()]
    return b"".join([*data, _checksum(data)] if checked else data)


def unpack(data: bytes, checked: bool = True) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The header and the tables; anything else than a whole snapshot of this version is refused."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(f"a snapshot is bytes: got {type(data).__name__}; pass what snapshot() returned")
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC:
        raise SnapshotError("this is not a Muntin snapshot: it does not begin with its mark")
    version = int.from_bytes(data[6:8], "big")
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has format version {version}, this version of Muntin reads {VERSION}; "
            "restore it with the version that wrote it"
        )
    whole = memoryview(data)
    if checked and (len(data) < 16 + _CHECK or _checksum([whole[:-_CHECK]]) != data[-_CHECK:]):
        raise SnapshotError("the snapshot is damaged: its checksum does not match; take an older one")
    size = int.from_bytes(data[8:16], "big")
    header = json.loads(data[16 : 16 + size])
    at = 16 + size
    tables = {}
    for name, length in header.pop("parts"):
        tables[name] = pa.ipc.open_stream(pa.py_buffer(whole[at : at + length])).read_all()
        at += length
    return header, tables


def _checksum(data: Iterable[Any]) -> bytes:
    found = hashlib.sha256()
    for part in data:
        found.update(part)
    return found.digest()


def _to_ipc(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
