"""Results into files: CSV, JSON Lines, Parquet, Arrow IPC; the first two also compressed."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.errors import DataError

_ROWS = 65_536
"""The number of rows that are Python objects at a time while JSON Lines are written."""


def write(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write a flat table in the format of the ending of the path: replaces a file that exists."""
    target = Path(fspath(path))
    name = target.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in WRITERS or (name.endswith(".gz") and ending in _BINARY):
        raise DataError(
            f"results are written to files that end in {', '.join(WRITERS)} (or .csv.gz, .jsonl.gz): "
            f"got {target.name}; rename it"
        )
    try:
        with pa.output_stream(str(target), compression="gzip" if name.endswith(".gz") else None) as sink:
            WRITERS[ending](table, sink)
    except FileNotFoundError as error:
        raise DataError(f"cannot write {target}: there is no directory {target.parent}; create it") from error
    except OSError as error:
        raise DataError(f"cannot write {target}: {error}; choose another path") from error


def _write_csv(table: pa.Table, sink: Any) -> None:
    from pyarrow import csv

    for i, field in enumerate(table.schema):
        if not _has_csv_form(field.type):
            texts = [None if v is None else _text(v) for v in table.column(i).to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
    csv.write_csv(table, sink)


def _has_csv_form(kind: pa.DataType) -> bool:
    """Whether Arrow writes values of this type to CSV, as texts that it can read back."""
    return bool(
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    ) and not (pa.types.is_duration(kind) or pa.types.is_interval(kind))


def _text(value: Any) -> str:
    """A value as text: the JSON of a list or dictionary."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _write_json_lines(table: pa.Table, sink: Any) -> None:
    for batch in table.to_batches(max_chunksize=_ROWS):
        lines = (json.dumps(_plain(row), ensure_ascii=False) for row in batch.to_pylist())
        sink.write("".join(f"{line}\n" for line in lines).encode())


def _write_parquet(table: pa.Table, sink: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(table, sink)


def _write_ipc(table: pa.Table, sink: Any) -> None:
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


_BINARY = (".parquet", ".arrow")
WRITERS: dict[str, Callable[[pa.Table, Any], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
    ".arrow": _write_ipc,
}
"""The functions that write a table to a stream, by the ending of the file."""


def _plain(value: Any) -> Any:
    """The value as JSON has it: times as ISO texts, decimals and NaN as texts, bytes as hexadecimal text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
