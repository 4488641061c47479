"""Emission of changes: a window is emitted only if its values differ from those of the window before it.

The IStream of [reactive §2]. The windows of one name and key follow each other in the order of their ends.
A window without a row has the values of the last row before it. So a window that was not emitted is emitted
later if the window before it changes or is retracted and the values differ now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
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
from muntin.timeline import NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["ComparedWindows", "changes_only", "forget_compared"]

Column = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

IDENTITY = ("ordinal", "b", "a", "life", "key", "number")
"""The columns that identify a window."""
ORDER = ("ordinal", "b", "a", "start", "end", "key", "number")
"""The columns that order windows, least significant first: those of a name and key follow each other."""


@dataclass(frozen=True, slots=True)
class ComparedWindows(ValuedTable):
    """Windows with their values: all that may change, and of each name and key the last one before.

    `number` is the position among the served windows. a, b: the edges that identify the window, those on a
    measure of floats as integers in the same order. `complete_at` is NEG_INF where it is over.
    `shown`: whether the window was emitted. `kind` and `revision` are those of its last row, emitted or not.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "number": Role.COUNT, "key": Role.KEY, "complete_at": Role.EDGE, "start": Role.EDGE,
            "end": Role.EDGE, "a": Role.ANY, "b": Role.ANY, "life": Role.MOMENT, "ordinal": Role.COUNT,
            "kind": Role.STAGE, "revision": Role.COUNT, "shown": Role.FLAG,
        },
        time="end",
    )  # fmt: skip

    number: Column = field(default_factory=no_rows)
    key: Column = field(default_factory=no_rows)
    complete_at: Column = field(default_factory=no_rows)
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
    def of(cls, emission: Emission) -> ComparedWindows:
        """The windows of an emission; none is `shown` yet."""
        windows = emission.windows
        none = np.zeros(len(windows), dtype=np.int64)
        a, b = (windows.start, windows.end) if windows.low is None else (windows.low, windows.high)
        life = none if windows.life is None else windows.life
        ordinal = none if windows.ordinal is None else windows.ordinal
        values = pa.table({str(i): column for i, column in enumerate(emission.values)})
        return cls(
            windows.number, windows.key, windows.complete_at, windows.start, windows.end, _as_integers(a),
            _as_integers(b), life, ordinal, emission.kinds, emission.revisions, none.astype(np.bool_), values,
        )  # fmt: skip

    def order(self) -> Column:
        """The rows in the order of windows; those that are over come first, as late as they may end.

        User code may complete a window after others that end later.
        """
        ends, (key, number) = ORDER[:-2], ORDER[-2:]
        columns = [*(getattr(self, name) for name in ends), self.complete_at > NEG_INF]
        return np.lexsort([*columns, getattr(self, key), getattr(self, number)])

    def follows(self, order: Column) -> Mask:
        """Whether the window before each one, in this order, has its name and key."""
        number, key = self.number[order], self.key[order]
        same = np.zeros(len(order), dtype=np.bool_)
        same[1:] = (number[1:] == number[:-1]) & (key[1:] == key[:-1])
        return same

    def of_windows_now(self, numbers: Mapping[int, int]) -> ComparedWindows:
        """With the numbers that windows have now; those without one are dropped."""
        new = np.array([numbers.get(old, -1) for old in range(int(self.number.max(initial=-1)) + 1)])
        left = self.take(new[self.number] >= 0) if len(self) else self
        return replace(left, number=new[left.number].astype(np.int64)) if len(left) else ComparedWindows()

    def is_distinct(self) -> bool:
        """Whether each identity has one row."""
        return not len(self) or not len(repeated_rows([getattr(self, name) for name in IDENTITY])[1])

    def without_expired(self, final: int, forget: int | None) -> ComparedWindows:
        """The windows that may change, and of each key the last one before them, until it is forgotten."""
        order = self.order()
        over, group = self.complete_at[order] < final, np.cumsum(~self.follows(order))
        places = np.flatnonzero(over)
        last = places[np.append(group[places][1:] != group[places][:-1], True)[: len(places)]]
        if forget is not None:
            recent = self.end[order[last]] > final - forget
            last = last[recent | np.isin(group[last], group[~over])]
        stays, shown = self.complete_at >= final, self.shown.copy()
        shown[~stays] = True  # it is never emitted any more
        stays[order[last]] = True
        complete_at = np.where(self.complete_at < final, NEG_INF, self.complete_at)
        return replace(self, shown=shown, complete_at=complete_at).take(stays)


