"""The aggregates over a range of time, from the slices of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import PlacedError, QueryError
from muntin.query import QuerySpec
from muntin.slicing.emission.emissions import Emission, with_values
from muntin.slicing.emission.listing import Listing, list_given
from muntin.slicing.emission.revisions import contents
from muntin.slicing.error_places import add_place
from muntin.slicing.inspection import checked_names, untyped, up_to_date
from muntin.slicing.shown_aggregates import NO_WINDOW
from muntin.slicing.slice_table import SliceTable
from muntin.timeline import INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["no_range", "range_values"]

Column = npt.NDArray[np.int64]

RANGE = ("range_start", "range_end", "range_count")


def range_values(plan: BoundPlan, state: State, start: int, end: int, key: int | None) -> pa.Table:
    """Per key, or for one key, the aggregates over the answered range, which lies in [start, end).

    It ends where a slice holds tuples on both sides of an edge, and begins where slices are complete. Keys
    without a tuple in it have no row. Costs a search of O(slices), and the combines of those in the range:
    O(log n) where a tree over n slices persists and no tuple waits to be sliced, since it serves this, too.
    """
    draft, table = state.draft(), plan.no_slices
    if state.watermark < INF:
        draft = up_to_date(plan, draft)
        table = draft.slices
        if table is state.slices and state.combiner(plan).serves_ranges:
            draft.store = state.store
    keys = np.arange(draft.key_count, dtype=np.int64) if key is None else np.array([key], dtype=np.int64)
    low, high = _answered(table, draft.key_count, max(start, draft.retained_from), end)
    listing = list_given(NO_WINDOW, keys, low[keys], np.maximum(low, high)[keys], table, draft.key_count)
    listing = listing.take(listing.hi > listing.lo)
    values, counts = _values(plan, draft, listing)
    time = plan.binding.time
    edges = [time.to_edges(edge, ceil=True) for edge in (listing.start, listing.end)]
    columns = [*draft.keys.values(listing.key), *edges, pa.array(counts), *values]
    return pa.Table.from_arrays(columns, names=_names(plan.spec))


def no_range(spec: QuerySpec) -> pa.Table:
    """The same before the types of the input are known."""
    return untyped(_names(spec))


def _names(spec: QuerySpec) -> list[str]:
    return checked_names(spec, "query()", RANGE)


def key_number(plan: BoundPlan, state: State, key: object) -> int | None:
    """The number of a key that the user names; None if no tuple has it."""
    names = plan.spec.keys
    values = key if isinstance(key, tuple) else (key,)
    if len(values) != len(names):
        raise QueryError(
            f"key= needs a value for each of {', '.join(names) or 'no key column'}: got {key!r}; "
            "write a tuple where there are several key columns, and leave it out where there is none"
        )
    try:
        columns = [pa.array([v], kind) for v, kind in zip(values, state.keys.types, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        kinds = ", ".join(f"{name} {kind}" for name, kind in zip(names, state.keys.types, strict=True))
        raise QueryError(f"key= must fit the key columns ({kinds}): got {key!r}; {error}") from error
    number = int(state.keys.draft().encode(columns)[0])
    return number if number < state.key_count else None


def _answered(table: SliceTable, keys: int, start: int, end: int) -> tuple[Column, Column]:
    """Per key the largest range within [start, end) whose edges no slice crosses."""
    low, high = np.full(keys, start, dtype=np.int64), np.full(keys, end, dtype=np.int64)
    key, first, last = table.key, table.first, table.last
    while True:
        before = (first < low[key]) & (last >= low[key])
        np.maximum.at(low, key[before], last[before] + 1)
        behind = (first < high[key]) & (last >= high[key])
        np.minimum.at(high, key[behind], first[behind])
        if not before.any() and not behind.any():
            return low, high


def _values(plan: BoundPlan, state: State, listing: Listing) -> tuple[list[pa.Array], Column]:
    counts = contents(state, listing)[0].n
    if not len(listing):
        return [pa.nulls(0, bound.type) for bound in plan.binding.results], counts
    try:
        (emission,) = with_values(plan, state, [Emission(listing)])
    except PlacedError as error:
        error.window = None  # it is no window of the query
        add_place(error, plan, state)
        raise
    return emission.values, counts
