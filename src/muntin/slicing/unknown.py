"""Columns that have had no value so far: what reads them gets along until their type is known.

A column of nulls has the type null. Aggregates over it are null (or 0, or empty) in the meantime;
computed inputs are computed as if it had one of the usual types, which makes no difference to nulls.
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
    """Types for those columns of a computed input that have none; the first with which it makes sense.

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
    """The schema with other types for some of its columns."""
    return pa.schema([pa.field(f.name, kinds.get(f.name, f.type)) for f in schema])


def with_nulls(batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """The batch with typed nulls in columns that hold nothing else."""
    arrays = [
        pa.nulls(len(batch), kinds[name]) if name in kinds else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def bind_as_known(aggregate: Aggregate, kinds: tuple[pa.DataType, ...]) -> Bound:
    """The aggregate over inputs of these types; what it is over no value while it needs one not known."""
    try:
        return bind(aggregate, kinds)
    except MuntinError:
        if pa.null() not in kinds:
            raise
    result = pa.array([_over_no_value(aggregate, kinds)])
    counted = Values(aggregate.reads[kinds.index(pa.null())])
    return Bound(result.type, (counted,), lambda states: pa.repeat(result[0], counted.size(states[0])))


def _over_no_value(aggregate: Aggregate, kinds: tuple[pa.DataType, ...]) -> Any:
    """Null, an empty list, a count of 0: the same for every type that it takes."""
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
