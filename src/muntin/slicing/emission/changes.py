"""Emission of changes: a window comes out only if its values differ from those of the window before it.

The IStream of [reactive §2]. The windows of one name and key follow each other in the order of their ends.
Whoever carries the values of the last row forward always has the values of every window: so a window that
did not come out comes out later if the window before it changes or is retracted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import joining
from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.emitted_windows import EARLY_ROW, RETRACT_ROW, UPDATE_ROW, repeated_rows
from muntin.slicing.emission.listing import ALL_ROWS, Listing
from muntin.slicing.emission.value_differences import differences
from muntin.slicing.emission.valued_table import ValuedTable
from muntin.slicing.schema import Role, Schema, no_rows
from muntin.slicing.served import ServedWindow

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["ComparedWindows", "changes_only", "forget_compared"]

Column = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

IDENTITY = ("ordinal", "b", "a", "life", "key")
"""The columns that identify a window."""
ORDER = ("ordinal", "b", "a", "start", "end", "key")
"""The columns that order windows, least significant first: those of a key follow each other."""


@dataclass(frozen=True, slots=True)
class ComparedWindows(ValuedTable):
    """The windows of one name with their values: all that may change, and of each key the last one before.

    `shown`: whether the window came out. `kind` and `revision` are those of its last row, shown or not.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "key": Role.KEY, "due": Role.EDGE, "start": Role.EDGE, "end": Role.EDGE, "a": Role.VALUE,
            "b": Role.VALUE, "life": Role.MOMENT, "ordinal": Role.COUNT, "kind": Role.STAGE,
            "revision": Role.COUNT, "shown": Role.FLAG,
        },
        time="due",
    )  # fmt: skip

    key: Column = field(default_factory=no_rows)
    due: Column = field(default_factory=no_rows)
    start: Column = field(default_factory=no_rows)
    end: Column = field(default_factory=no_rows)
    a: Column = field(default_factory=no_rows)
    b: Column = field(default_factory=no_rows)
    life: Column = field(default_factory=no_rows)
    ordinal: Column = field(default_factory=no_rows)
    kind: Column = field(default_factory=no_rows)
    revision: Column = field(default_factory=no_rows)
    shown: Column = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    values: pa.Table | None = None

    @classmethod
    def of(cls, emission: Emission, rows: Column) -> ComparedWindows:
        """These rows of an emission; the windows have not come out yet."""
        windows = emission.windows.take(rows)
        none = np.zeros(len(windows), dtype=np.int64)
        on_time = windows.low is None
        a, b = (windows.start, windows.end) if on_time else (windows.low, windows.high)
        life = none if windows.life is None else windows.life
        ordinal = none if windows.ordinal is None else windows.ordinal
        kind, revision, shown = emission.kinds[rows], emission.revisions[rows], none.astype(np.bool_)
        values = _table([joining.taken(column, rows) for column in emission.values])
        return cls(
            windows.key, windows.due, windows.start, windows.end, a, b, life, ordinal, kind, revision, shown,
            values,
        )  # fmt: skip

    def order(self) -> Column:
        """The rows in the order of windows."""
        return np.lexsort([getattr(self, name) for name in ORDER])

    def is_distinct(self) -> bool:
        """Whether each identity has one row."""
        return not len(self) or not len(repeated_rows([getattr(self, name) for name in IDENTITY])[1])

    def without_expired(self, final: int, forget: int | None) -> ComparedWindows:
        """The windows that may change, and of each key the last one before them, until it is forgotten."""
        order = self.order()
        key, over = self.key[order], self.due[order] < final
        follows = np.append(key[1:] == key[:-1], False)[: len(key)]
        is_last = over & ~(follows & np.append(over[1:], False)[: len(key)])
        if forget is not None:
            is_last &= follows | (self.end[order] > final - forget)
        stays, shown = np.zeros(len(self), dtype=np.bool_), self.shown.copy()
        stays[order] = ~over | is_last
        shown[order[over]] = True  # its values are known, and it never comes out any more
        return replace(self, shown=shown).take(stays)


def changes_only(plan: BoundPlan, state: State, emissions: list[Emission]) -> list[Emission]:
    """Of these rows those that tell something new, and windows that come out because another has changed."""
    if not plan.shows_changes or not emissions:
        return emissions
    shown = [np.zeros(len(e.windows), dtype=np.bool_) for e in emissions]
    more: list[Emission] = []
    for number in np.unique(np.concatenate([e.windows.number for e in emissions])).tolist():
        served = plan.served.all[number]
        rows = [np.flatnonzero(e.windows.number == number) for e in emissions]
        new = [ComparedWindows.of(e, at) for e, at in zip(emissions, rows, strict=True) if len(at)]
        comes, late = _compare(plan, state, served, new)
        at = 0
        for mask, chosen in zip(shown, rows, strict=True):
            mask[chosen] = comes[at : at + len(chosen)]
            at += len(chosen)
        more += late
    _count(state, emissions, shown, more)
    filtered = [_taken(e, np.flatnonzero(mask)) for e, mask in zip(emissions, shown, strict=True)]
    return [e for e in (*filtered, *more) if len(e.windows)]


