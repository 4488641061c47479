"""Windows that are to come out get their values: slices are combined, and lowered, for all at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.combining.base import Combiner, View
from muntin.slicing.listing import Listing
from muntin.slicing.manager import SliceManager
from muntin.slicing.registry import EARLY_ROW, UPDATE_ROW, Candidates, Registry
from muntin.slicing.result_order import Runs
from muntin.slicing.window_values import values_of

Column = npt.NDArray[np.int64]


@dataclass(slots=True)
class Emission:
    """Result rows: the windows, how they are emitted, and the aggregates' values (filled in last).

    `ordered` tells that they are sorted as results are, `runs` which of them stand together, where that
    was looked for; `entry` is what to remember of them, and in which registry.
    """

    windows: Listing
    kind: Column
    revision: Column
    values: list[pa.Array] = field(default_factory=list)
    ordered: bool = False
    runs: Runs | None = None
    entry: tuple[Registry, Candidates] | None = None


def fill(emissions: list[Emission], slices: SliceManager, store: Combiner) -> list[Emission]:
    """Combine the slices of all windows at once, lower the results, and remember what must be."""
    if len(emissions) == 1 and not emissions[0].values:
        _fill_view(emissions, slices, store)
        open_ones = emissions
    else:
        open_ones = [e for e in emissions if not e.values]
        for view in (
            [e for e in open_ones if not len(e.windows.rows)],
            [e for e in open_ones if len(e.windows.rows)],
        ):
            if view:
                _fill_view(view, slices, store)
    for e in open_ones:
        if e.entry is not None:
            registry, new = e.entry
            # Context-free windows never vanish, so nothing of them is ever repeated.
            repeatable = _repeatable(e) if len(e.windows.rows) else None
            registry.record(new, e.revision, slices.watermark, repeatable)
    return [e for e in emissions if len(e.windows.key)]


def _fill_view(view: list[Emission], slices: SliceManager, store: Combiner) -> None:
    windows = _over_slices(view, slices)
    values, combines = values_of(windows, slices, store, lambda j: _window_at(view, j))
    slices.metrics.combined(combines)
    at = 0
    for e in view:
        rows = len(e.windows.key)
        e.values = values if len(view) == 1 else [v.slice(at, rows) for v in values]
        at += rows
        if e.ordered:  # for the first time, all of them
            slices.metrics.emitted(rows, 0)
        else:
            slices.metrics.emitted(int((e.kind != EARLY_ROW).sum()), int((e.kind == UPDATE_ROW).sum()))


def _over_slices(view: list[Emission], slices: SliceManager) -> View:
    """All these windows over the slices that there are."""
    if len(view) == 1:
        listing = view[0].windows
        rows = listing.rows if len(listing.rows) else None
        query, key, lo, hi = listing.query, listing.key, listing.lo, listing.hi
    else:
        sizes = np.cumsum([0, *(len(e.windows.rows) for e in view)])
        rows = np.concatenate([e.windows.rows for e in view]) if sizes[-1] else None
        query, key = (np.concatenate([getattr(e.windows, c) for e in view]) for c in ("query", "key"))
        lo, hi = (
            np.concatenate([getattr(e.windows, c) + size for e, size in zip(view, sizes[:-1], strict=True)])
            for c in ("lo", "hi")
        )
    return View(slices.table, rows, query, key, lo, hi, slices.needed_from, slices.folds)


def _window_at(view: list[Emission], row: int) -> tuple[int, int, int]:
    """The query and the edges of a window, counted over all of these emissions."""
    for e in view:
        if row < len(e.windows):
            return int(e.windows.query[row]), int(e.windows.start[row]), int(e.windows.end[row])
        row -= len(e.windows)
    raise AssertionError(f"{row} windows too few")


def _repeatable(emission: Emission) -> pa.Table:
    """What a retraction repeats: the edges in time and the aggregates' values."""
    edges = {"start": pa.array(emission.windows.start), "end": pa.array(emission.windows.end)}
    return pa.table(edges | {str(i): v for i, v in enumerate(emission.values)})
