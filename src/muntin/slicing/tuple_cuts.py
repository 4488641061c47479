"""Tuple-driven windows walk over tuples in order: each key has a context, and edges come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.errors import PlacedError, UserCodeError
from muntin.expressions import Expr
from muntin.slicing.batch import numbers, ranges, values_at
from muntin.slicing.served import ServedWindow
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import Progress, copy_contexts, window_of
from muntin.slicing.window_limit import WindowLimit
from muntin.timeline import INF
from muntin.windows.base import Context
from muntin.windows.tuple_driven import Cuts, Tuples

__all__ = ["Walk", "cut", "walk"]

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a walk over tuples goes, and what becomes of open windows and errors."""

    upto: int
    """Every tuple before this time has been passed."""
    newest: int
    inputs: dict[str, tuple[Expr, ...]]
    """The columns that each window reads."""
    closing: bool = False
    """Whether windows that are still open are returned, too, as if they ended after their last tuple."""
    partial: bool = False
    """Whether count windows that are not full are returned, too."""
    limit: WindowLimit | None = None
    """The limit of windows; None where the same windows were counted before."""
    failed: list[PlacedError] | None = None
    """Collects errors of the user's code where they are skipped; None where they are raised."""
    in_order: bool = False
    """Whether a window is complete with the tuple that ends it: no earlier tuple may arrive any more."""


def cut(
    tuples: TupleState, served: ServedWindow, progress: Progress, keys: Column, end: Column, how: Walk
) -> Cuts:
    """Advance the contexts of one window over the tuples of these keys, up to the positions `end`."""
    begin = tuples.offsets[keys]
    if served.window.context is not Context.FORWARD_AWARE:
        begin = begin + progress.rank[keys] - tuples.positions.base[keys]
    contexts = progress.context[served.name]
    part = copy_contexts(contexts[keys])
    cuts, _ = walk(tuples, served, part, keys, begin, end, how)
    if not how.closing:
        contexts[keys] = part
    cuts.segment = keys[cuts.segment]
    cuts.edge_segment = keys[cuts.edge_segment]
    return cuts


def walk(
    tuples: TupleState,
    served: ServedWindow,
    contexts: Any,
    keys: Column,
    begin: Column,
    end: Column,
    how: Walk,
    until: Column | None = None,
) -> tuple[Cuts, Column]:
    """Advance contexts over the tuples at begin:end, each over those of its key.

    Returns the windows, with the numbers of contexts as segments, and the time of the first tuple
    that each context was given; INF where there was none.
    """
    skipped = tuples.skip(served, keys)
    start = np.maximum(begin, tuples.offsets[keys] + skipped - tuples.positions.base[keys])
    segments = _segments(tuples, how.inputs[served.name], keys, start, end)
    size = np.diff(segments.offsets)
    if skipped.any():
        segments.rank = segments.rank - np.repeat(skipped, size)
    segments.until, segments.failed = until, how.failed
    window = window_of(served)
    if window.per_tuple > 1 and how.limit is not None:
        inputs = len(segments) + len(keys)
        if inputs * window.per_tuple > how.limit.most(inputs):
            how.limit.check(served, window.count(contexts, segments, how.closing), inputs, how.newest)
    try:
        cuts = window.cut(
            contexts, segments, how.upto, closing=how.closing, partial=how.partial, newest=how.newest
        )
    except UserCodeError as error:
        error.cure = f'repair it, remove the window "{served.name}", or choose on_error="skip"'
        raise
    if how.in_order and not window.timed:
        cuts.complete_at = np.where(cuts.complete_at == INF, INF, np.minimum(cuts.complete_at, how.upto))
    for segment, ranks in ((cuts.segment, (cuts.begin, cuts.end)), (cuts.edge_segment, (cuts.edge_rank,))):
        for rank in ranks:
            rank += skipped[segment]
    first = np.full(len(keys), INF, dtype=np.int64)
    first[size > 0] = segments.time[segments.offsets[:-1][size > 0]]
    return cuts, first


def _segments(
    tuples: TupleState, inputs: tuple[Expr, ...], keys: Column, begin: Column, end: Column
) -> Tuples:
    """The tuples at begin:end of each key as one segment each."""
    assert tuples.batch is not None
    size = np.maximum(end - begin, 0)
    offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    index = ranges(begin, size)
    columns = {e: values_at(tuples.batch.values[e], index) for e in inputs}
    rank = numbers(tuples.positions.base[keys] - tuples.offsets[keys] + begin, size)
    return Tuples(offsets, tuples.batch.time[index], rank, columns)
