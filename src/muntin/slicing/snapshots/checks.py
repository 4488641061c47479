"""The checks of a snapshot: the role of each column bounds its values.

A snapshot with a correct checksum may still hold anything. Compiled code indexes with key numbers, ranks
and offsets, and lists windows between times, without checks of its own. So each column has a role, and
each role has bounds. Relations between columns, such as order, are checked once all columns are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.arrays import read_numbers, rows_in_order
from muntin.errors import SnapshotError
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.emission.changes import ComparedWindows
from muntin.slicing.emission.emitted_windows import EmittedWindows
from muntin.slicing.emission.key_extents import KeyExtents
from muntin.slicing.late_tuples import RawTuples
from muntin.slicing.schema import Role, Schema
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.tuple_tables import Positions, Progress, TupleRows
from muntin.timeline import INF, LIMIT, NEG_INF

__all__ = [
    "COUNT",
    "TABLES",
    "Bounds",
    "Role",
    "can_continue_as",
    "check_header",
    "check_schema",
    "check_value",
    "read_column",
    "read_columns",
    "refuse_unless",
]

Column = npt.NDArray[Any]

KEY, TIME, MOMENT, EDGE, RANK, COUNT, POSITIVE, STAGE, ANY, VALUE, FLAG, CONTEXT = Role

TABLES: dict[str, Schema] = {
    "slices": SliceTable.SCHEMA,
    "late": replace(SliceTable.SCHEMA, time=None),
    "late_raw": RawTuples.SCHEMA,
    "tuples": replace(TupleRows.SCHEMA, order=("key", "time", "seq")),
    "arrived": replace(TupleRows.SCHEMA, time=None),
    "positions": Positions.SCHEMA,
    "progress": Progress.SCHEMA,
    "closed": ClosedWindows.SCHEMA,
    "expired": ExpiredWindows.SCHEMA,
    "emitted": EmittedWindows.SCHEMA,
    "compared": ComparedWindows.SCHEMA,
    "extents": KeyExtents.SCHEMA,
}
"""The tables that a state may have, by the first part of their name."""

HEADER: dict[str, type | Role] = {
    "fingerprint": str, "windows": list, "in_order": bool, "watermark": MOMENT, "arrivals": COUNT,
    "metrics": dict, "bound": bool, "records": list, "newest": MOMENT, "retained_from": EDGE,
    "has_late_change": bool, "keys": COUNT, "is_ahead": bool, "sliced_until": MOMENT,
    "aggregates_since": list,
}  # fmt: skip
"""The plain values of a snapshot; some are present only once the types of the input are known."""
WINDOW: tuple[type | Role, ...] = (str, str, EDGE, MOMENT, COUNT)
"""A served window: its name, description, `since`, `after` and number of late tuples."""
NULLABLE: dict[str, type | Role] = {"query": str, "store": str}
RANGES = {
    MOMENT: (-LIMIT, LIMIT), EDGE: (NEG_INF, INF), RANK: (-1, LIMIT), COUNT: (0, LIMIT), POSITIVE: (1, LIMIT),
    STAGE: (0, 2),
}  # fmt: skip
"""The smallest and the largest number of roles that depend on nothing else."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The number of keys, and the largest distance of a tuple from 1970."""

    keys: int = 1
    time: int = LIMIT

    def of(self, role: Role) -> tuple[int, int]:
        """The smallest and the largest number in a role."""
        if role is KEY:
            return 0, self.keys - 1
        return (-self.time, self.time) if role is TIME else RANGES.get(role, (NEG_INF - 1, INF))


def refuse_unless(fine: object, problem: str) -> None:
    """Raise a SnapshotError if a check failed."""
    if not fine:
        raise SnapshotError(
            f"the state does not hold what a snapshot of this version does: {problem}; take an older one"
        )


