"""Tables, DataFrames, columns and records as one Arrow record batch.

pandas and polars are never imported here: an object can only be one of theirs if the program has imported
them already.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.connectors.misspelt import check_declared, misspelt_field
from muntin.connectors.types import FAILURES, LossError, cure, kind_of, lossless, plain
from muntin.connectors.values import as_texts, to_column
from muntin.errors import DataError, RowError, value_text
from muntin.slicing.arrivals import Misfit
from muntin.slicing.binding import require
from muntin.timeline.text_times import shown_text, text_advice

__all__ = ["SCALARS", "Expected", "as_record", "to_batch"]

_ACCEPTED = (
    "an Arrow Table or RecordBatch, a pandas or polars DataFrame, a dict of columns or a list of dicts"
)

_STAMPS = frozenset({"timestamp", "timestamp with a zone"})
_INTEGERS = frozenset({"integer"})
_TIMES = {"integer": (_INTEGERS, _STAMPS), "timestamp": (_STAMPS, _INTEGERS), "": (_STAMPS | _INTEGERS,)}
"""The kinds of values in a time column, by the kind that the query needs; the engine refuses the others."""

SCALARS = frozenset({int, dt.datetime, type(None)})
"""The usual classes of a single time: values of these classes are not columns."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The columns of the next batch, as far as they are known.

    `reads` are the columns that a query reads (None: all of them); others are not converted. `types` are
    the types that are fixed already. `kind` is the kind of the time column, empty if it is not known.
    """

    time: str = ""
    kind: str = ""
    reads: frozenset[str] | None = None
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    """All columns that the stream has had, and those that the user has declared."""
    first: bool = False
    """Whether no tuple came before: `types` are then those that the user has declared."""

    def read(self, name: str) -> bool:
        """Whether some query reads the column."""
        return self.reads is None or name in self.reads


ANYTHING = Expected()


def as_record(data: object, time: str, *, forgiving: bool = False) -> Mapping[str, Any] | None:
    """`data` if it is one record, a dict with a single time; None if it is not.

    With `forgiving`, a dict of values without a time is a record, too.

    >>> as_record({"ts": 1, "tags": ["a", "b"]}, "ts")
    {'ts': 1, 'tags': ['a', 'b']}
    >>> as_record({"ts": [1, 2], "amount": [2.5, 3.5]}, "ts")
    """
    if type(data) is not dict and not isinstance(data, Mapping):  # the first is much faster
        return None
    if time not in data:
        if not forgiving or not data or any(_is_column(value) for value in data.values()):
            return None
        data = {time: None, **data}
    if type(data[time]) not in SCALARS and _is_column(data[time]):
        return None
    for name in data:
        if type(name) is not str:
            _check_name(name)
    return data


def to_batch(data: object, expected: Expected = ANYTHING) -> tuple[pa.RecordBatch, list[Misfit]]:
    """One record batch with the tuples of `data`, without a copy where possible.

    Python values that do not fit their column are null in the batch, and are returned as misfits. A column
    of Arrow, NumPy or a DataFrame has one type: if that does not fit, it is a DataError.

    >>> batch, misfits = to_batch([{"ts": 1, "shop": "a"}, {"ts": 2.5}, {"ts": "soon"}])
    >>> batch.to_pydict()
    {'ts': [1.0, 2.5, None], 'shop': ['a', None, None]}
    >>> print(misfits[0].reason)
    the column "ts" must be of type double: got 'soon'
    """
    batch, misfits = _converted(data, expected)
    if expected.first and batch.num_rows:
        names = batch.schema.names
        if isinstance(data, list | tuple):
            names = list(dict.fromkeys(name for record in data for name in record))
        check_declared(expected.types, expected.reads, names, not isinstance(data, list | tuple))
        _check_time(batch, expected)
    return batch, misfits


def _converted(data: object, expected: Expected) -> tuple[pa.RecordBatch, list[Misfit]]:
    if isinstance(data, Mapping):
        return _from_columns(data, expected)
    if isinstance(data, list | tuple):
        return _from_records(data, expected)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return _from_columns(_pandas_columns(data), expected)
    batch = data if isinstance(data, pa.RecordBatch) else _one_batch(_to_table(data))
    _check_unique(batch.schema.names)
    if batch.schema.metadata is not None:
        batch = batch.replace_schema_metadata(None)
    given = batch.columns
    columns = [_fitted(name, c, expected) for name, c in zip(batch.schema.names, given, strict=True)]
    if all(new is old for new, old in zip(columns, given, strict=True)):
        return batch, []
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names), []


def _check_time(batch: pa.RecordBatch, expected: Expected) -> None:
    """A DataError for a time column of texts, with the row that is no time, or the code that reads them."""
    if expected.time not in batch.schema.names:
        return
    column = batch.column(expected.time)
    if kind_of(column.type) == "text":
        row, code = text_advice(column)
        rule = f'the time column "{expected.time}" must be a timestamp or an integer: got {column.type}, '
        if row is None:
            raise DataError(f"{rule}{shown_text(column)}; make times of the texts: {code}")
        shown = value_text(column[row].as_py(), 80)
        raise RowError(f"{rule}{shown}", row, f"; repair it, and make times of the texts: {code}")


def _to_table(data: object) -> pa.Table:
    if type(data).__module__.startswith("pyspark."):
        raise DataError(
            f"a {type(data).__name__} of Spark does not run in this process: use df.transform(query), "
            "or pass df.toArrow()"
        )
    polars = sys.modules.get("polars")
    if isinstance(data, pa.Table):
        return data
    if polars is not None and isinstance(data, polars.LazyFrame):
        raise DataError("a polars LazyFrame has no tuples yet; call .collect() on it first")
    if hasattr(data, "__arrow_c_stream__") and not _is_column(data):
        try:
            return pa.table(data)
        except FAILURES as error:
            raise DataError(f"cannot read the {type(data).__name__}: {error}") from error
    read = "; query.run and op.stream read files" if isinstance(data, str | PathLike) else ""
    raise DataError(f"cannot read tuples from {type(data).__name__}; pass {_ACCEPTED}{read}")


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    if not batches:
        arrays = [pa.array([], field.type) for field in table.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
    raise DataError(
        f"a table of {table.num_rows} rows does not fit into one batch (a column holds more than 2 GB "
        "of text); pass it in parts, table.to_batches(), or cast the column to large_string"
    )


def _pandas_columns(frame: Any) -> dict[str, Any]:
    columns = {str(name): frame.iloc[:, i] for i, name in enumerate(frame.columns)}
    _check_unique([str(name) for name in frame.columns])
    # An index with a name is a column of the user; one without is a counter.
    if all(name is not None for name in frame.index.names):
        levels = {str(name): frame.index.get_level_values(name) for name in frame.index.names}
        columns |= {name: level.to_series() for name, level in levels.items()}
    return columns


def _from_columns(data: Mapping[Any, Any], expected: Expected) -> tuple[pa.RecordBatch, list[Misfit]]:
    arrays: dict[str, pa.Array] = {}
    misfits: list[Misfit] = []
    if data and expected.time:
        require((expected.time,), pa.schema([(str(name), pa.null()) for name in data]))
    for name, values in data.items():
        _check_name(name)
        if not _is_column(values):
            raise DataError(
                f'the column "{name}" must hold a value for each of "{expected.time}": '
                f"got {value_text(values)}; "
                f'pass a list, or one record with a single "{expected.time}"'
            )
        python = _python_values(values)
        if python is None:
            arrays[name] = _fitted(name, _array(name, values), expected)
        else:
            arrays[name] = _column(name, python, expected, misfits)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise DataError(f"columns must have the same length: got {shown}")
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), misfits


def _check_unique(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"names of columns must be unique: got {', '.join(names)}; rename or drop one")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise DataError(f"names of columns must be texts: got {value_text(name)}")


def _from_records(data: Sequence[Any], expected: Expected) -> tuple[pa.RecordBatch, list[Misfit]]:
    # Arrow's own from_pylist takes the names of the first record and drops those of the others. An expected
    # field that no record has is null.
    if set(map(type, data)) - {dict}:
        _check_records(data)
    needed = expected.types.keys() if expected.reads is None else expected.reads
    if data and needed <= data[0].keys() and (columns := _same_fields(data)):
        return _from_columns(columns, expected)
    shapes = dict.fromkeys(map(tuple, data))
    names = {name: None for shape in shapes for name in shape}
    names.update(dict.fromkeys(expected.types if data else ()))
    if data and not names and expected.time:
        require((expected.time,), pa.schema([]))
    batch, misfits = _from_columns({name: [record.get(name) for record in data] for name in names}, expected)
    return batch, misfits + _misspelt(data, shapes, expected)


def _misspelt(data: Sequence[Any], shapes: Iterable[tuple[str, ...]], expected: Expected) -> list[Misfit]:
    """The records that lack a column and have a field with almost its name."""
    reads = sorted(expected.reads or ())
    misspelt_shapes: dict[tuple[str, ...], tuple[str, str]] = {}
    for shape in shapes:
        if (pair := misspelt_field(shape, reads, expected.known)) is not None:
            column, strange = pair
            if not any(column in other and strange in other for other in shapes):  # else these are two fields
                misspelt_shapes[shape] = pair
    if not misspelt_shapes:
        return []
    return [
        Misfit.absent(row, *misspelt_shapes[shape])
        for row, shape in enumerate(map(tuple, data))
        if shape in misspelt_shapes
    ]


def _same_fields(data: Sequence[Any]) -> dict[Any, list[Any]]:
    """The columns of records that all have the same fields, which is the usual case; else none."""
    if set(map(len, data)) != {len(data[0])}:
        return {}
    try:
        return {name: list(map(itemgetter(name), data)) for name in data[0]}
    except KeyError:
        return {}


def _check_records(data: Sequence[Any]) -> None:
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise DataError(
                f"a list of tuples must hold dicts: got {type(record).__name__} in row {row}; "
                f"pass {_ACCEPTED}"
            )


def _python_values(values: Any) -> Sequence[Any] | None:
    """The values of a column of Python objects; None for a column that has a type already."""
    if isinstance(values, list | tuple | range):
        return values
    if isinstance(values, np.ndarray):
        return values.tolist() if values.dtype.hasobject and values.ndim == 1 else None
    dtype = str(getattr(values, "dtype", None))
    if dtype == "object":  # a pandas Series, where a NaN among objects means null
        return values.where(values.notna(), None).tolist()  # type: ignore[no-any-return]
    return values.to_list() if dtype == "Object" else None  # polars


def _array(name: str, values: Any) -> pa.Array:
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except FAILURES as error:
        raise DataError(f'cannot read the column "{name}": {error}') from error
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _column(name: str, values: Sequence[Any], expected: Expected, misfits: list[Misfit]) -> pa.Array:
    """A column of Python values; those that do not fit are added to the misfits."""
    if not expected.read(name):
        column, rows = to_column(values)
        return as_texts(values) if rows else column
    groups = _TIMES[expected.kind] if name == expected.time else ()
    column, rows = to_column(values, expected.types.get(name), groups)
    misfits += [_misfit(row, name, values[row], column.type, expected) for row in rows]
    return column


def _misfit(row: int, name: str, value: Any, type_: pa.DataType, expected: Expected) -> Misfit:
    rule = f"must be of type {type_}"
    if pa.types.is_null(type_):  # not one value has a type
        rule = "must be of a type that Arrow has"
        if name == expected.time:
            rule = f"must hold {expected.kind}s" if expected.kind else "must hold timestamps or integers"
    if name == expected.time and isinstance(value, str):
        return Misfit(row, name, value, rule, f"turn texts into times with {_reading(value)}")
    return Misfit(row, name, value, rule, _cure(name, type_, to_column([value])[0].type, expected))


def _reading(text: str) -> str:
    """The function of Python that reads a time in this text."""
    _, code = text_advice(pa.array([text]))
    form = code.partition("format=")[2].partition(", unit")[0]
    return f"datetime.strptime(text, {form})" if form not in ("", '"..."') else "datetime.fromisoformat"


def _fitted(name: str, column: pa.Array, expected: Expected) -> pa.Array:
    """A typed column in its expected type."""
    given, wanted = column.type, expected.types.get(name)
    if pa.types.is_union(given):
        raise DataError(
            f'the column "{name}" must not be a union, which Arrow cannot compute with: got {given}; '
            "cast it to a struct or a text, or drop it"
        )
    try:
        return plain(column) if wanted is None or not expected.read(name) else lossless(column, wanted)
    except LossError as loss:
        other = _cure(name, wanted, given, expected)
        rule = f'the column "{name}" must be of type {wanted} in every batch: got '
        advice = f"; cast it{f', or {other}' if other else ''}"
        if loss.row is None:
            raise DataError(f"{rule}{given}{advice}") from None
        shown = value_text(column[loss.row].as_py())
        raise RowError(f"{rule}{shown} ({given})", loss.row, advice) from None


def _cure(name: str, wanted: pa.DataType, given: pa.DataType, expected: Expected) -> str:
    """How to get a column of another type; of numbers, only integers can be times."""
    return "" if name == expected.time and kind_of(given) != "integer" else cure(name, wanted, given)


def _is_column(value: object) -> bool:
    if isinstance(value, list | tuple | range | pa.Array | pa.ChunkedArray):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    frames = (sys.modules.get("pandas"), sys.modules.get("polars"))
    return any(module is not None and isinstance(value, module.Series) for module in frames)
