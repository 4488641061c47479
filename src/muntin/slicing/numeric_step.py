"""A step of periodic windows, a session and numeric partials as one call of compiled code.

The results are those of the general route, which is `muntin.slicing.step` function by function. A step of
1,024 tuples and ten windows takes 0.45 of its time (measured in turn on one machine).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.partials.columns import NumericPartial
from muntin.aggregates.partials.step_codes import FLOAT_SUM, NONE
from muntin.errors import PlacedError
from muntin.expressions import Expr
from muntin.slicing.batch import Batch
from muntin.slicing.edges import REACH
from muntin.slicing.emission.deferred_rows import DeferredRows
from muntin.slicing.emission.listing import FAR
from muntin.slicing.numeric_step_kernels import numeric_step
from muntin.slicing.scattered_step_kernels import MOST_CELLS
from muntin.slicing.slice_table import SliceTable
from muntin.timeline import INF, LIMIT, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["NumericStep", "numeric_results"]

Column = npt.NDArray[np.int64]

MOST_TUPLES = 8_192
"""The most tuples of a step that come out of order, or of which several columns are read.

Of several columns the compiled step reads a copy, which costs more than it saves for more tuples.
"""
MOST_SLICES = 4_096
"""The most slices before a step: all of them are copied."""
FEW_TUPLES = 64
"""A step of at most this many tuples makes few slices, whatever the edges are."""
MOST_COMBINES = 32_768
"""The most combines of slices that a small step may cause: stores need fewer of them than a walk."""
TUPLES_PER_COMBINE = 8
"""A large step may cause one combine of slices for this number of tuples."""
NO_IDS: Column = np.zeros(0, dtype=np.int64)
"""The ids of a batch whose tuples all have one key."""
NO_WORDS: Column = np.frombuffer(b"", dtype=np.int64).reshape(0, 0)
"""The input where there is no batch."""
NO_TIMES: Column = np.frombuffer(b"", dtype=np.int64)
"""The times where there is no batch; read-only, as those in Arrow's memory."""

Input: TypeAlias = tuple[Column, Column, Column, int, bool, int, int]
"""Times, ids, words, the key where there are no ids, whether in order, smallest and largest time."""
NO_INPUT: Input = (NO_TIMES, NO_IDS, NO_WORDS, 0, True, NEG_INF, NEG_INF)


@dataclass(frozen=True, slots=True)
class NumericStep:
    """What a plan gives to the compiled step: the codes of its partials, and how to read their input."""

    codes: Column
    width: int
    """The number of 64-bit words of all partials of a slice."""
    inputs: tuple[tuple[Expr, Callable[[pa.Array], npt.NDArray[Any]]], ...]
    """The columns that partials read, and how, as `NumericPartial.step_input` says."""
    read: Column
    """For each partial which of these it reads; 0 where it reads none."""
    tested: tuple[Expr, ...]
    """The columns that must have no nulls."""
    most_slices: int
    """The most slices before a step: the windows over these and new ones must not exceed the limit."""
    exact: bool
    """Whether no partial depends on the order in which tuples are added: no sum of floats."""
    gap: int
    """The gap of the session, -1 without one."""
    session: int
    """The number of the session among all windows."""
    ends: float
    """The number of periodic windows that end per unit of time."""
    certain: bool
    """Whether the values of windows can be computed wherever their sums fit into 64 bits."""

    @classmethod
    def of(cls, plan: BoundPlan) -> NumericStep | None:
        """None where some window or partial needs more."""
        served, edges, partials = plan.served, plan.served.edges, plan.partials.partials
        sessions = () if served.only_edges else served.sessions
        known = len(served.periodic) + len(sessions) == len(served.all)
        simple = known and plan.emits_once and not plan.lateness and not plan.shows_early
        if len(sessions) > 1 or plan.decisions.forced:  # a forced store is obeyed
            return None
        if not simple or not plan.combines_windows_alone or edges.others or len(edges.points):
            return None
        numeric = [p for p in partials if isinstance(p, NumericPartial) and p.step_code != NONE]
        if len(numeric) < len(partials):
            return None
        codes = np.array([p.step_code for p in numeric], dtype=np.int64)
        exact = FLOAT_SUM not in codes
        if sessions and not exact:
            return None
        inputs: dict[tuple[Expr, type], Callable[[pa.Array], npt.NDArray[Any]]] = {}
        read, tested = np.zeros(len(numeric), dtype=np.int64), dict[Expr, None]()
        for number, partial in enumerate(numeric):
            if partial.step_input is not None:
                expr, function = partial.step_input
                tested[expr] = None
                if function is not None:
                    name = expr, type(partial)
                    inputs.setdefault(name, function)
                    read[number] = list(inputs).index(name)
        within_limit = plan.limit.most(1) // max(served.most_overlapping, 1) - MOST_CELLS
        return cls(
            codes,
            sum(p.width for p in numeric),
            tuple((expr, function) for (expr, _), function in inputs.items()),
            read,
            tuple(tested),
            min(MOST_SLICES, within_limit),
            exact,
            served.gap if sessions else -1,
            served.number(sessions[0]) if sessions else -1,
            float(np.sum(1.0 / served.series.slide)),
            all(bound.only_overflows for bound in plan.partials.bound),
        )

    def words(self, batch: Batch) -> Column | None:
        """The columns that partials read, one row of 64-bit words each; None where a column has nulls."""
        for expr in self.tested:
            if batch.values[expr].null_count:
                return None
        if len(self.inputs) == 1:
            ((expr, read),) = self.inputs
            words: Column = read(batch.values[expr]).view(np.int64)[None]
        else:
            words = np.empty((len(self.inputs), len(batch.time)), dtype=np.int64)
            for row, (expr, read) in enumerate(self.inputs):
                words[row] = read(batch.values[expr]).view(np.int64)
        words.flags.writeable = False  # as what lies in Arrow's memory is: both have the same type in Numba
        return words


