"""Result rows on their way out: which windows, as which kind and revision, and their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.combining.base import View
from muntin.slicing.emission.emitted_windows import EARLY_ROW, UPDATE_ROW, Candidates, EmittedWindows
from muntin.slicing.emission.listing import Listing
from muntin.slicing.emission.result_order import Runs
from muntin.slicing.emission.window_values import values_of
from muntin.slicing.eviction import needed_from
from muntin.slicing.served import ServedWindow

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["Emission", "with_values"]

Column = npt.NDArray[np.int64]
NO_STARTS: Column = np.zeros(0, dtype=np.int64)
"""Where all windows show all aggregates."""


@dataclass(slots=True)
class Emission:
    """Windows to emit. Without `kind` and `revision`, all for the first time and in order of results."""

    windows: Listing
    kind: Column | None = None
    revision: Column | None = None
    values: list[pa.Array] = field(default_factory=list)
    """One column per aggregate; filled in for all windows of a step at once."""
    remember: tuple[ServedWindow, Candidates] | None = None
    """What the state must remember of these windows."""
    runs: Runs | None = None
    """Which windows share their edges, where that was searched for."""

    @property
    def is_first(self) -> bool:
        """Whether all windows are emitted for the first time."""
        return self.kind is None

    @property
    def kinds(self) -> Column:
        """The kind of each row."""
        return np.zeros(len(self.windows), dtype=np.int64) if self.kind is None else self.kind

    @property
    def revisions(self) -> Column:
        """The revision of each row."""
        return np.zeros(len(self.windows), dtype=np.int64) if self.revision is None else self.revision


def with_values(plan: BoundPlan, state: State, emissions: list[Emission]) -> list[Emission]:
    """Combine the slices of all windows at once, lower the results, and remember what must be."""
    unvalued = [e for e in emissions if not e.values]
    in_table_order = [e for e in unvalued if not len(e.windows.rows)]
    for group in (in_table_order, [e for e in unvalued if len(e.windows.rows)]):
        if group:
            _fill(plan, state, group)
    for e in unvalued:
        if e.remember is not None:
            served, new = e.remember
            assert e.revision is not None
            # Context-free windows never vanish, so their values are never repeated.
            repeatable = _repeatable(e) if len(e.windows.rows) else None
            known = state.emitted.get(served.name, EmittedWindows())
            recorded = known.recorded(new, e.revision, state.watermark, repeatable)
            state.emitted = state.emitted | {served.name: recorded}
    return [e for e in emissions if len(e.windows.key)]


def _fill(plan: BoundPlan, state: State, group: list[Emission]) -> None:
    start = NO_STARTS if plan.shown.everywhere else np.concatenate([e.windows.start for e in group])
    windows = _view(plan, state, group)
    values, combines = values_of(plan, state, windows, start, lambda j: _window_at(group, j))
    metrics = state.metrics
    metrics.merge_combines += combines
    at = 0
    for e in group:
        rows = len(e.windows.key)
        e.values = values if len(group) == 1 else [v.slice(at, rows) for v in values]
        at += rows
        if e.kind is None:
            metrics.windows += rows
        else:
            metrics.windows += int((e.kind != EARLY_ROW).sum())
            metrics.updates += int((e.kind == UPDATE_ROW).sum())


def _view(plan: BoundPlan, state: State, group: list[Emission]) -> View:
    """All these windows over the slices of the state."""
    if len(group) == 1:
        listing = group[0].windows
        rows = listing.rows if len(listing.rows) else None
        number, key, lo, hi = listing.number, listing.key, listing.lo, listing.hi
    else:
        sizes = np.cumsum([0, *(len(e.windows.rows) for e in group)])
        rows = np.concatenate([e.windows.rows for e in group]) if sizes[-1] else None
        number, key = (np.concatenate([getattr(e.windows, c) for e in group]) for c in ("number", "key"))
        lo, hi = (
            np.concatenate([getattr(e.windows, c) + size for e, size in zip(group, sizes[:-1], strict=True)])
            for c in ("lo", "hi")
        )
    return View(state.slices, rows, number, key, lo, hi, lambda: needed_from(plan, state), state.folds)


def _window_at(group: list[Emission], row: int) -> tuple[int, int, int]:
    """The number and the edges of a window, counted over all of these emissions."""
    for e in group:
        if row < len(e.windows):
            return int(e.windows.number[row]), int(e.windows.start[row]), int(e.windows.end[row])
        row -= len(e.windows)
    raise AssertionError(f"{row} windows too few")


def _repeatable(emission: Emission) -> pa.Table:
    """The part of a result that a retraction repeats: the edges in time and the values of aggregates."""
    edges = {"start": pa.array(emission.windows.start), "end": pa.array(emission.windows.end)}
    return pa.table(edges | {str(i): v for i, v in enumerate(emission.values)})
