"""The tables of an operator in parts, each with a digest that tells whether it changed.

A part of a table whose rows say by themselves what they hold (a slice by its times, its number of
tuples and its mark, a kept tuple by its place in the order) is digested by these few numbers: what did
not change is neither serialised nor hashed in full.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Part", "from_ipc", "joined", "split", "width_for"]

TIMED = {"slices": "first", "tuples": "time", "registry": "due"}
"""Tables that are split by time, and the column that holds it."""
TELLING = {
    "slices": ("key", "first", "last", "n", "mark", "rank", "fresh", "level"),
    "tuples": ("key", "time", "seq", "fresh"),
    "registry": ("a", "b", "key", "ordinal", "n", "mark", "due", "revision", "stage"),
}
"""The columns that say what a row holds."""
KEYS_TOGETHER = 4096
FEWEST_PARTS, MOST_PARTS = 4, 48
"""How many parts a table may have, by its size; where there would be more, they become longer."""
PART_BYTES = 1 << 16
"""What a part should at least hold, since each is a round trip to the state store."""
MUCH = 8
"""Parts that are so many times as long as they need be become shorter; then all of them are written."""

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
        """The rows as bytes."""
        return _to_ipc(self.table if self.rows is None else self.table.take(pa.array(self.rows)))


def width_for(tables: dict[str, pa.Table], width: int) -> int:
    """How long the parts of timed tables are: as before, unless there would be too many or far too few."""
    needed = 0
    for name, table in tables.items():
        column = TIMED.get(name.partition("/")[0])
        if column is not None and len(table):
            times = table.column(column).to_numpy()
            most = min(max(table.nbytes // PART_BYTES, FEWEST_PARTS), MOST_PARTS)
            low, high = int(times.min()), int(times.max())
            while high // width - low // width >= most and _distinct(times, width) > most:
                width *= 2
            needed = max(needed, -(-(high - low) // most))
    # The first tuples may have lain far apart, or have been few for their time.
    if 0 < needed * MUCH <= width:
        while width >= 2 * needed:
            width //= 2
    return width


def _distinct(times: Ints, width: int) -> int:
    return len(np.unique(times // width))


def split(tables: dict[str, pa.Table], width: int) -> Iterator[Part]:
    """The parts of all tables."""
    for name, table in tables.items():
        kind, _, rest = name.partition("/")
        # What the windows held stands in a table of its own, row by row beside them.
        source = tables[f"registry/{rest}"] if kind == "registry_values" else table
        kind = "registry" if kind == "registry_values" else kind
        if kind in TIMED:
            yield from _by_time(name, table, source, kind, width)
        elif kind == "keys" and table.num_columns:
            for number in range(0, len(table), KEYS_TOGETHER):
                yield _whole(f"{name}#{number // KEYS_TOGETHER}", table.slice(number, KEYS_TOGETHER))
            yield _whole(f"{name}#", table.schema.empty_table())
        else:
            yield _whole(f"{name}#", table)


def _by_time(name: str, table: pa.Table, source: pa.Table, kind: str, width: int) -> Iterator[Part]:
    yield _whole(f"{name}#", table.schema.empty_table())
    if not len(table):
        return
    columns = [source.column(column).to_numpy(zero_copy_only=False) for column in TELLING[kind]]
    hashes = _hashes(columns)
    numbers = source.column(TIMED[kind]).to_numpy() // width
    order = np.argsort(numbers, kind="stable")
    begins = np.flatnonzero(np.diff(numbers[order], prepend=numbers[order[0]] - 1))
    sums = np.add.reduceat(hashes[order], begins)
    shape = hashlib.blake2b(table.schema.to_string().encode(), digest_size=4).hexdigest()
    for begin, end, total in zip(begins, [*begins[1:], len(order)], sums, strict=True):
        digest = f"{shape}-{end - begin:x}-{total:016x}"
        yield Part(f"{name}#{numbers[order[begin]]}", digest, table, order[begin:end])


def _hashes(columns: list[npt.NDArray[np.generic]]) -> Hashes:
    """One number for each row, which any change of a column changes."""
    mixed = np.full(len(columns[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        mixed ^= column.astype(np.int64, copy=False).view(np.uint64)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _whole(path: str, table: pa.Table) -> Part:
    return Part(path, hashlib.blake2b(_to_ipc(table), digest_size=16).hexdigest(), table)


def joined(parts: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables that `split` split, with their rows in the order that the operator wants."""
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


def from_ipc(body: bytes) -> pa.Table:
    """The rows that `Part.body` wrote."""
    return pa.ipc.open_stream(pa.py_buffer(body)).read_all()
