"""Columns without a type, because they have had no value yet: a column of nulls has the type null.

Until a value arrives, aggregates over such a column are null (or 0, or empty). Expressions are computed as
if it had one of the usual types, which does not matter for nulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Aggregate, Bound
from muntin.aggregates.filtering import bind
from muntin.aggregates.partials.counts import Values
from muntin.errors import DataError, MuntinError
from muntin.expressions import Expr, types
from muntin.slicing.partials import PartialSet

STAND_INS = (pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us"), pa.date32())


def stand_ins(expr: Expr, schema: pa.Schema) -> dict[str, pa.DataType]:
    """Types for the untyped columns of an expression: the first type for which the expression is valid.

    >>> stand_ins(Expr("v == 'a' and b"), pa.schema({"v": pa.null(), "b": pa.bool_()}))
    {'v': DataType(string)}
    """
    absent = [name for name in expr.columns if name in schema.names and schema.field(name).type == pa.null()]
    if expr.column is None and absent:
        for kind in STAND_INS:
            chosen = dict.fromkeys(absent, kind)
            try:
                types([expr], with_types(schema, chosen))
            except DataError:
                continue
            return chosen
    return {}


def with_types(schema: pa.Schema, kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema with these types of columns."""
    return pa.schema([pa.field(f.name, kinds.get(f.name, f.type)) for f in schema])


def with_nulls(batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """The batch with nulls of these types in its untyped columns."""
    arrays = [
        pa.nulls(len(batch), kinds[name]) if name in kinds else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def bind_as_known(aggregate: Aggregate, kinds: tuple[pa.DataType, ...]) -> Bound:
    """The aggregate over inputs of these types; its value over no input if it needs a type not known yet."""
    try:
        return bind(aggregate, kinds)
    except MuntinError:
        if pa.null() not in kinds:
            raise
    result = pa.array([_over_no_value(aggregate, kinds)])
    counted = Values(aggregate.reads[kinds.index(pa.null())])
    return Bound(result.type, (counted,), lambda states: pa.repeat(result[0], counted.size(states[0])))


def _over_no_value(aggregate: Aggregate, kinds: tuple[pa.DataType, ...]) -> Any:
    """The value over no input (null, an empty list, 0), which is the same for every type it accepts."""
    none = np.zeros(1, dtype=np.int64)
    for kind in STAND_INS:
        assumed = tuple(kind if k == pa.null() else k for k in kinds)
        try:
            bound = bind(aggregate, assumed)
        except MuntinError:
            continue
        partials = PartialSet.of((bound,), tuple(zip(aggregate.reads, assumed, strict=True)))
        (lowered,) = partials.lower(partials.window(partials.empty(), None, none, none))
        return lowered[0].as_py()
    return None