def changes_only(
    plan: BoundPlan, state: State, emissions: list[Emission], look_follows: bool = False
) -> list[Emission]:
    """The rows with values that differ from the window before, and windows after one that has changed.

    `look_follows`: early results follow in the same step. They have the values that open windows have now,
    so no open window is emitted before them.
    """
    if not plan.shows_changes:
        return emissions
    known = state.compared
    if not emissions and (look_follows or not plan.shows_early or known.shown.all()):
        return emissions
    new = reduce(ComparedWindows.join, map(ComparedWindows.of, emissions), ComparedWindows())
    before = _places(known, new)
    was_shown = np.zeros(len(new), dtype=np.bool_)
    changed = np.ones(len(new), dtype=np.bool_)
    matched = np.flatnonzero(before >= 0)
    if len(matched):
        was_shown[matched] = known.shown[before[matched]]
        changed[matched] = _differ(new, matched, known, before[matched])
    retracted = new.kind == RETRACT_ROW
    stays = np.ones(len(known), dtype=np.bool_)
    stays[before[matched]] = False
    present = np.flatnonzero(~retracted)
    current = known.take(stays).join(replace(new, shown=was_shown).take(present))
    origin = np.concatenate([np.full(int(stays.sum()), -1), present])
    come_out = ~current.shown & _differs_from_previous(plan, current)
    if look_follows:
        come_out &= current.kind != EARLY_ROW
    shown = np.where(retracted, was_shown, was_shown & changed)
    shown[origin[come_out & (origin >= 0)]] = True
    late = np.flatnonzero(come_out & (origin < 0))
    state.compared = replace(current, shown=current.shown | come_out)
    ends = np.cumsum([0, *(len(e.windows) for e in emissions)])
    masks = [shown[begin:end] for begin, end in pairwise(ends)]
    again = _again(plan, current.take(late)) if len(late) else []
    _count(state, emissions, masks, again)
    filtered = [_taken(e, np.flatnonzero(mask)) for e, mask in zip(emissions, masks, strict=True)]
    return [e for e in (*filtered, *again) if len(e.windows)]


def _differs_from_previous(plan: BoundPlan, windows: ComparedWindows) -> Mask:
    """Whether the values of each window differ from those of the one before it, or there is none."""
    order = windows.order()
    end, differ = windows.end[order], np.ones(len(order), dtype=np.bool_)
    at = np.flatnonzero(windows.follows(order))
    if plan.forget is not None:  # then its values have been forgotten
        at = at[end[at] - end[at - 1] < plan.forget]
    if len(at):
        differ[at] = _differ(windows, order[at], windows, order[at - 1])
    result = np.empty(len(order), dtype=np.bool_)
    result[order] = differ
    return result


def _differ(left: ComparedWindows, rows: Column, right: ComparedWindows, others: Column) -> Mask:
    """Whether some value differs between rows of one table and rows of another."""
    assert left.values is not None
    assert right.values is not None
    differ = np.zeros(len(rows), dtype=np.bool_)
    for one, other in zip(left.values.columns, right.values.columns, strict=True):
        one, other = one.combine_chunks(), other.combine_chunks()
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


def _again(plan: BoundPlan, windows: ComparedWindows) -> list[Emission]:
    """Rows of windows that are emitted later than they were complete, with kind and revision from then."""
    emissions = []
    for number in np.unique(windows.number).tolist():
        served, some = plan.served.all[number], windows.take(windows.number == number)
        assert some.values is not None
        none = np.zeros(len(some), dtype=np.int64)
        low, high = None, None
        if served.window.on_measure:
            kind = plan.binding.edge_dtype(served.window)
            low, high = _as_edges(some.a, kind), _as_edges(some.b, kind)
        listing = Listing(
            some.number, some.key, some.start, some.end, some.complete_at, none, none, ALL_ROWS, low, high,
            some.ordinal,
        )  # fmt: skip
        columns = [column.combine_chunks() for column in some.values.columns]
        emissions.append(Emission(listing, some.kind, some.revision, columns))
    return emissions


def _as_integers(edges: Column) -> Column:
    """Edges as integers in the same order: of negative floats all bits but the sign turn around."""
    if edges.dtype != np.float64:
        return edges
    bits = (edges + 0.0).view(np.int64)  # -0.0 as 0.0
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _as_edges(integers: Column, kind: type[np.generic]) -> Column:
    """The edges that `_as_integers` was given."""
    if kind is not np.float64:
        return integers
    return np.where(integers < 0, integers ^ np.iinfo(np.int64).max, integers).view(np.float64)


def _taken(emission: Emission, rows: Column) -> Emission:
    """These rows of an emission."""
    if len(rows) == len(emission.windows):
        return emission
    kind = None if emission.kind is None else emission.kind[rows]
    revision = None if emission.revision is None else emission.revision[rows]
    values = [joining.taken(column, rows) for column in emission.values]
    return Emission(emission.windows.take(rows), kind, revision, values)


def _count(state: State, emissions: list[Emission], shown: list[Mask], more: list[Emission]) -> None:
    """Correct the counters, which have counted all rows: only emitted ones count."""
    silent = [e.kinds[~mask] for e, mask in zip(emissions, shown, strict=True)]
    for sign, several in ((-1, silent), (1, [e.kinds for e in more])):
        for kinds in several:
            metrics = state.metrics
            metrics.windows += sign * int(((kinds != EARLY_ROW) & (kinds != RETRACT_ROW)).sum())
            metrics.updates += sign * int((kinds == UPDATE_ROW).sum())
            metrics.retractions += sign * int((kinds == RETRACT_ROW).sum())


def forget_compared(plan: BoundPlan, state: State, watermark: int) -> None:
    """Drop the windows that no later one is compared with after this watermark."""
    if len(state.compared):
        state.compared = state.compared.without_expired(plan.final(watermark), plan.forget)
