"""A plan over input of known types: all that a step reads and never changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions import Expr
from muntin.planning.plan import Plan, make_plan
from muntin.planning.rules import NO
from muntin.query import OnChange, QuerySpec
from muntin.slicing.binding import Binding, window_inputs
from muntin.slicing.combining.base import Combiner
from muntin.slicing.combining.choosing import combiners
from muntin.slicing.emission.results import ResultShape
from muntin.slicing.numeric_step import NumericStep
from muntin.slicing.partials import PartialSet
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.shown_aggregates import ShownAggregates, StoresOfGroups
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.window_limit import WindowLimit
from muntin.timeline import INF, LIMIT, NEG_INF

__all__ = ["BoundPlan", "Settings"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Settings:
    """Choices of the caller of an operator that are not part of the query."""

    in_order: bool = False
    """Whether each tuple is a watermark."""
    store: str | None = None
    """The store that the user forces."""
    follows_data: bool = False
    """Whether tuples move the watermark."""
    shares: int = 1
    """The number of operators that share the keys of the stream."""
    raises_errors: bool = False
    """Whether errors are raised although the query skips them: the caller repeats the step then."""


@dataclass(frozen=True)
class BoundPlan:
    """The decisions of planning, the types of the input, and the windows that are served now."""

    spec: QuerySpec
    settings: Settings
    served: ServedWindows
    binding: Binding
    decisions: Plan

    @classmethod
    def of(
        cls,
        spec: QuerySpec,
        settings: Settings,
        served: ServedWindows,
        schema: pa.Schema,
        records: tuple[str, ...] | None = None,
    ) -> BoundPlan:
        """The plan for input of this schema; user code sees all its columns as records unless given."""
        windows = {q.name: q.window for q in served.all}
        binding = Binding.of(spec, windows, schema, records, settings.in_order, served.hidden)
        return cls(spec, settings, served, binding, _decide(spec, settings, served, binding))

    def serving(self, served: ServedWindows, spec: QuerySpec | None = None) -> BoundPlan:
        """The plan for other windows, or other aggregates."""
        spec = self.spec if spec is None else spec
        return BoundPlan.of(spec, self.settings, served, self.binding.schema, self.binding.records)

    def for_shares(self, number: int) -> BoundPlan:
        """The plan of one of this many shares of a step; if one fails, the whole step is repeated."""
        return replace(self, settings=replace(self.settings, shares=number, raises_errors=True))

    def reading(self, binding: Binding) -> BoundPlan:
        """The plan for a binding whose inputs have the same types."""
        return replace(self, binding=binding)

    # Decisions of planning that steps obey. ----------------------------------------------------------

    @cached_property
    def keeps_tuples(self) -> bool:
        """Whether tuples stay after they were sliced."""
        return self.decisions.keeps_tuples

    @cached_property
    def cuts_again(self) -> bool:
        """Whether a late tuple changes which tuples a slice has: it is split, or its tuples move."""
        return self.decisions.splits_slices or self.decisions.removes_tuples != NO

    @cached_property
    def removes_tuples(self) -> str:
        """How tuples leave a slice."""
        return self.decisions.removes_tuples

    @cached_property
    def combines_windows_alone(self) -> bool:
        """Whether the value of a window depends, bit for bit, on its own slices alone.

        A tree over all slices combines those of a window in an order that depends on their positions.
        """
        workload = self.decisions.workload
        return workload.exact or workload.in_exact_words or self.decisions.store == "lazy"

    @cached_property
    def new_store(self) -> Callable[[], Combiner]:
        """Makes the store that combines slices into windows."""
        new_store = combiners(self.decisions)
        return new_store if self.shown.everywhere else lambda: StoresOfGroups(new_store)

    # Constants of a step. ----------------------------------------------------------------------------

    @cached_property
    def partials(self) -> PartialSet:
        """The partials of the aggregates that some window shows."""
        return self.binding.partials

    @cached_property
    def shown(self) -> ShownAggregates:
        """Which aggregates each window shows."""
        return ShownAggregates.of(self.spec, self.binding, self.served)

    @cached_property
    def no_slices(self) -> SliceTable:
        """A table without slices."""
        return SliceTable.empty(self.partials)

    @cached_property
    def in_order(self) -> bool:
        """Whether each tuple is a watermark."""
        return self.settings.in_order

    @cached_property
    def lateness(self) -> int:
        """The allowed lateness."""
        return int(self.spec.allowed_lateness)

    @cached_property
    def forget(self) -> int | None:
        """The silence after which a key is forgotten; a time plus this span fits into 64 bits."""
        span = self.spec.forget_keys_after
        return None if span is None else min(int(span), LIMIT - 1)

    @cached_property
    def limit(self) -> WindowLimit:
        """The most windows that a step may emit."""
        return WindowLimit(self.spec.max_windows, self.settings.shares, self.binding.time.is_integer)

    @cached_property
    def skips_errors(self) -> bool:
        """Whether a value that cannot be computed is null."""
        return self.spec.on_error == "skip" and not self.settings.raises_errors

    @cached_property
    def shows_early(self) -> bool:
        """Whether windows are also emitted before they are complete."""
        return self.spec.early is not None

    @cached_property
    def shows_changes(self) -> bool:
        """Whether a window is emitted only if its values differ from those of the one before it."""
        return isinstance(self.spec.emit, OnChange)

    @cached_property
    def window_inputs(self) -> dict[str, tuple[Expr, ...]]:
        """The columns that each window reads."""
        return {q.name: window_inputs(q.window, self.binding.records) for q in self.served.all}

    @cached_property
    def results(self) -> ResultShape:
        """The columns of results."""
        return ResultShape(self.binding, self.served.all, self.shown)

    @cached_property
    def remembered(self) -> frozenset[ServedWindow]:
        """Windows of which every emitted instance is remembered until it expires.

        These are all windows where early results are emitted, and with lateness those that may be
        retracted or emitted empty. Of other context-free windows only revised instances are remembered.
        """
        if self.shows_early:
            return frozenset(self.served.all)
        if not self.lateness:
            return frozenset()
        free = frozenset(self.served.context_free) - frozenset(self.served.with_empty)
        return frozenset(self.served.all) - free

    @cached_property
    def numeric(self) -> NumericStep | None:
        """The compiled step, where it supports all windows and partials; None if only changes are emitted."""
        return None if self.shows_changes else NumericStep.of(self)

    @cached_property
    def emits_once(self) -> bool:
        """Whether no emitted window is remembered, and none is emitted empty."""
        return not self.remembered and not self.served.with_empty

    @cached_property
    def policies(self) -> tuple[Flags, Flags]:
        """Which windows, by number, are remembered when they are emitted, and which are emitted empty."""
        remembered = [window in self.remembered for window in self.served.all]
        with_empty = [window.emits_empty for window in self.served.all]
        return np.array(remembered, dtype=np.bool_), np.array(with_empty, dtype=np.bool_)

    def final(self, watermark: int) -> int:
        """Tuples before this time are late for every window that counts tuples."""
        if watermark in (NEG_INF, INF):
            return watermark
        return max(watermark - self.lateness, -LIMIT)


def _decide(spec: QuerySpec, settings: Settings, served: ServedWindows, binding: Binding) -> Plan:
    windows = tuple((q.name, q.window) for q in served.all)
    aggregates = tuple(spec.aggregates[i] for i in binding.computed)
    if windows != spec.windows or aggregates != spec.aggregates:
        spec = replace(spec, windows=windows, aggregates=aggregates)
    return make_plan(spec, settings.in_order, settings.store, binding.partials.bound)
