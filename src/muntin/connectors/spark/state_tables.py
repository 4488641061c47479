"""Tables of what the operator of a key group holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.slicing import inspection
from muntin.slicing.batch import Batch
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.state import State

__all__ = ["kept_tuples", "open_windows", "sizes", "slices"]


def slices(operator: SlicingOperator) -> pa.Table:
    """The slices, as `op.slices()` shows them."""
    return inspection.slices(*_plan_and_state(operator))


def open_windows(operator: SlicingOperator) -> pa.Table:
    """The open windows with their values so far, as `op.open_windows()` shows them."""
    return inspection.open_windows(*_plan_and_state(operator))


def kept_tuples(operator: SlicingOperator) -> pa.Table:
    """The tuples that windows need one by one: keys, time, and the inputs of windows and aggregates."""
    plan, state = _plan_and_state(operator)
    batches = [] if state.tuples is None else state.tuples.batches()
    return pa.concat_tables([_tuples(plan, state, batch) for batch in [_no_tuples(plan), *batches]])


def sizes(operator: SlicingOperator, group: int, nbytes: int) -> pa.Table:
    """One row: the number of the key group, those of its keys, slices, windows and tuples, and its bytes."""
    _, state = _plan_and_state(operator)
    numbers = {
        "key_group": group,
        "keys": len(state.keys) if operator.spec.keys else 1,
        "slices": len(slices(operator)),
        "open_windows": len(open_windows(operator)),
        "kept_tuples": 0 if state.tuples is None else len(state.tuples),
        "bytes": nbytes,
    }
    return pa.table({name: pa.array([number], pa.int64()) for name, number in numbers.items()})


def _plan_and_state(operator: SlicingOperator) -> tuple[BoundPlan, State]:
    assert operator.plan is not None  # a step on Spark binds the types of the input first
    return operator.plan, operator.state


def _tuples(plan: BoundPlan, state: State, batch: Batch) -> pa.Table:
    columns = dict(zip(plan.spec.keys, state.keys.values(batch.key), strict=True)) if plan.spec.keys else {}
    columns[plan.spec.time] = plan.binding.time.to_edges(batch.time, ceil=False)
    for expr in plan.binding.inputs:
        columns.setdefault(expr.column or expr.text, batch.values[expr])
    return pa.table(columns)


def _no_tuples(plan: BoundPlan) -> Batch:
    none = np.zeros(0, dtype=np.int64)
    return Batch(none, none, none, {e: pa.array([], plan.binding.types[e]) for e in plan.binding.inputs})
