"""Whatever holds tuples becomes one Arrow record batch.

pandas and polars are never imported here: an object can only be one of theirs
if the program has imported them already.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.errors import DataError

__all__ = ["is_record", "to_batch"]

_ACCEPTED = (
    "an Arrow Table or RecordBatch, a pandas or polars DataFrame, a dict of columns or a list of dicts"
)
_FAILURES = (pa.ArrowException, OverflowError, TypeError, ValueError)


def is_record(data: object) -> bool:
    """Whether `data` is one record: a dict with a value, not a column, under some name.

    >>> is_record({"ts": 1, "amount": 2.5}), is_record({"ts": [1], "amount": [2.5]})
    (True, False)
    """
    return isinstance(data, Mapping) and any(not _is_column(value) for value in data.values())


def to_batch(data: object, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """One record batch with the tuples of `data`, without a copy where possible.

    Columns that `schema` names get the type that it gives them, so that a batch
    of Python values means the same as the batches before it. Columns that it does
    not name are kept as they are.

    >>> to_batch([{"ts": 1, "shop": "a"}, {"ts": 2}]).to_pydict()
    {'ts': [1, 2], 'shop': ['a', None]}
    """
    batch = _convert(data, schema)
    if batch.schema.metadata is not None:
        batch = batch.replace_schema_metadata(None)
    return _cast(_without_views(batch), schema)


def _convert(data: object, schema: pa.Schema | None) -> pa.RecordBatch:
    if isinstance(data, pa.RecordBatch):
        return data
    if isinstance(data, pa.Table):
        return _one_batch(data)
    if isinstance(data, Mapping):
        if is_record(data):
            data = {name: [value] for name, value in data.items()}
        return _from_columns(data, schema)
    if isinstance(data, list | tuple):
        return _from_records(data, schema)
    return _one_batch(_from_frame(data))


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


def _from_frame(data: object) -> pa.Table:
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        frame: Any = data
        # An index with a name is a column that the user set aside; one without is a counter.
        named = all(name is not None for name in frame.index.names)
        try:
            return pa.Table.from_pandas(frame, preserve_index=named)
        except _FAILURES as error:
            raise DataError(f"cannot read the pandas DataFrame: {error}") from error
    if polars is not None and isinstance(data, polars.DataFrame):
        return data.to_arrow()
    if polars is not None and isinstance(data, polars.LazyFrame):
        raise DataError("a polars LazyFrame has no tuples yet; call .collect() on it first")
    if hasattr(data, "__arrow_c_stream__") and not _is_column(data):
        return pa.table(data)
    raise DataError(f"cannot read tuples from {type(data).__name__}; pass {_ACCEPTED}")


def _from_columns(data: Mapping[Any, Any], schema: pa.Schema | None) -> pa.RecordBatch:
    arrays: dict[str, pa.Array] = {}
    for name, values in data.items():
        if not isinstance(name, str):
            raise DataError(f"names of columns must be texts: got {name!r}")
        arrays[name] = _array(name, values, schema)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise DataError(f"columns must have the same length: got {shown}")
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _from_records(data: Sequence[Any], schema: pa.Schema | None) -> pa.RecordBatch:
    # Arrow's own from_pylist takes the names of the first record and drops the others'. A field that
    # no record of this batch has is null, as it would be beside records that have it.
    names: dict[Any, None] = dict.fromkeys(() if schema is None or not data else schema.names)
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise DataError(
                f"a list of tuples must hold dicts: got {type(record).__name__} in row {row}; "
                f"pass {_ACCEPTED}"
            )
        names.update(dict.fromkeys(record))
    return _from_columns({name: [record.get(name) for record in data] for name in names}, schema)


def _array(name: str, values: Any, schema: pa.Schema | None) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    python = isinstance(values, list | tuple | range)
    known = schema is not None and python and name in schema.names
    if known and schema and pa.types.is_integer(schema.field(name).type):
        _refuse_fractions(name, values, schema.field(name).type)
    try:
        array = pa.array(values, schema.field(name).type) if known and schema else pa.array(values)
    except _FAILURES as error:
        raise DataError(f'cannot read the column "{name}": {error}') from error
    if isinstance(array, pa.ChunkedArray):  # a pandas Series that Arrow holds in chunks
        return array.combine_chunks()
    if python and not known and pa.types.is_decimal128(array.type):
        # Inferred from these values alone; the next batch may hold longer ones.
        return array.cast(pa.decimal128(38, array.type.scale))
    return array


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Views of texts and bytes as plain columns: Arrow cannot take rows from views."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if not any(type_ in plain for type_ in batch.schema.types):
        return batch
    columns = [column.cast(plain.get(column.type, column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _cast(batch: pa.RecordBatch, schema: pa.Schema | None) -> pa.RecordBatch:
    if schema is None:
        return batch
    arrays, changed = list(batch.columns), False
    for i, name in enumerate(batch.schema.names):
        if name not in schema.names or arrays[i].type == schema.field(name).type:
            continue
        wanted, given = schema.field(name).type, arrays[i].type
        rule = f'the column "{name}" must be of type {wanted} in every batch: got {given}'
        if _kind(given) not in ("null", _kind(wanted)):
            raise DataError(f"{rule}; cast it")
        try:
            arrays[i], changed = arrays[i].cast(wanted), True
        except _FAILURES as error:
            raise DataError(f"{rule} ({error})") from error
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names) if changed else batch


def _kind(type_: pa.DataType) -> str:
    """What a type means: Arrow would also turn times into counts of their unit, and numbers into texts."""
    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamp with a zone"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "text"
    return "null" if pa.types.is_null(type_) else str(type_)


def _refuse_fractions(name: str, values: Sequence[Any], type_: pa.DataType) -> None:
    """Arrow itself would cut them off."""
    for row, value in enumerate(values):
        if isinstance(value, float) and not value.is_integer():
            raise DataError(
                f'the column "{name}" must be of type {type_} in every batch: got {value} in row {row}'
            )


def _is_column(value: object) -> bool:
    if isinstance(value, list | tuple | range | pa.Array | pa.ChunkedArray):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return any(
        module is not None and isinstance(value, module.Series)
        for module in (sys.modules.get("pandas"), sys.modules.get("polars"))
    )
