"""Windows that are added and removed while an operator runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Aggregate
from muntin.errors import QueryError, nearest
from muntin.query import QuerySpec
from muntin.slicing.aggregate_changes import (
    check_aggregates,
    check_stored,
    since_added,
    with_columns_of,
    with_new_aggregates,
)
from muntin.slicing.edges import crossed
from muntin.slicing.eviction import evict, merge_slices
from muntin.slicing.lateness import late_for
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.slice_manager import mark_tuples
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.tuple_needs import grow
from muntin.slicing.tuple_slicer import dissolve, slice_tuples
from muntin.slicing.tuple_state import TupleState
from muntin.timeline import INF, LIMIT, NEG_INF, Micros, format_instant
from muntin.windows.base import ContextFreeWindow, Window

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["Added", "Change", "adapted", "change", "check_change", "to_add", "to_remove"]

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Change:
    """Windows and aggregates to serve from now on, and names of those that are no longer served."""

    windows: Mapping[str, Window] = field(default_factory=dict)
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def removed(self, spec: QuerySpec, served: ServedWindows) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The windows and the aggregates to remove; a QueryError for a name of neither.

        Where both have the same name, it means the window.
        """
        windows = [window.name for window in served.all]
        aggregates = [name for name, _ in spec.aggregates if name not in served.hidden]
        for name in self.remove:
            if name not in windows and name not in aggregates:
                known = [*windows, *aggregates]
                raise QueryError(
                    f'there is no window or aggregate "{name}"; there are {", ".join(known)}.'
                    f"{nearest(name, known)}"
                )
        gone = tuple(name for name in self.remove if name in windows)
        return gone, tuple(name for name in self.remove if name not in gone)


@dataclass(slots=True)
class Added:
    """From when on added windows and aggregates are complete; as a text, a line for each.

    For each window, the time from which its results are complete; for each aggregate, the least start of the
    windows that show it.
    """

    since: dict[str, int]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.notes)


def to_add(
    unnamed: Sequence[object], named: Mapping[str, object]
) -> tuple[dict[str, Window], dict[str, Aggregate]]:
    """The windows and the aggregates that `add` was given by name; a QueryError without names.

    A QueryError for a value of another type comes later, from the query itself.
    """
    if unnamed or not named:
        raise QueryError(
            'windows and aggregates need names: write .add(half=w.tumbling("30 seconds"), top=a.max("v"))'
        )
    aggregates = {name: one for name, one in named.items() if isinstance(one, Aggregate)}
    windows = {name: one for name, one in named.items() if name not in aggregates}
    return cast("dict[str, Window]", windows), aggregates


def to_remove(names: Sequence[str]) -> tuple[str, ...]:
    """The names of windows and aggregates that `remove` was given; a QueryError if there are none."""
    if not names:
        raise QueryError('name the windows and aggregates to remove: write .remove("minute")')
    return tuple(names)


def change(
    plan: BoundPlan, state: State, change: Change, after: int = NEG_INF, columns_stay: bool = False
) -> tuple[BoundPlan, State, Added]:
    """The plan and the state after a change, and from when what is new is complete.

    `after` and `columns_stay` are those of `change_windows` and `check_aggregates`.
    """
    added, before = Added({}), dict(plan.served.aggregates_since)
    gone, dropped = change.removed(plan.spec, plan.served)
    if change.windows or gone:
        plan, state, added = change_windows(plan, state, change.windows, gone, after)
    if change.aggregates or dropped:
        spec, served = check_aggregates(plan.spec, plan.served, change.aggregates, dropped, columns_stay)
        check_stored(plan, state, change.aggregates)
        other = plan.serving(served, spec)
        other = with_new_aggregates(plan, state, other, after, change.aggregates)
        state = adapted(state.draft(), plan, other)
        replaced = (*change.aggregates, *dropped)
        state.change_tables(lambda table: with_columns_of(other, plan, replaced, table))
        plan = other
    for name, aggregate in plan.spec.aggregates:
        since = since_added(plan, name)
        if name in change.aggregates:
            added.since[name] = since
        # Also an aggregate that a new window is the first to show.
        if name in change.aggregates or since not in (before.get(name, NEG_INF), INF):
            added.notes.append(_aggregate_note(plan, name, aggregate, since))
    return plan, state, added


