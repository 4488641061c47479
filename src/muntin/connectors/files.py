"""Tuples from files: CSV, Parquet, Arrow IPC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from muntin.errors import DataError


def _read_ipc(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()


FORMATS: dict[str, Callable[[Path], pa.Table]] = {
    ".csv": csv.read_csv,
    ".parquet": parquet.read_table,
    ".arrow": _read_ipc,
}
"""The functions that read a file, by its ending."""


def read_table(path: str | Path) -> pa.Table:
    """The tuples in a file, in the format of its ending."""
    try:
        return FORMATS[_ending(Path(path))](Path(path))
    except pa.ArrowException as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise DataError(f"files must end in {', '.join(FORMATS)}: got {path.name}")
    return ending
