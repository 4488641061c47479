"""Sources that are read part by part: files, datasets, readers and iterators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from muntin.connectors.files import Wanted, file_batches
from muntin.connectors.input_files import files_of
from muntin.connectors.tables import as_record
from muntin.errors import DataError

ENOUGH = 65_536
"""The number of tuples from which on a part is not joined with the next: each part costs a step."""


def parts_of(source: object, time: str, wanted: Callable[[], Wanted]) -> Iterator[object] | None:
    """The parts of a source that need not be in memory at once; None for a table, which is.

    A part is anything that `process` takes, records in lists. `wanted` says which columns are read.
    """
    if isinstance(source, str | PathLike):
        chosen = wanted()
        return _joined(batch for file in files_of(source) for batch in file_batches(file, chosen))
    if isinstance(source, pa.RecordBatchReader):
        return _joined(_read(source))
    dataset: Any = sys.modules.get("pyarrow.dataset")  # a dataset exists only where it was imported
    if dataset is not None and isinstance(source, dataset.Dataset):
        columns = wanted().among(source.schema.names)
        return _joined(_read(source.scanner(columns=columns).to_reader()))
    if isinstance(source, Iterator):
        return _joined(_gathered(source, time))
    if isinstance(source, list | tuple) and source and isinstance(source[0], pa.RecordBatch | pa.Table):
        return _joined(iter(source))
    return None


def _read(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read from the source: {error}; check its files") from error


def _gathered(source: Iterator[object], time: str) -> Iterator[object]:
    """The items of an iterator, with single records gathered in lists."""
    records: list[Mapping[str, Any]] = []
    for item in source:
        record = as_record(item, time)
        if record is not None:
            records.append(record)
        if records and (record is None or len(records) == ENOUGH):
            yield records
            records = []
        if record is None:
            yield item
    if records:
        yield records


def _joined(parts: Iterator[object]) -> Iterator[object]:
    """The parts, with small record batches of one schema joined."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for part in parts:
        alike = isinstance(part, pa.RecordBatch) and (not waiting or part.schema.equals(waiting[0].schema))
        if waiting and (rows >= ENOUGH or not alike):
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
        if isinstance(part, pa.RecordBatch):
            waiting.append(part)
            rows += part.num_rows
        else:
            yield part
    if waiting:
        yield pa.Table.from_batches(waiting)