def check_change(
    spec: QuerySpec, served: ServedWindows, add: Mapping[str, Window], remove: Sequence[str]
) -> tuple[ServedWindow, ...]:
    """The windows that stay; a QueryError where a change makes no sense."""
    names = [window.name for window in served.all]
    for name in remove:
        if name not in names:
            raise QueryError(
                f'there is no window "{name}"; there are {", ".join(names)}.{nearest(name, names)}'
            )
    stay = tuple(window for window in served.all if window.name not in remove)
    for name in add:
        if name in {window.name for window in stay}:
            raise QueryError(f'there is a window "{name}" already; choose another name, or remove it first')
    if not stay and not add:
        last = (
            f'"{names[0]}" is the only window'
            if len(names) == 1
            else f"{', '.join(names)} are the only windows"
        )
        raise QueryError(f"{last} left; end the stream instead")
    windows = (*((window.name, window.window) for window in stay), *add.items())
    replace(spec, windows=windows)  # which refuses what makes no sense together
    return stay


def change_windows(
    plan: BoundPlan, state: State, add: Mapping[str, Window], remove: Sequence[str], after: int = NEG_INF
) -> tuple[BoundPlan, State, Added]:
    """The plan and the state after a change of windows; from when each new one is complete.

    A removed name may be added again with another window. No new window begins by `after`. What only
    the removed ones needed is dropped.
    """
    stay = check_change(plan.spec, plan.served, add, remove)
    state, added = state.draft(), Added({})
    for served in plan.served.all:
        if served.name in remove:  # while it can still be decided what is late for it
            late_for(plan, state, served)
    state.emitted = {name: table for name, table in state.emitted.items() if name not in remove}
    state.extents = {name: table for name, table in state.extents.items() if name not in remove}
    new = []
    for name, window in add.items():
        since = _serves_from(plan, state, window, after)
        added.since[name] = since
        added.notes.append(_note(plan, name, window, since))
        new.append(ServedWindow(name, window, since, state.watermark if since > NEG_INF else NEG_INF))
    other = plan.serving(replace(plan.served, all=(*stay, *new)))
    other = with_new_aggregates(plan, state, other, after)
    state = adapted(state, plan, other)
    recuts = remove or any(isinstance(window, ContextFreeWindow) for window in add.values())
    if recuts and _cuts_anew(other, state):
        slice_tuples(other, state, state.watermark, again=True)
    if remove:
        merge_slices(other, state)
    state.late_counts = {name: n for name, n in state.late_counts.items() if name not in remove}
    if len(state.compared):
        numbers = {one.name: i for i, one in enumerate(stay)}
        places = {i: numbers[one.name] for i, one in enumerate(plan.served.all) if one.name in numbers}
        state.compared = state.compared.of_windows_now(places)
    if new and other.shows_early:
        mark_tuples(state, fresh=True)  # the next early look shows all that the new windows hold
    return other, state, added


def adapted(state: State, old: BoundPlan, new: BoundPlan) -> State:
    """The state for other windows, or for inputs of other types; it must be a draft.

    Session classes are renumbered, and tuples are kept or not as the windows need.
    """
    level = _renumbered(state.slices.level, old.served.gaps, new.served.gaps)
    state.slices = state.slices.changed(level=level).carried(new.partials)
    state.late_tuples = tuple(
        replace(late, rows=late.rows.carried(new.partials)) for late in state.late_tuples
    )
    state.store, state.quiet_until = None, NEG_INF
    if state.tuples is not None:
        state.tuples.change_tables(lambda table: table.with_inputs(new.binding.types))
        state.tuples.without([q.name for q in old.served.tuple_driven if q not in new.served.tuple_driven])
        grow(new, state)
        if not new.served.tuple_driven:
            dissolve(new, state)
    elif new.served.tuple_driven:
        state.tuples = TupleState()
    return state