def _compare(
    plan: BoundPlan, state: State, served: ServedWindow, rows: list[ComparedWindows]
) -> tuple[Mask, list[Emission]]:
    """Which rows come out, and the windows that did not come out before and do now."""
    known = state.compared.get(served.name, ComparedWindows())
    new = rows[0]
    for other in rows[1:]:
        new = new.join(other)
    before = _places(known, new)
    was_shown = np.zeros(len(new), dtype=np.bool_)
    changed = np.ones(len(new), dtype=np.bool_)
    matched = np.flatnonzero(before >= 0)
    if len(matched):
        at = before[matched]
        was_shown[matched] = known.shown[at]
        assert new.values is not None
        assert known.values is not None
        changed[matched] = _differ(new.values, matched, known.values, at)
    retracted = new.kind == RETRACT_ROW
    stays = np.ones(len(known), dtype=np.bool_)
    stays[before[matched]] = False
    present = np.flatnonzero(~retracted)
    current = known.take(stays).join(replace(new, shown=was_shown).take(present))
    origin = np.concatenate([np.full(int(stays.sum()), -1), present])
    come_out = ~current.shown & _differs_from_previous(plan, current)
    comes = np.where(retracted, was_shown, was_shown & changed)
    comes[origin[come_out & (origin >= 0)]] = True
    late = np.flatnonzero(come_out & (origin < 0))
    state.compared = state.compared | {served.name: replace(current, shown=current.shown | come_out)}
    return comes, [_again(plan, served, current.take(late))] if len(late) else []


def _differs_from_previous(plan: BoundPlan, windows: ComparedWindows) -> Mask:
    """Whether the values of each window differ from those of the one before it, or there is none."""
    if not len(windows):
        return np.zeros(0, dtype=np.bool_)
    order = windows.order()
    key, end = windows.key[order], windows.end[order]
    differ = np.ones(len(order), dtype=np.bool_)
    follows = np.flatnonzero(key[1:] == key[:-1]) + 1
    if plan.forget is not None:  # then its values have been forgotten
        follows = follows[end[follows] - end[follows - 1] < plan.forget]
    if len(follows):
        assert windows.values is not None
        differ[follows] = _differ(windows.values, order[follows], windows.values, order[follows - 1])
    result = np.empty(len(order), dtype=np.bool_)
    result[order] = differ
    return result


def _differ(left: pa.Table, rows: Column, right: pa.Table, others: Column) -> Mask:
    """Whether some value differs between rows of one table and rows of another."""
    differ = np.zeros(len(rows), dtype=np.bool_)
    for name in left.column_names:
        one, other = left.column(name).combine_chunks(), right.column(name).combine_chunks()
        differ |= differences(joining.taken(one, rows), joining.taken(other, others))
    return differ


def _places(known: ComparedWindows, new: ComparedWindows) -> Column:
    """The row of `known` with the identity of each new row, -1 where there is none."""
    places = np.full(len(new), -1, dtype=np.int64)
    if len(known) and len(new):
        columns = [np.concatenate([getattr(known, c), getattr(new, c)]) for c in IDENTITY]
        order, hits = repeated_rows(columns)
        places[order[hits + 1] - len(known)] = order[hits]
    return places


def _again(plan: BoundPlan, served: ServedWindow, windows: ComparedWindows) -> Emission:
    """Windows that come out later than they completed, as the row that they would have had."""
    assert windows.values is not None
    none = np.zeros(len(windows), dtype=np.int64)
    low, high = (windows.a, windows.b) if served.window.on_measure else (None, None)
    listing = Listing(
        none + plan.served.number(served), windows.key, windows.start, windows.end, windows.due, none, none,
        ALL_ROWS, low, high, windows.ordinal,
    )  # fmt: skip
    columns = [column.combine_chunks() for column in windows.values.columns]
    return Emission(listing, windows.kind, windows.revision, columns)


def _taken(emission: Emission, rows: Column) -> Emission:
    """These rows of an emission."""
    if len(rows) == len(emission.windows):
        return emission
    kind = None if emission.kind is None else emission.kind[rows]
    revision = None if emission.revision is None else emission.revision[rows]
    values = [joining.taken(column, rows) for column in emission.values]
    return Emission(emission.windows.take(rows), kind, revision, values)


def _count(state: State, emissions: list[Emission], shown: list[Mask], more: list[Emission]) -> None:
    """The counters have all rows so far: only those that come out count."""
    silent = [e.kinds[~mask] for e, mask in zip(emissions, shown, strict=True)]
    for sign, several in ((-1, silent), (1, [e.kinds for e in more])):
        for kinds in several:
            metrics = state.metrics
            metrics.windows += sign * int(((kinds != EARLY_ROW) & (kinds != RETRACT_ROW)).sum())
            metrics.updates += sign * int((kinds == UPDATE_ROW).sum())
            metrics.retractions += sign * int((kinds == RETRACT_ROW).sum())


def _table(columns: list[pa.Array]) -> pa.Table:
    return pa.table({str(i): column for i, column in enumerate(columns)})


def forget_compared(plan: BoundPlan, state: State) -> None:
    """Drop the windows that no later one is compared with."""
    if state.compared:
        final = plan.final(state.watermark)
        state.compared = {n: table.without_expired(final, plan.forget) for n, table in state.compared.items()}