def numeric_results(
    plan: BoundPlan, state: State, batch: Batch | None, watermark: int, defer: bool = False
) -> pa.Table | DeferredRows | None:
    """Add a batch and move the watermark on in one call; None, and nothing has changed, where that fails.

    `defer`: the table may be made later.

    It fails for large steps, late tuples, sums of floats out of order or of several keys, nulls, sums that
    overflow, and values that cannot be computed: the general route skips these, or names the window.
    """
    step, before, table = plan.numeric, state.watermark, state.slices
    number = len(table.fresh)
    if step is None or number > step.most_slices or state.late_tuples:
        return None
    if step.gap >= 0 and watermark >= LIMIT:
        return None
    if batch is not None:
        given = _input(plan, step, batch, before, watermark)
    else:
        windows_of_a_slice = min(plan.served.overlap, step.ends * (watermark - before) + len(plan.served.all))
        given = NO_INPUT if number and number * windows_of_a_slice <= MOST_COMBINES else None
    if given is None:
        return None
    time, ids, words, key, in_order, low, high = given
    edges, partials = plan.served.edges, plan.partials
    reach = watermark + REACH if watermark < LIMIT and step.gap < 0 else NEG_INF
    slices, level, windows, merged, walked, quiet_until = numeric_step(
        step.codes, time, ids, words, step.read, key, state.key_count, in_order, low, high,
        edges.offsets, edges.periods, step.gap, step.session,
        table.words, table.level, plan.served.series.columns, max(before, -LIMIT), min(watermark, FAR), reach,
        step.certain,
    )  # fmt: skip
    if not slices.shape[1]:
        return None
    results = _rows(plan, state, windows, defer and step.certain)
    if results is None:
        return None
    state.watermark, state.newest = watermark, max(state.newest, high)
    if watermark == INF:
        state.drop_slices(plan)
    else:
        state.slices = SliceTable.of_words(partials, slices, level)
    state.quiet_until = quiet_until
    count, metrics = len(partials.partials), state.metrics
    metrics.lifts += len(time) * count
    metrics.update_combines += len(time) * count
    metrics.merge_combines += (merged + walked) * count
    metrics.windows += windows.shape[1]
    return results


def _input(plan: BoundPlan, step: NumericStep, batch: Batch, before: int, watermark: int) -> Input | None:
    """A batch as the compiled step takes it; None where the general route must or should take it."""
    (low, high, ordered, one_key), time = batch.extent, batch.time
    in_order = ordered and one_key
    if low < before or not (in_order or step.exact):
        return None
    if len(time) > MOST_TUPLES and not (in_order and len(step.inputs) <= 1):
        return None
    if not (in_order and step.gap < 0) and (high - low >= LIMIT or watermark >= LIMIT):
        return None
    if len(time) > FEW_TUPLES:
        expected = (high - low) * plan.served.edges.per_unit
        most = MOST_COMBINES if len(time) <= MOST_TUPLES else len(time) // TUPLES_PER_COMBINE
        if expected * plan.served.overlap > most:
            return None
    words = step.words(batch)
    if words is None:
        return None
    if batch.ids is None:
        return time, NO_IDS, words, 0, in_order, low, high
    return time, NO_IDS if one_key else batch.ids, words, int(batch.ids[0]), in_order, low, high


def _rows(plan: BoundPlan, state: State, windows: Column, defer: bool) -> pa.Table | DeferredRows | None:
    """These windows as rows of results; None where a value cannot be computed."""
    shape, ended = plan.results, windows.shape[1]
    if not ended:
        return shape.empty
    keys = state.keys.values(windows[3]) if plan.spec.keys else []
    rows = DeferredRows(shape, plan.partials, windows, keys)
    if defer and ended <= shape.most_certain:
        return rows
    try:
        return rows.table()
    except PlacedError:
        return None
