"""Sources that are read part by part: files, datasets, readers and iterators."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.connectors.files import Wanted, file_batches
from muntin.connectors.input_files import InputFile, files_of
from muntin.connectors.tables import as_record
from muntin.errors import DataError, PlacedError, RowError, value_text

ENOUGH = 65_536
"""The number of tuples from which on a part is not joined with the next: each part costs a step."""


class _Place(NamedTuple):
    """Rows of a part: from `start` on they are those of a file from `first` on, which counts from 1."""

    start: int
    name: str
    first: int


_UNNAMED = "the source"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a source: anything that `process` takes, records in lists."""

    data: object
    places: Sequence[_Place] = ()

    @contextmanager
    def located(self) -> Iterator[None]:
        """Name the file, and the row in it, in errors about this part."""
        try:
            yield
        except PlacedError:
            raise  # it names a key and a time
        except RowError as error:
            if not self.places:
                raise
            place = next(place for place in reversed(self.places) if place.start <= error.row)
            row = place.first + error.row - place.start
            error.args = (f"{place.name}, row {row}: {error.without_row}",)
            raise
        except DataError as error:
            names = {place.name for place in self.places} - {_UNNAMED}
            if len(names) == 1:
                error.args = (f"{names.pop()}: {error}",)
            raise


def parts_of(source: object, time: str, wanted: Callable[[], Wanted]) -> Iterator[Part] | None:
    """The parts of a source that need not be in memory at once; None for a table, which is.

    `wanted` says which columns are read.
    """
    if isinstance(source, str | PathLike):
        return _joined(_of_files([source], wanted()))
    if isinstance(source, pa.RecordBatchReader):
        return _joined((_UNNAMED, batch) for batch in _read(source))
    dataset: Any = sys.modules.get("pyarrow.dataset")  # a dataset exists only where it was imported
    if dataset is not None and isinstance(source, dataset.Dataset):
        columns = wanted().among(source.schema.names)
        tagged = _read(source.scanner(columns=columns).scan_batches())
        return _joined((getattr(one.fragment, "path", _UNNAMED), one.record_batch) for one in tagged)
    if isinstance(source, Iterator):
        return _joined(_gathered(source, time, wanted))
    if isinstance(source, list | tuple) and source:
        if isinstance(source[0], str | PathLike):
            return _joined(_of_files(source, wanted()))
        if isinstance(source[0], pa.RecordBatch | pa.Table):
            return _joined((_UNNAMED, item) for item in source)
    return None


def _of_files(paths: Sequence[object], wanted: Wanted) -> Iterator[tuple[str, object]]:
    """The tuples of files, directories and patterns, one after the other."""
    files: list[InputFile] = []
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise DataError(f"a list of paths must hold paths alone: got {value_text(path)}")
        files += files_of(path)
    for file in files:
        for batch in file_batches(file, wanted):
            yield str(file), batch


def _read(reader: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read from the source: {error}; check its files") from error


def _gathered(
    source: Iterator[object], time: str, wanted: Callable[[], Wanted]
) -> Iterator[tuple[str, object]]:
    """The items of an iterator, with single records gathered in lists, and the tuples of paths."""
    records: list[Mapping[str, Any]] = []
    for item in source:
        record = as_record(item, time)
        if record is not None:
            records.append(record)
        if records and (record is None or len(records) == ENOUGH):
            yield _UNNAMED, records
            records = []
        if isinstance(item, str | PathLike):
            yield from _of_files([item], wanted())
        elif record is None:
            yield _UNNAMED, item
    if records:
        yield _UNNAMED, records


def _joined(items: Iterator[tuple[str, object]]) -> Iterator[Part]:
    """The parts, with small record batches of one schema joined, and the places of their rows."""
    waiting: list[pa.RecordBatch] = []
    places: list[_Place] = []
    rows = 0
    before: Counter[str] = Counter()
    for name, item in items:
        same_schema = isinstance(item, pa.RecordBatch) and (
            not waiting or item.schema.equals(waiting[0].schema)
        )
        if waiting and (rows >= ENOUGH or not same_schema):
            yield Part(pa.Table.from_batches(waiting), places)
            waiting, places, rows = [], [], 0
        place = _Place(rows, name, before[name] + 1)
        before[name] += _number_of_rows(item)
        if isinstance(item, pa.RecordBatch):
            if not places or places[-1].name != name:
                places.append(place)
            waiting.append(item)
            rows += item.num_rows
        else:
            yield Part(item, [place])
    if waiting:
        yield Part(pa.Table.from_batches(waiting), places)


def _number_of_rows(item: Any) -> int:
    """The rows of what `process` takes; 0 for what it refuses."""
    if isinstance(item, pa.RecordBatch | pa.Table):
        return int(item.num_rows)
    if isinstance(item, Mapping):
        item = next(iter(item.values()), ())
    return len(item) if isinstance(item, Sized) else 0
