"""The tables of a state in parts, each with a digest that tells whether it changed.

The declared numbers of a table that is split by time identify the contents of its rows (a slice has its
times, its number of tuples and its mark, a tuple its position in the order). A part is digested by these
numbers: an unchanged part is neither serialised nor hashed in full.

Each part begins with its digest, so nothing else in the state lists the parts. Its rows are compressed: most
columns are numbers that lie close together, so a quarter of the bytes goes to the state store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.snapshots.archive import read_table
from muntin.slicing.snapshots.checks import TABLES, refuse_unless
from muntin.timeline import NEG_INF

__all__ = ["Part", "from_body", "joined", "plain_of", "split", "to_body", "widths_for"]

TIMED = {kind: schema.time for kind, schema in TABLES.items() if schema.time is not None}
"""Tables that are split by time, and the column of that time."""
PER_KEY = ("keys", *(kind for kind, schema in TABLES.items() if schema.blank))
"""Tables with a row for each key, which are split by number."""
KEYS_TOGETHER = 4096
"""Keys of one part."""
PART_BYTES = 1 << 16
"""The least average size of parts: each is a round trip to the state store."""
FEW_PARTS = 4
"""A table may have this many parts however small they are."""
MUCH = 4
"""Parts that are this many times longer than needed become shorter; then all of them are written."""
DIGEST = 40
"""Bytes of a digest."""
SIZE = 8
"""Bytes of the number behind the digest: how long the rows are when they are not compressed."""
MOST_RATIO = 255
"""No more bytes than this can come from one byte that LZ4 compressed."""

_LZ4 = pa.Codec("lz4_raw")

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table."""

    path: str
    digest: str
    table: pa.Table
    rows: Ints | None = None

    def body(self) -> bytes:
        """The digest and the rows as bytes."""
        rows = self.table if self.rows is None else self.table.take(pa.array(self.rows))
        return to_body(self.digest, _to_ipc(rows))


def widths_for(tables: Mapping[str, pa.Table], widths: Mapping[str, int]) -> dict[str, int]:
    """How long the parts of each timed table are: as before, unless they hold too little or far too much.

    A table has a length of its own: one that is small over a long time needs long parts, and those of
    a large one beside it would hold as long a time.
    """
    new_widths = {}
    for name, table in tables.items():
        kind = name.partition("/")[0]
        if kind in TIMED:
            new_widths[name] = _width(table.column(TIMED[kind]).to_numpy(), table.nbytes, widths.get(name, 1))
    return new_widths


def _width(times: Ints, nbytes: int, width: int) -> int:
    if not len(times):
        return width
    low, high = int(times.min()), int(times.max())
    most = max(nbytes // PART_BYTES, FEW_PARTS)
    needed = -(-(high - low) // most)
    # The first tuples may have lain far apart, or have been few for their time. Of a small table nothing
    # is gained: all of it is written sooner than its parts would be each time that it grows.
    if nbytes >= FEW_PARTS * PART_BYTES and 0 < needed * MUCH <= width:
        while width >= 2 * needed:
            width //= 2
    while high // width - low // width >= most and _parts_of(times, width, low, high) > most:
        width *= 2
    return width


def _parts_of(times: Ints, width: int, low: int, high: int) -> int:
    """How many parts of this length hold rows."""
    numbers = times // width
    if high // width - low // width < len(times):
        return int(np.count_nonzero(np.bincount(numbers - low // width)))
    return 1 + int(np.count_nonzero(np.diff(np.sort(numbers))))


def split(tables: Mapping[str, pa.Table], widths: Mapping[str, int]) -> Iterator[Part]:
    """The parts of all tables; one with the number "" is always there."""
    for name, table in tables.items():
        kind = name.partition("/")[0]
        if kind in TIMED:
            yield from _by_time(name, table, kind, widths.get(name, 1))
        else:
            together = KEYS_TOGETHER if kind in PER_KEY else max(len(table), 1)
            yield _whole(f"{name}#", table.slice(0, together))
            for begin in range(together, len(table), together):
                yield _whole(f"{name}#{begin // together}", table.slice(begin, together))


def _by_time(name: str, table: pa.Table, kind: str, width: int) -> Iterator[Part]:
    yield _whole(f"{name}#", table.schema.empty_table())
    if not len(table):
        return
    declared = [column for column in TABLES[kind].columns if column in table.column_names]
    hashes = _hashes([table.column(column).to_numpy(zero_copy_only=False) for column in declared])
    numbers = table.column(TIMED[kind]).to_numpy() // width
    order = _stable_order(numbers - numbers.min())
    begins = np.flatnonzero(np.diff(numbers[order], prepend=numbers[order[0]] - 1))
    sums = np.add.reduceat(hashes[order], begins)
    shape = hashlib.blake2b(table.schema.to_string().encode(), digest_size=4).hexdigest()
    for begin, end, total in zip(begins, [*begins[1:], len(order)], sums, strict=True):
        digest = f"{shape}-{end - begin:x}-{total:016x}"
        yield Part(f"{name}#{numbers[order[begin]]}", digest, table, order[begin:end])


def _stable_order(numbers: npt.NDArray[Any]) -> Ints:
    """The rows by these numbers, which are not negative; rows with equal numbers keep their order."""
    # NumPy sorts 16 bits by their digits, in a fraction of the time.
    return np.argsort(numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers, kind="stable")


def _hashes(columns: list[npt.NDArray[np.generic]]) -> Hashes:
    """One number for each row, which any change of a column changes."""
    mixed = np.full(len(columns[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        bits = column if column.dtype == np.float64 else column.astype(np.int64, copy=False)
        mixed ^= bits.view(np.uint64)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _whole(path: str, table: pa.Table) -> Part:
    return Part(path, hashlib.blake2b(_to_ipc(table), digest_size=16).hexdigest(), table)


def joined(parts: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables that `split` split, with their rows in the order that the operator expects."""
    by_name: dict[str, dict[int, pa.Table]] = {}
    for path, table in parts.items():
        name, _, number = path.rpartition("#")
        by_name.setdefault(name, {})[int(number) if number else NEG_INF] = table
    tables = {}
    for name, numbered in by_name.items():
        table = pa.concat_tables([numbered[number] for number in sorted(numbered)]).combine_chunks()
        if name in TIMED and TABLES[name].order and len(numbered) > 1 and len(table):
            # By key and time: parts follow each other in time, and the rows of a part are in this order.
            keys = table.column(TABLES[name].order[0]).to_numpy()
            table = table.take(pa.array(_stable_order(keys)))
        tables[name] = table
    return tables


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def to_body(digest: str, plain: bytes) -> bytes:
    """A digest and rows, which are an Arrow stream, as one value."""
    compressed: bytes = _LZ4.compress(plain, asbytes=True)
    return digest.encode().ljust(DIGEST) + len(plain).to_bytes(SIZE, "big") + compressed


def from_body(body: bytes) -> tuple[str, pa.Table]:
    """The digest and the rows that `to_body` wrote."""
    return body[:DIGEST].decode().rstrip(), read_table(memoryview(plain_of(body)))


def plain_of(body: bytes) -> pa.Buffer:
    """The Arrow stream in a body; a SnapshotError where few bytes claim to be very many."""
    compressed = memoryview(body)[DIGEST + SIZE :]
    size = int.from_bytes(body[DIGEST : DIGEST + SIZE], "big")
    refuse_unless(
        size <= MOST_RATIO * len(compressed), f"{len(compressed)} bytes cannot hold a part of {size} bytes"
    )
    return _LZ4.decompress(compressed, decompressed_size=size)