def read_columns(kind: str, table: pa.Table, bounds: Bounds, value: Any = np.int64) -> dict[str, Column]:
    """The numbers of a table, each within the bounds of its role, in the order that it has.

    `value` is the type of edges on a measure.
    """
    declared = TABLES[kind]
    columns: dict[str, Column] = {}
    for name, role in declared.columns.items():
        if name not in declared.optional or name in table.column_names:
            columns[name] = read_column(kind, name, table, role, bounds, value)
    if declared.order:
        whole = np.zeros(1, dtype=np.int64)
        sorted_by = [columns[name] for name in declared.order]
        refuse_unless(
            rows_in_order(whole, *sorted_by), f"{kind} must be sorted by {', '.join(declared.order)}"
        )
    return columns


def read_column(
    kind: str, name: str, table: pa.Table, role: Role, bounds: Bounds, value: Any = np.int64
) -> Column:
    """The numbers of one column, within the bounds of its role."""
    # Without rows, edges are integers whatever the measure.
    dtype = {FLAG: np.bool_, VALUE: value if len(table) else np.int64}.get(role, np.int64)
    column = table.column(name).combine_chunks()
    numbers = read_numbers(column, dtype) if len(table) else np.zeros(0, dtype=dtype)
    _check_range(f"{name} in {kind}", numbers, role, bounds)
    return numbers


def _check_range(name: str, values: Column, role: Role, bounds: Bounds) -> None:
    if role is MOMENT:
        values = values[(values != INF) & (values != NEG_INF)]
    if not len(values) or role in (ANY, VALUE, FLAG):
        return
    low, high = bounds.of(role)
    least, most = int(values.min()), int(values.max())
    refuse_unless(
        low <= least and most <= high, f"{name} must lie from {low} to {high}: got {least} to {most}"
    )
    if role in (COUNT, POSITIVE) and most > LIMIT // len(values):  # sums of counts must not overflow
        refuse_unless(values.sum(dtype=np.float64) <= LIMIT, f"{name} must add up to 2**62 at most")


def check_schema(name: str, table: pa.Table, wanted: pa.Schema) -> None:
    """Require these columns, with these types, in a table; other columns are allowed."""
    for field in wanted:
        places = table.schema.get_all_field_indices(field.name)
        refuse_unless(len(places) == 1, f'{name} must have one column "{field.name}": got {len(places)}')
        kind = table.schema.field(places[0]).type
        refuse_unless(kind == field.type, f'"{field.name}" in {name} must be {field.type}: got {kind}')


def can_continue_as(was: pa.DataType, now: pa.DataType) -> bool:
    """Whether a stream may continue with another type of column: another time zone, or nulls only."""
    instants = pa.types.is_timestamp(was) and pa.types.is_timestamp(now)
    return was == now or (instants and bool(was.tz) == bool(now.tz)) or pa.null() in (was, now)


def check_header(header: Any) -> None:
    """The plain values of a snapshot have the types and lie in the ranges of their roles."""
    refuse_unless(type(header) is dict, "the header must be an object")
    for name, role in (HEADER | NULLABLE).items():
        if name in header and not (header[name] is None and name in NULLABLE):
            check_value(name, header[name], role)
    refuse_unless(header.get("newest", NEG_INF) < INF, "no tuple comes at the end of the stream")
    for name in header["metrics"]:
        check_value(name, header["metrics"][name], COUNT)
    for pair in header["aggregates_since"]:
        refuse_unless(
            type(pair) is list and len(pair) == 2, f"a later aggregate must have two values: got {pair!r:.80}"
        )
        check_value("a later aggregate", pair[0], str)
        check_value("a later aggregate", pair[1], EDGE)
    for window in header["windows"]:
        refuse_unless(
            type(window) is list and len(window) == 5, f"a window must have five values: got {window!r:.80}"
        )
        for value, role in zip(window, WINDOW, strict=True):
            check_value("a window", value, role)


def check_value(name: str, value: Any, role: type | Role) -> None:
    """A plain value has the type, or lies in the range, that it must."""
    if isinstance(role, Role):
        low, high = Bounds().of(role)
        apart = role is MOMENT and value in (NEG_INF, INF)
        fine = type(value) is int and (apart or low <= value <= high)
    else:
        fine = type(value) is role
    expected = role.name.lower() if isinstance(role, Role) else role.__name__
    refuse_unless(fine, f"{name} must be of the kind {expected}: got {value!r:.80}")
