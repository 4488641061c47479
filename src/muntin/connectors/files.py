"""Tables from files and to files: CSV, Parquet, Arrow IPC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from muntin.errors import DataError


def _read_ipc(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()


def _write_ipc(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


FORMATS: dict[str, tuple[Callable[[Path], pa.Table], Callable[[pa.Table, Path], Any]]] = {
    ".csv": (csv.read_csv, lambda table, path: csv.write_csv(table.flatten(), path)),
    ".parquet": (parquet.read_table, parquet.write_table),
    ".arrow": (_read_ipc, _write_ipc),
}
"""The functions that read and write a file, by its ending."""


def read_table(path: str | Path) -> pa.Table:
    """The tuples in a file, in the format of its ending."""
    try:
        return FORMATS[_ending(Path(path))][0](Path(path))
    except pa.ArrowException as error:
        raise DataError(f"cannot read {path}: {error}") from error


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write results in the format of the ending. CSV has no structs: `window` becomes one column per edge."""
    FORMATS[_ending(Path(path))][1](table, Path(path))


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise DataError(f"files must end in {', '.join(FORMATS)}: got {path.name}")
    return ending