def _serves_from(plan: BoundPlan, state: State, window: Window, after: int) -> int:
    """The first time from which a new window finds all tuples, in slices that its edges do not cut.

    Later than `after`, for callers that must choose the same time for several operators.
    """
    if max(state.newest, after) == NEG_INF and not state.late_tuples:
        return NEG_INF
    evict(plan, state, force=True)
    if not isinstance(window, ContextFreeWindow):
        return max(state.newest, state.newest_late, after) + 1
    low = max(state.retained_from, window.first_start(max(state.watermark, -LIMIT)), after + 1)
    if window.emit_empty:
        # Where its empty windows lie depends on the extent of each key, noted from now on.
        low = max(low, state.newest + 1, state.newest_late + 1)
    if state.tuples is not None:
        slice_tuples(plan, state, state.watermark)
    for rows in (state.slices, *(late.rows for late in state.late_tuples)):
        if len(rows):
            cut = crossed(window, rows.first, rows.last)
            low = max(low, int(_whole_from(plan, state, rows.take(cut)).max(initial=NEG_INF)))
    return NEG_INF if low <= -LIMIT else next_start(window, low)


def _whole_from(plan: BoundPlan, state: State, rows: SliceTable) -> Column:
    """From when the tuples of each of these slices, which an edge cuts, are in slices that it does not cut.

    Slices whose tuples are stored are split. Which tuples before the final time are stored depends on when
    they were dropped, so those are not counted on.
    """
    behind: Column = rows.last + 1
    if not _cuts_anew(plan, state):
        return behind
    assert state.tuples is not None
    stored = (rows.rank >= 0) & (rows.rank >= state.tuples.committed.rank[rows.key])
    final = plan.final(state.watermark)
    return np.where(stored, np.where(rows.first < final, np.minimum(behind, final), NEG_INF), behind)


def _cuts_anew(plan: BoundPlan, state: State) -> bool:
    """Whether tuples that were sliced may be sliced again.

    Without lateness the windows over tuples that came out are not remembered: they would come out again.
    """
    return state.tuples is not None and plan.lateness > 0


def next_start(window: ContextFreeWindow, low: int) -> int:
    """The first window start at or after `low`."""
    reach = 1
    while True:
        starts = window.starts(low, low + reach)
        if len(starts):
            return int(starts[0])
        if reach > LIMIT // 2:
            return INF
        reach *= 2


def _renumbered(level: Column, old: Column, new: Column) -> Column:
    """Levels count the smaller gaps that a slice takes no part in; now over other gaps."""
    # A slice of level l has expired for old gaps below old[l]; it takes part from that gap on.
    bound = np.concatenate([old, [INF]])[np.minimum(level, len(old))]
    return np.where(level == 0, 0, np.searchsorted(new, bound)).astype(np.int64)


def _aggregate_note(plan: BoundPlan, name: str, aggregate: Aggregate, since: int) -> str:
    if since == NEG_INF:
        return f'"{name}" ({aggregate}) is computed from the beginning'
    start = since if plan.binding.time.is_integer else format_instant(Micros(since))
    return (
        f'"{name}" ({aggregate}) is shown by windows that begin at {start} or later: earlier slices lack it'
    )


def _note(plan: BoundPlan, name: str, window: Window, since: int) -> str:
    if since == NEG_INF:
        return f'"{name}" ({window.describe()}) is served from the beginning'
    start = since if plan.binding.time.is_integer else format_instant(Micros(since))
    return f'"{name}" ({window.describe()}) starts at {start}: what came before was sliced without it'
