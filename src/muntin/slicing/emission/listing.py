"""Which windows lie over which slices: pure look-ups in the slice table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.memory import fresh
from muntin.slicing.batch import distinct
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.listing_kernels import WIDTH, explicit_windows, list_periodic, rank_ranges, sessions
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.slice_table_kernels import key_offsets
from muntin.slicing.window_limit import WindowLimit
from muntin.timeline import INF, LIMIT
from muntin.windows.tuple_driven import EARLIER

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ALL_ROWS: Column = np.zeros(0, dtype=np.int64)
ALL_DRIVE: Mask = np.zeros(1, dtype=np.bool_)
ROOM = 64
"""Windows that the first attempt to list them has room for; a second one has the exact number."""
FAR = LIMIT + LIMIT // 2
"""Beyond every edge that a window over a tuple can have, with room to add lengths."""


@dataclass(slots=True)
class Listing:
    """Instances of windows over slices.

    Each has the number of its window, its key, its edges, the watermark that completes it (`complete_at`),
    and the slices `rows[lo:hi]` that it combines. Empty `rows` mean the table's own order. low, high: edges
    as ranks or on another measure. ordinal: distinguishes instances with the same edges; None where there
    are none. ordered: sorted as results are. life: as in `ClosedWindows`; None where all are 0.
    """

    number: Column
    key: Column
    start: Column
    end: Column
    complete_at: Column
    lo: Column
    hi: Column
    rows: Column
    low: Any = None
    high: Any = None
    ordinal: Column | None = None
    ordered: bool = False
    life: Column | None = None

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: Any) -> Listing:
        """The windows at these positions."""
        cut = {c: getattr(self, c)[index] for c in ("number", "key", "start", "end", "lo", "hi")}
        cut["complete_at"] = cut["end"] if self.complete_at is self.end else self.complete_at[index]
        for name in ("low", "high", "ordinal", "life"):
            column = getattr(self, name)
            cut[name] = None if column is None else column[index]
        return Listing(rows=self.rows, **cut)

    def behind(self, keys: int) -> Listing:
        """The same windows, with this number added to their keys."""
        key = fresh(len(self.key))
        return replace(self, key=np.add(self.key, keys, out=key))

    def by_window(self) -> list[tuple[int, Listing]]:
        """The instances of each window apart from the others."""
        ordered = self.take(np.argsort(self.number, kind="stable"))
        numbers = distinct(ordered.number)
        bounds = np.searchsorted(ordered.number, [*numbers, INF])
        return [
            (int(number), ordered.take(slice(low, high)))
            for number, low, high in zip(numbers, bounds[:-1], bounds[1:], strict=True)
        ]


def list_context_free(
    served: ServedWindows,
    table: SliceTable,
    keys: int,
    newest: int,
    after: int,
    upto: int,
    limit: WindowLimit,
    driver: Mask | None = None,
) -> list[Listing]:
    """Context-free windows that contain a (driving) slice and end in (after, upto].

    Endless ones stop after `newest`, the newest tuple of the stream. A DataError if there would be
    more instances of a window than `limit` allows.
    """
    if not len(table.key) or upto <= after:
        return []
    listings = [_periodic(served, table, keys, after, upto, driver)] if served.periodic else []
    times_of: dict[bool, Column] = {}
    for each, window in served.irregular:
        # Of endless windows those up to the newest tuple count, whatever slice changed.
        drives = None if window.endless and upto == INF else driver
        times = times_of.get(drives is None)
        if times is None:
            # The newest tuple may lie at the end of a folded slice, or belong to no key of this operator.
            times = distinct(np.append(table.first, newest) if drives is None else table.first[drives])
            times_of[drives is None] = times
        start, end = window.windows(times, max(after, each.after), upto)
        known = start >= each.since
        over = _over_slices(each, start[known], end[known], table, keys, newest, limit, drives)
        listings.append(replace(over, number=np.full(len(over), served.number(each), dtype=np.int64)))
    return [listing for listing in listings if len(listing.key)]


def _periodic(
    served: ServedWindows, table: SliceTable, keys: int, after: int, upto: int, driver: Mask | None
) -> Listing:
    offsets, columns = table.offsets(keys), served.series.columns
    count, room = -1, ROOM
    while count < 0:
        rows, edges, others = fresh((room, WIDTH)), fresh(2 * room), fresh(4 * room)
        count = list_periodic(
            offsets, table.first, ALL_DRIVE if driver is None else driver, driver is not None,
            columns, max(after, -LIMIT), min(upto, FAR), rows, edges, others,
        )  # fmt: skip
        room = -count
    start, end = edges[: 2 * count].reshape(2, count)
    number, key, lo, hi = others[: 4 * count].reshape(4, count)
    return Listing(number, key, start, end, end, lo, hi, ALL_ROWS, ordered=True)


def _over_slices(
    each: ServedWindow,
    start: Column,
    end: Column,
    table: SliceTable,
    keys: int,
    newest: int,
    limit: WindowLimit,
    driver: Mask | None,
) -> Listing:
    """Those of these windows that contain a (driving) slice, for each key."""
    arguments = (
        table.offsets(keys),
        table.first,
        ALL_DRIVE if driver is None else driver,
        driver is not None,
    )
    out = np.empty((4, 1024), dtype=np.int64)
    count = explicit_windows(*arguments, start, end, out)
    if count > out.shape[1]:
        limit.check(each, count, len(table.key), newest)
        out = np.empty((4, count), dtype=np.int64)
        explicit_windows(*arguments, start, end, out)
    key, which, lo, hi = out[:, :count]
    return Listing(which, key, start[which], end[which], end[which], lo, hi, ALL_ROWS)


def list_sessions(number: int, since: int, gap: int, level: int, table: SliceTable) -> Listing:
    """All sessions of a class over the rows that take part in it."""
    rows = np.flatnonzero(table.level <= level)
    out = np.empty((5, len(rows)), dtype=np.int64)
    count = sessions(rows, table.key, table.first, table.last, gap, since, out)
    key, first, last, lo, hi = out[:, :count]
    numbers = np.full(count, number, dtype=np.int64)
    return Listing(numbers, key, first, last + gap, last + gap + 1, lo, hi, rows)


def list_tuple_driven(
    number: int, windows: ClosedWindows, expired: ExpiredWindows, table: SliceTable, keys: int
) -> Listing:
    """The slices of windows that are known by ranks; `expired` ones count among those with the same edges."""
    rows = np.flatnonzero(table.rank >= 0)
    lo = np.empty(len(windows), dtype=np.int64)
    hi = np.empty(len(windows), dtype=np.int64)
    offsets = key_offsets(table.key[rows], keys)
    rank_ranges(offsets, table.rank[rows], windows.key, windows.begin, windows.end, lo, hi)
    numbers = np.full(len(windows), number, dtype=np.int64)
    start = windows.start
    if (start == EARLIER).any():
        start = np.where(start == EARLIER, table.first[rows[lo]], start)
    a, b = (start, windows.stop) if windows.low is None else (windows.low, windows.high)
    return Listing(
        numbers, windows.key, start, windows.stop, windows.complete_at, lo, hi, rows,
        windows.low, windows.high, _ordinals(expired, windows.key, windows.life, a, b, lo, hi),
        life=windows.life,
    )  # fmt: skip


def _ordinals(
    expired: ExpiredWindows, key: Column, life: Column, a: Column, b: Column, lo: Column, hi: Column
) -> Column:
    """Tell windows with the same edges apart (tuples at one time may make several), in their order."""
    count = np.concatenate([expired.count, np.ones(len(key), dtype=np.int64)])
    if len(expired):
        before = np.full(len(expired), -1, dtype=np.int64)
        lo, hi = np.concatenate([before, lo]), np.concatenate([before, hi])
        pairs = ((expired.key, key), (expired.life, life), (expired.a, a), (expired.b, b))
        key, life, a, b = (np.concatenate(pair) for pair in pairs)
    order = np.lexsort((hi, lo, b, a, life, key))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = True
    for column in (key, life, a, b):
        same[1:] &= column[order[1:]] == column[order[:-1]]
    place = np.cumsum(count[order]) - count[order]  # how many windows come before
    begins = np.maximum.accumulate(np.where(same, 0, place)) if len(order) else place
    ordinal = np.empty(len(order), dtype=np.int64)
    ordinal[order] = place - begins
    return ordinal[len(expired) :]


def list_given(number: int, key: Column, start: Column, end: Column, table: SliceTable, keys: int) -> Listing:
    """These windows of these keys with their rows, if there are any."""
    lo = np.empty(len(key), dtype=np.int64)
    hi = np.empty(len(key), dtype=np.int64)
    rank_ranges(table.offsets(keys), table.first, key, start, end, lo, hi)
    numbers = np.full(len(key), number, dtype=np.int64)
    return Listing(numbers, key, start, end, end, lo, hi, ALL_ROWS)
