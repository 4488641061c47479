"""Tables of what a state holds: its slices, and its open windows with their values so far.

They look at a draft of the state, in which every tuple counts that has arrived, so the state stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates import joining
from muntin.errors import PlacedError, QueryError
from muntin.query import EDGE_PREFIX, WINDOW_NAME, QuerySpec
from muntin.slicing.edges import REACH
from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.revisions import contents
from muntin.slicing.emission.window_manager import open_results
from muntin.slicing.error_places import add_place
from muntin.slicing.eviction import evict
from muntin.slicing.lateness import judge
from muntin.slicing.shown_aggregates import NO_WINDOW
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.tuple_slicer import slice_tuples
from muntin.slicing.window_limit import check_unprompted
from muntin.timeline import INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = [
    "checked_names", "no_open_windows", "no_slices", "open_windows", "slices", "untyped", "up_to_date",
]  # fmt: skip

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

WINDOW_COUNT = f"{EDGE_PREFIX}count"
SEPARATOR = "slice_separator"
SLICE_TIMES = ("slice_start", "slice_end", "slice_first", "slice_last")
SLICE_COUNT = "slice_count"
SEPARATORS = pa.array(["fixed", "flexible", "combined"])
FIXED, FLEXIBLE, COMBINED = range(3)


def open_windows(plan: BoundPlan, state: State) -> pa.Table:
    """The windows that contain a tuple and are not complete, with the value of each aggregate so far.

    The end is null where only a further tuple can tell it. Costs what early results of these windows cost.
    """
    empty = _open_windows_of(plan, [], state)
    if state.watermark == INF:
        return empty
    draft = up_to_date(plan, state.draft())
    try:
        emissions = open_results(plan, draft)
    except PlacedError as error:
        add_place(error, plan, draft)
        raise
    return _open_windows_of(plan, emissions, draft)


def slices(plan: BoundPlan, state: State) -> pa.Table:
    """The slices that some window still needs, joined where possible, with the aggregates over each alone.

    An aggregate is null where it fails on this slice. Costs O(slices), and their values.
    """
    draft, table = state.draft(), plan.no_slices
    if state.watermark < INF:
        evict(plan, draft, force=True)
        table = up_to_date(plan, draft).slices
    separators, time = _separators(plan, table), plan.binding.time
    edges = [
        pc.if_else(pa.array(separators.starts), time.to_edges(separators.start, ceil=False), None),
        pc.if_else(pa.array(separators.ends), time.to_edges(separators.end, ceil=True), None),
        time.to_edges(table.first, ceil=False),
        time.to_edges(table.last, ceil=False),
    ]
    kinds = SEPARATORS.take(pa.array(separators.kind, mask=~separators.ends))
    columns = [*draft.keys.values(table.key), *edges, pa.array(table.n), kinds, *_lowered(plan, table)]
    names = _slice_names(plan.spec)
    return pa.Table.from_arrays(columns, names=names)


def no_slices(spec: QuerySpec) -> pa.Table:
    """The table of slices before the types of the input are known."""
    return untyped(_slice_names(spec))


def no_open_windows(spec: QuerySpec) -> pa.Table:
    """The table of open windows before the types of the input are known."""
    return untyped(_window_names(spec, ("start", "end")))


def untyped(names: list[str]) -> pa.Table:
    """A table of these columns, whose types are not known yet, without rows."""
    return pa.schema([pa.field(name, pa.null()) for name in names]).empty_table()


def _slice_names(spec: QuerySpec) -> list[str]:
    return checked_names(spec, "slices()", (*SLICE_TIMES, SLICE_COUNT, SEPARATOR))


def _window_names(spec: QuerySpec, edges: tuple[str, ...]) -> list[str]:
    own = (WINDOW_NAME, *(EDGE_PREFIX + edge for edge in edges), WINDOW_COUNT)
    return checked_names(spec, "open_windows()", own)


def checked_names(spec: QuerySpec, call: str, own: tuple[str, ...]) -> list[str]:
    """Keys, the columns that a call adds, aggregates; an error where a name would appear twice."""
    aggregates = [name for name, _ in spec.aggregates]
    for name in (*spec.keys, *aggregates):
        if name in own:
            raise QueryError(
                f'{call} has a column "{name}" of its own: the query has a key or an aggregate of this name; '
                "rename it in the query"
            )
    return [*spec.keys, *own, *aggregates]


def up_to_date(plan: BoundPlan, draft: State) -> State:
    """The draft with all tuples in slices, those beyond the watermark and late ones too.

    Late ones count as if the watermark moved now. The draft has a store of its own, because that of the
    state may persist, and must not follow slices that the state does not have.
    """
    draft.store = None
    draft.newest = max(draft.newest, draft.newest_late)
    check_unprompted(plan, draft, draft.watermark, INF)
    if draft.tuples is not None:
        slice_tuples(plan, draft, draft.watermark)
        slice_tuples(plan, draft, INF)
    judge(plan, draft, plan.final(draft.watermark))
    return draft


def _open_windows_of(plan: BoundPlan, emissions: list[Emission], state: State) -> pa.Table:
    """The rows of these windows, with flat edges and the number of their tuples."""
    shape = plan.results
    edges = tuple(field.name for field in shape.edge_fields)
    names = _window_names(plan.spec, edges)
    tables = [_rows(plan, emission, state) for emission in emissions] or [_flat(shape.empty, None, None)]
    return pa.concat_tables(tables).rename_columns(names)


def _rows(plan: BoundPlan, emission: Emission, state: State) -> pa.Table:
    windows = emission.windows
    counts = contents(state, windows)[0].n
    return _flat(plan.results.table([emission], state.keys), windows.complete_at < INF, counts)


def _flat(table: pa.Table, ends: Mask | None, counts: Column | None) -> pa.Table:
    """Flat edges in place of the struct, null ends where `ends` is false, counts, no kind and revision."""
    at = table.column_names.index("window")
    window, columns = table.column(at), list(table.columns[:-2])
    edges = [pc.struct_field(window, [i]) for i in range(window.type.num_fields)]
    if ends is not None:
        edges[1] = pc.if_else(pa.array(ends), edges[1], None)
    number = pa.array([], pa.int64()) if counts is None else pa.array(counts)
    columns[at : at + 1] = [*edges, pa.chunked_array([number])]
    return pa.Table.from_arrays(columns, names=[str(i) for i in range(len(columns))])


def _lowered(plan: BoundPlan, table: SliceTable) -> list[pa.Array]:
    """The aggregates over each slice alone."""
    partials, rows = plan.partials, np.arange(len(table), dtype=np.int64)
    try:
        values = partials.lower(partials.window(table.states, None, rows, rows + 1))
    except PlacedError:
        each = [partials.window(table.states, None, rows[i : i + 1], rows[i : i + 1] + 1) for i in rows]
        values = [
            joining.concat(several)
            for several in zip(*(partials.lower_each(one)[0] for one in each), strict=True)
        ]
    none = np.full(len(table), NO_WINDOW, dtype=np.int64)
    return plan.shown.masked(values, number=none, start=table.first)


class _Separators(NamedTuple):
    """Where slices start and end; which starts and ends are known; the kinds of separators at the ends."""

    start: Column
    starts: Mask
    end: Column
    ends: Mask
    kind: Column


def _separators(plan: BoundPlan, table: SliceTable) -> _Separators:
    """Where slices start and end, as fixed edges, sessions and windows over tuples determine it.

    A flexible separator is the end of a session, or one that a window places between two tuples; a later
    tuple may move it. A combined one is a fixed edge at which a session ends, too. [scotty §7.1.3, §8.1]
    """
    # Tuples too late for windows that depend on their order have slices of their own, between the others.
    ranked = table.rank >= 0
    order = np.lexsort((table.first, ranked, table.key))
    key, first, last, ranked = table.key[order], table.first[order], table.last[order], ranked[order]
    edges, gap = _edges_around(plan, first, last), plan.served.gap
    place = np.searchsorted(edges, first, side="right") - 1
    low, low_known = np.append(edges, INF)[place], place >= 0
    high = np.append(edges, INF)[np.searchsorted(edges, last, side="right")]
    follows = (key[1:] == key[:-1]) & (ranked[1:] == ranked[:-1])
    after = np.append(np.where(follows, first[1:], INF), INF)[: len(key)]
    after = np.maximum(after, last + 1)  # late tuples may lie in slices that overlap others
    # A slice behind another one between the same two fixed edges starts with its first tuple.
    inside = np.insert(follows & ((last[:-1] >= low[1:]) | ~low_known[1:]), 0, False)[: len(key)]
    starts_with_tuple = inside | ~low_known
    ends_session = (after - last > gap) if gap >= 0 else np.zeros(len(key), dtype=np.bool_)
    flexible = np.where(ends_session, last + max(gap, 0), np.where(after < high, after, INF))
    end = np.minimum(high, flexible)
    kind = np.where(flexible < high, FLEXIBLE, np.where(ends_session, COMBINED, FIXED))
    known = inside | low_known | ranked | (gap >= 0)
    back, ends = np.argsort(order), end < INF
    start, end = np.where(starts_with_tuple, first, low), np.where(ends, end, last)
    return _Separators(start[back], known[back], end[back], ends[back], kind[back])


def _edges_around(plan: BoundPlan, first: Column, last: Column) -> Column:
    """The fixed edges, those next to each slice among them."""
    times = np.concatenate([first, last])
    if not len(times):
        return times
    low, high = int(times.min()), int(times.max())
    return plan.served.edges.around(low, high, times, np.array([low - REACH]), np.array([high + REACH]))
