"""The format of snapshots: named Arrow tables behind a header, with a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from muntin.errors import MuntinError, SnapshotError

MAGIC = b"MUNTIN"
VERSION = 9
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
    with reading():
        header = json.loads(data[16 : 16 + size])
        at, end = 16 + size, len(data) - (_CHECK if checked else 0)
        tables = {}
        for name, length in header.pop("parts"):
            if name in tables or length < 0 or length % _ALIGNED:
                raise SnapshotError(f"the snapshot is damaged: {length} bytes of a table {name!r}")
            tables[name] = read_table(whole[at : at + length])
            at += length
        if at != end:
            raise SnapshotError(f"the snapshot is damaged: tables of {at} bytes in {end}; take an older one")
    return header, tables


@contextmanager
def reading() -> Iterator[None]:
    """Turn errors of reading untrusted bytes into a SnapshotError; Muntin's own errors pass unchanged."""
    try:
        yield
    except MuntinError:
        raise
    except Exception as error:
        raise SnapshotError(
            "this has the form of a snapshot, but does not hold what a snapshot of this version does "
            f"({type(error).__name__}: {str(error)[:200]}); take an older one"
        ) from error


def read_table(body: memoryview) -> pa.Table:
    """The table in an Arrow stream, validated down to each offset and each text.

    Two kinds of tables are refused because few bytes could claim any amount of memory: compressed tables,
    which Muntin never writes, and tables with more rows than bits, since a column of nulls takes no bytes.
    """
    source = pa.py_buffer(body)
    for message in pa.ipc.MessageReader.open_stream(source):
        if _is_compressed(message):
            raise SnapshotError("a table of a snapshot must not be compressed")
    table = pa.ipc.open_stream(source).read_all()
    if not table.num_columns:
        return pa.table({})  # without columns, the number of rows is only a claim
    if table.num_rows > 8 * len(body):
        raise SnapshotError(f"a table of {len(body)} bytes cannot have {table.num_rows} rows")
    table.validate(full=True)
    return table


def _is_compressed(message: pa.Message) -> bool:
    """Whether an Arrow message is compressed; read from its FlatBuffers header, since pyarrow hides it."""
    data = memoryview(message.metadata)
    header = _field(data, int.from_bytes(data[:4], "little"), _HEADER)
    if message.type == "dictionary" and header is not None:
        header = _field(data, header, _DICTIONARY)
    return message.type != "schema" and header is not None and _field(data, header, _COMPRESSION) is not None


_HEADER, _DICTIONARY, _COMPRESSION = 2, 1, 3
"""FlatBuffers field numbers: header of a message, data of a dictionary batch, compression of a batch."""


def _field(data: memoryview, table: int, number: int) -> int | None:
    """The position of the FlatBuffers table in field `number` of the table at `table`; None if absent."""

    def at(place: int, size: int) -> int:
        return int.from_bytes(data[place : place + size], "little", signed=size == 4)

    fields = table - at(table, 4)
    offset = at(fields + 4 + 2 * number, 2) if 4 + 2 * number < at(fields, 2) else 0
    return table + offset + at(table + offset, 4) if offset else None


def _checksum(data: Iterable[Any]) -> bytes:
    digest = hashlib.sha256()
    for part in data:
        digest.update(part)
    return digest.digest()


def _to_ipc(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
