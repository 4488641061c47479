"""Computes the values of emitted windows; one that fails is an error, or null with on_error="skip"."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.aggregates import joining
from muntin.errors import PlacedError
from muntin.slicing.blaming import blame_row, name_place
from muntin.slicing.combining.base import Combiner, Lazy, View, combine

if TYPE_CHECKING:
    from muntin.slicing.manager import SliceManager
    from muntin.slicing.operator import SlicingOperator

__all__ = ["report_errors", "values_of"]

LOG = logging.getLogger("muntin")
SAMPLE = 3

WindowAt = Callable[[int], tuple[int, int, int]]
"""The query and the edges of the window of a row."""


def values_of(
    windows: View, slices: SliceManager, store: Combiner, window_at: WindowAt
) -> tuple[list[pa.Array], int]:
    """One column of values per aggregate, and the number of combines.

    With on_error="skip", windows that fail are found by bisection. Each attempt combines its windows
    without the store, so that the store never holds a failed partial.
    """
    try:
        states, combines = combine(store, slices.partials, windows)
        return slices.partials.lower(states), combines
    except PlacedError as error:
        if not slices.skips_errors:
            blame_row(error, lambda j: windows.key[j], window_at)
            raise
    store.reset()
    parts = [(0, len(windows))]
    found: list[list[pa.Array]] = []
    while parts:
        begin, end = parts.pop()
        some = _between(windows, begin, end)
        states, combines = combine(Lazy(), slices.partials, some)
        try:
            found.append(slices.partials.lower(states))
        except PlacedError:
            middle = (begin + end) // 2
            if middle > begin:
                parts += [(middle, end), (begin, middle)]
                continue
            values, errors = slices.partials.lower_each(states)
            for each in errors:
                each.row, each.key, each.window = begin, int(windows.key[begin]), window_at(begin)
            slices.failed += errors
            found.append(values)
    return [joining.concat(columns) for columns in zip(*found, strict=True)], windows.walked


def _between(windows: View, begin: int, end: int) -> View:
    query, key, lo, hi = (getattr(windows, name)[begin:end] for name in ("query", "key", "lo", "hi"))
    return View(windows.table, windows.rows, query, key, lo, hi, windows.needed, windows.folds)


def report_errors(operator: SlicingOperator) -> None:
    """Count and log the errors that were skipped since the last call."""
    failed, operator.slices.failed = operator.slices.failed, []
    if not failed:
        return
    operator.metrics.errors += len(failed)
    sample = failed[:SAMPLE]
    for error in sample:
        error.cure = ""
        name_place(error, operator)
    LOG.warning('on_error="skip" skipped %d errors: %s', len(failed), "; ".join(map(str, sample)))
