"""Tuples from files, part by part: CSV, JSON Lines, Parquet and Arrow IPC, the first two also compressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from muntin.errors import DataError, nearest

BLOCK = 4 * 2**20
"""The number of bytes of text that are read at a time; the first ones decide the types of CSV columns."""
ROWS = 131_072
"""The number of rows of a Parquet file that are read at a time."""

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")


class Wanted(NamedTuple):
    """The columns that a query reads, or None for all, and the types that the user gives to columns."""

    columns: frozenset[str] | None
    types: Mapping[str, pa.DataType]

    def among(self, names: list[str]) -> list[str] | None:
        """Those of a file; all of them where one is missing, since the error message lists them."""
        if self.columns is None or not self.columns <= set(names):
            return None
        return [name for name in names if name in self.columns]


def file_batches(path: str | PathLike[str], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The tuples of a file, of all files that a pattern such as "2026-*.csv" matches, or of a directory."""
    found = _paths(fspath(path))
    for one in found:
        _reader(one)  # an unknown ending is an error before anything is read
    for one in found:
        with _told(one):
            yield from _reader(one)(one, wanted)


def _paths(given: str) -> list[Path]:
    path = Path(given)
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if _ending(one) in READERS and one.is_file())
        if not files:
            raise DataError(
                f"the directory {given} must have files that end in {', '.join(READERS)}: got none"
            )
        return files
    if path.exists():
        return [path]
    if any(sign in given for sign in "*?["):
        root = Path(path.anchor)
        files = sorted(one for one in root.glob(str(path.relative_to(root))) if one.is_file())
        if not files:
            raise DataError(
                f"a pattern must match a file: got {given}, which matches none; check the directory"
            )
        return files
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    raise DataError(f"there is no file {given}; check the path.{nearest(path.name, beside)}")


def _ending(path: Path) -> str:
    name = path.name.lower()
    for compressed in _COMPRESSED:
        if name.endswith(compressed):
            ending = Path(name.removesuffix(compressed)).suffix
            return ending if ending in _TEXTS else compressed
    return Path(name).suffix


def _reader(path: Path) -> Callable[[Path, Wanted], Iterator[pa.RecordBatch]]:
    reader = READERS.get(_ending(path))
    if reader is None:
        raise DataError(
            f"files must end in {', '.join(READERS)} (texts also in {', '.join(_COMPRESSED)}): "
            f"got {path.name}; rename it, or read it with pyarrow and pass the table"
        )
    return reader


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Name the file in errors of Arrow and of the system."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise DataError(
            f"cannot read {path}: {error}; if a type is wrong, give the right one: "
            'schema={"amount": "float64"}'
        ) from error


def _csv(path: Path, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    with pa.input_stream(str(path), compression="detect") as source:
        yield from csv.open_csv(
            source,
            read_options=csv.ReadOptions(block_size=BLOCK),
            convert_options=csv.ConvertOptions(column_types=dict(wanted.types)),
        )


def _json_lines(path: Path, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    from pyarrow import json

    given = pa.schema(wanted.types) if wanted.types else None
    with pa.input_stream(str(path), compression="detect") as source:
        for block in _whole_lines(source):
            options = json.ReadOptions(block_size=len(block) + 1)
            table = json.read_json(pa.BufferReader(block), options, json.ParseOptions(explicit_schema=given))
            yield from table.to_batches()


def _whole_lines(source: pa.NativeFile) -> Iterator[bytes]:
    """Blocks that end with a line; the last one may not."""
    rest = b""
    while block := source.read(BLOCK):
        whole, end, begun = (rest + block).rpartition(b"\n")
        rest = begun
        if whole.strip():
            yield whole + end
    if rest.strip():
        yield rest


def _parquet(path: Path, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(ROWS, columns=wanted.among(file.schema_arrow.names))


def _ipc(path: Path, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        try:
            file = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            yield from pa.ipc.open_stream(source)
            return
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


_TEXTS = (".csv", ".jsonl", ".ndjson")
READERS: dict[str, Callable[[Path, Wanted], Iterator[pa.RecordBatch]]] = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
    ".arrow": _ipc,
}
"""The functions that read a file, by its ending."""
