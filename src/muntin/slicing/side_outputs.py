"""Side outputs: late and bad tuples as they arrived; batches whose columns differ become one table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["LateOutput", "one_table", "with_column", "with_texts"]


@dataclass(frozen=True, slots=True)
class LateOutput:
    """Tuples that were late for one window."""

    window: str
    tuples: pa.RecordBatch


def one_table(outputs: Iterable[pa.RecordBatch | pa.Table]) -> pa.Table:
    """All tuples, with every column that some of them have; null where a tuple lacks it.

    Columns that the query does not read may change their type from batch to batch. Where the types have
    nothing in common, the values become texts.

    >>> a, b = pa.record_batch({"t": [1]}), pa.record_batch({"t": [2], "note": ["x"]})
    >>> one_table([a, b]).to_pylist()
    [{'t': 1, 'note': None}, {'t': 2, 'note': 'x'}]
    """
    tables = [pa.Table.from_batches([p]) if isinstance(p, pa.RecordBatch) else p for p in outputs]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds: dict[str, set[pa.DataType]] = {}
        for field in (field for table in tables for field in table.schema):
            kinds.setdefault(field.name, set()).add(field.type)
        mixed = {name for name, types in kinds.items() if len(types - {pa.null()}) > 1}
        return pa.concat_tables([_as_texts(table, mixed) for table in tables], promote_options="default")


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """The tuples with one more column at the end; where one has its name already, that gets a number.

    >>> with_column(
    ...     pa.table({"window_name": ["a", "b"]}), "window_name", pa.array(["ten", "ten"])
    ... ).to_pylist()[0]
    {'window_name_1': 'a', 'window_name': 'ten'}
    """
    names, number = table.column_names, 1
    while name in names:
        if f"{name}_{number}" not in names:
            names[names.index(name)] = f"{name}_{number}"
        number += 1
    return table.rename_columns(names).append_column(pa.field(name, values.type), values)


def with_texts(table: pa.Table, texts: Iterable[tuple[int, str, str]]) -> pa.Table:
    """The tuples with these texts (row, column, text) in place of values that no type could hold.

    >>> with_texts(pa.table({"t": [None, 7]}), [(0, "t", "soon")]).to_pylist()
    [{'t': 'soon'}, {'t': '7'}]
    """
    by_column: dict[str, dict[int, str]] = {}
    for row, column, text in texts:
        by_column.setdefault(column, {})[row] = text
    table = _as_texts(table, set(by_column))
    for column, replaced in by_column.items():
        values = [replaced.get(row, value) for row, value in enumerate(table.column(column).to_pylist())]
        at = table.column_names.index(column)
        table = table.set_column(at, column, pa.array(values, pa.string()))
    return table


def _as_texts(table: pa.Table, names: set[str]) -> pa.Table:
    for i, name in enumerate(table.column_names):
        if name in names:
            values = [None if value is None else str(value) for value in table.column(i).to_pylist()]
            table = table.set_column(i, name, pa.array(values, pa.string()))
    return table
