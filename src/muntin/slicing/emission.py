"""The Window Manager: decides at each watermark which windows are emitted, again or for the first time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.closed import Closed, Past
from muntin.slicing.combining.base import Combiner
from muntin.slicing.extents import Extent
from muntin.slicing.filling import Emission, fill
from muntin.slicing.flood import check_overlapping
from muntin.slicing.listing import (
    ALL_ROWS,
    Listing,
    list_driven,
    list_free,
    list_sessions,
    list_spanned,
)
from muntin.slicing.listing_kernels import sum_ranges
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.manager import SliceManager
from muntin.slicing.registry import (
    FINAL_ROW,
    RETRACT_ROW,
    UPDATE_ROW,
    Candidates,
    Registry,
)
from muntin.slicing.sorting_kernels import sort_windows
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import ContextFreeWindow

Column = npt.NDArray[np.int64]


class WindowManager:
    """Lists due windows, compares them with what was emitted, and combines slices into results.

    `early` tells whether windows are also emitted before they are complete; then, and wherever
    windows may be retracted, everything emitted is remembered until it expires. Otherwise
    context-free windows are remembered only once they were revised.
    """

    IN_PLACE = ("registries", "extents")

    def __init__(self, slices: SliceManager, early: bool, store: Combiner) -> None:
        self.slices = slices
        self.early = early
        self.store = store
        self.registries: dict[str, Registry] = {}
        self.extents: dict[str, Extent] = {}
        self._plain: tuple[LiveSet | None, npt.NDArray[np.bool_], bool]
        self._plain = (None, np.zeros(0, dtype=np.bool_), True)

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        registries = sum(registry.nbytes for registry in self.registries.values())
        return registries + sum(extent.nbytes for extent in self.extents.values()) + self.store.nbytes

    def observe(self, key: Column, first: Column, last: Column) -> None:
        """Note the extent of tuples or slices of these keys, where a query emits empty windows."""
        for query in self.slices.live.spanned:
            self._extent(query).note(query, key, first, last, self.slices.final, self.slices.forget)

    def spanned(self, query: LiveQuery, before: int, upto: int) -> int:
        """An upper bound of the windows, empty or not, that are emitted when the watermark reaches `upto`."""
        return self._extent(query).number(query, max(before - self.slices.lateness, NEG_INF), upto)

    def forget(self) -> None:
        """Drop what has expired."""
        slices = self.slices
        for registry in self.registries.values():
            registry.forget(slices.final)
        if slices.forget is not None:
            for query in slices.live.spanned:
                if query.ends_with_key:
                    self._extent(query).forget(query, slices.final, slices.forget)

    # What is emitted when. ---------------------------------------------------------------------------

    def emit(self, before: int, closing: bool = False) -> list[Emission]:
        """Results due at the watermark that the slices have reached; `before` is the one it replaces."""
        result = self._emit_free(before)
        for query in self.slices.live.sessions:
            result += self._emit_aware(query, self._sessions(query), before)
        for query in self.slices.live.driven:
            listing = self._driven(query, look=closing or self.early)
            result += self._emit_aware(query, listing, before)
        self._expire_sessions()
        return fill(result, self.slices, self.store)

    def emit_early(self) -> list[Emission]:
        """Results of windows that have changed since they were last emitted, complete or not."""
        slices = self.slices
        result: list[Emission] = []
        changed = slices.table.fresh > 0
        now = slices.watermark
        for after, upto in ((slices.final, now), (now, INF)):
            for listing in self._free(after, upto, changed):
                for number, mine in listing.by_query():
                    query = slices.live.queries[number]
                    # Of a query that emits empty windows the complete ones come below, with those.
                    if upto == INF or not query.emits_empty:
                        result += self._reconcile(query, mine, None, early=True)
        for query in slices.live.spanned:
            result += self._emit_spanned(query, slices.watermark)
        for query in slices.live.sessions:
            result += self._reconcile(query, self._sessions(query), slices.final, early=True)
        for query in slices.live.driven:
            listing = self._driven(query, look=True)
            result += self._reconcile(query, listing, slices.final, early=True)
        return fill(result, self.slices, self.store)

    def _emit_free(self, before: int) -> list[Emission]:
        slices = self.slices
        result: list[Emission] = []
        plain, all_plain = self._plain_queries()
        for listing in self._free(before, slices.watermark):
            if all_plain:
                result += _first_time(listing)
                continue
            is_plain = plain[listing.query]
            result += _first_time(listing.take(is_plain))
            for number, mine in listing.take(~is_plain).by_query():
                query = slices.live.queries[number]
                if not query.emits_empty:
                    result += self._reconcile(query, mine, None)
        for query in slices.live.spanned:
            result += self._emit_spanned(query, before)
        if slices.lateness and slices.touched and before > NEG_INF:
            result += self._revise_free(before)
        return result

    def _revise_free(self, before: int) -> list[Emission]:
        """Windows emitted earlier that hold tuples which came since."""
        slices = self.slices
        changed = (slices.table.fresh > 0) & (slices.table.first < before)
        result: list[Emission] = []
        if not changed.any():
            return result
        final = before - slices.lateness
        for listing in self._free(final, before, changed):
            for number, mine in listing.by_query():
                query = slices.live.queries[number]
                if self._is_plain(query):
                    result.append(self._revise(query, mine))
                elif not query.emits_empty:
                    result += self._reconcile(query, mine, None)
        return result

    def _revise(self, query: LiveQuery, listing: Listing) -> Emission:
        """Changed windows of a query that remembers only revisions: others were emitted if not empty."""
        new, fresh = self._contents(listing)
        registry = self._registry(query)
        found = registry.find(new)
        was_emitted = new.n > fresh
        known = np.where(found >= 0, registry.revision[found], 0) if len(registry) else 0
        revision = np.where(was_emitted, known + 1, 0)
        kind = np.where(was_emitted, UPDATE_ROW, FINAL_ROW)
        return Emission(listing, kind, revision, entry=(registry, new))

    def _emit_spanned(self, query: LiveQuery, before: int) -> list[Emission]:
        """All windows between the first and the last tuple of each key, empty ones too."""
        slices = self.slices
        expired = max(before - slices.lateness, NEG_INF)
        upto = slices.watermark
        if query.window.endless and upto == INF:
            upto = max(before, query.window.complete_at(slices.newest))
        windows = self._extent(query).windows(query, expired, upto)
        listing = list_spanned(slices.live.number(query), *windows, slices.table, slices.keys)
        # A window that expired while it was empty stays so: what lies in it came too late for it.
        listing.hi = np.where(listing.end <= expired, listing.lo, listing.hi)
        return self._reconcile(query, listing, None) if self._remembers(query) else _first_time(listing)

    def _emit_aware(self, query: LiveQuery, listing: Listing, before: int) -> list[Emission]:
        """Windows that depend on tuples: they may have moved since they were emitted."""
        slices = self.slices
        complete = listing.due <= slices.watermark
        if not self._remembers(query):
            return _first_time(listing.take(complete))
        if slices.touched or self.early:
            return self._reconcile(query, listing, before - slices.lateness)
        return self._reconcile(query, listing.take(complete & (listing.due > before)), None)

    def _reconcile(
        self, query: LiveQuery, listing: Listing, scope_from: int | None, early: bool = False
    ) -> list[Emission]:
        """Emit what differs from what was emitted; open windows only when `early`.

        With `scope_from`, the listing is complete: emitted windows due later and not in it retract.
        """
        registry = self._registry(query)
        scope = None
        if scope_from is not None:
            scope = registry.due > scope_from
            # Cut again from kept tuples, windows show up that were emitted, expired and forgotten.
            listing = listing.take(listing.due >= scope_from)
        new, _ = self._contents(listing)
        decision = registry.decide(new, self.slices.watermark, scope, early, scope_from)
        result = []
        if len(decision.gone):
            result.append(self._retract(query, registry, decision.gone))
        if len(decision.emit):
            entry = (registry, new.take(decision.emit))
            chosen = listing.take(decision.emit)
            result.append(Emission(chosen, decision.kind, decision.revision, entry=entry))
        return result

    def _retract(self, query: LiveQuery, registry: Registry, gone: Column) -> Emission:
        assert registry.values is not None
        # Windows with the same edges in the order of their tuples, as they were emitted.
        gone = gone[np.lexsort([getattr(registry, c)[gone] for c in ("ordinal", "b", "a", "life", "key")])]
        values = registry.values.take(pa.array(gone))
        # Copied: Arrow's memory is read-only, and kernels are compiled for writable arrays.
        start, end = (values.column(c).to_numpy().copy() for c in ("start", "end"))
        on_measure = query.window.on_measure
        low, high = (registry.a[gone], registry.b[gone]) if on_measure else (None, None)
        none = np.zeros(len(gone), dtype=np.int64)
        numbers = none + self.slices.live.number(query)
        due = registry.due[gone]
        windows = Listing(
            numbers, registry.key[gone], start, end, due, none, none, ALL_ROWS,
            low, high, registry.ordinal[gone],
        )  # fmt: skip
        columns = [c.combine_chunks() for c in values.drop_columns(["start", "end"]).columns]
        registry.retract(gone)
        self.slices.metrics.retractions += len(gone)
        return Emission(windows, none + RETRACT_ROW, registry.revision[gone], columns)

    def _expire_sessions(self) -> None:
        """Slices of expired sessions take no part in sessions of that gap any more."""
        for level, gap in enumerate(self.slices.live.gaps):
            listing = list_sessions(0, NEG_INF, int(gap), level, self.slices.table)
            over = listing.due <= self.slices.final
            if over.any():
                members = np.repeat(over, listing.hi - listing.lo)
                self.slices.expire_sessions(level, listing.rows[members])

    def _free(self, after: int, upto: int, driver: npt.NDArray[np.bool_] | None = None) -> list[Listing]:
        slices = self.slices
        table, limit = slices.table, slices.limit
        check_overlapping(slices, after, upto, driver)
        return list_free(slices.live, table, slices.keys, slices.newest, after, upto, limit, driver)

    # Parts. ------------------------------------------------------------------------------------------

    def _registry(self, query: LiveQuery) -> Registry:
        return self.registries.setdefault(query.name, Registry())

    def _extent(self, query: LiveQuery) -> Extent:
        lives = self.slices.forget is not None and query.ends_with_key
        extent = self.extents.get(query.name)
        if extent is None:
            self.extents[query.name] = extent = Extent.of_lives() if lives else Extent()
        extent.grow(self.slices.keys)
        return extent

    def _remembers(self, query: LiveQuery) -> bool:
        """Whether every emitted window of the query is registered."""
        if self.early:
            return True
        return self.slices.lateness > 0 and (
            not isinstance(query.window, ContextFreeWindow) or query.emits_empty
        )

    def _is_plain(self, query: LiveQuery) -> bool:
        return not self._remembers(query) and not query.emits_empty

    def _plain_queries(self) -> tuple[npt.NDArray[np.bool_], bool]:
        """Which queries, by number, are plain, and whether all are; looked up once for a set of queries."""
        live = self.slices.live
        if self._plain[0] is not live:
            plain = np.array([self._is_plain(q) for q in live.queries], dtype=np.bool_)
            self._plain = (live, plain, bool(plain.all()))
        return self._plain[1:]

    def _sessions(self, query: LiveQuery) -> Listing:
        live = self.slices.live
        level = live.session_class(query)
        return list_sessions(live.number(query), query.since, int(live.gaps[level]), level, self.slices.table)

    def _driven(self, query: LiveQuery, look: bool) -> Listing:
        kept = self.slices.kept
        assert kept is not None
        closed = kept.closed.get(query.name)
        if look:
            partial = query.window.emit_partial
            opened = kept.open_windows(query, partial)
            closed = opened if closed is None else closed.join(opened)
        if closed is None:
            closed = Closed()
        number, past = self.slices.live.number(query), kept.past.get(query.name, Past())
        return list_driven(number, closed, past, self.slices.table, self.slices.keys)

    def _contents(self, listing: Listing) -> tuple[Candidates, Column]:
        """Identity and content of each window, and how many of its tuples are fresh."""
        table = self.slices.table
        n, fresh, mark = (np.empty(len(listing), dtype=np.int64) for _ in range(3))
        sum_ranges(listing.rows, listing.lo, listing.hi, table.n, table.fresh, table.mark, n, fresh, mark)
        on_time = listing.low is None
        a, b = (listing.start, listing.end) if on_time else (listing.low, listing.high)
        if not on_time:
            # Known by its edges on the measure, a window also changes when it moves in time.
            mark = mark + listing.start * 0x51_7C_C1 + listing.end * 0x27_22_0A_95
        none = np.zeros(len(listing), dtype=np.int64)
        life = none if listing.life is None else listing.life
        ordinal = none if listing.ordinal is None else listing.ordinal
        return Candidates(listing.key, life, a, b, ordinal, n, mark, listing.due), fresh


def _first_time(listing: Listing) -> list[Emission]:
    rows = len(listing.key)
    if not rows:
        return []
    if not listing.ordered:  # so that no column has to be sorted again
        listing = listing.take(sort_windows(listing.end, listing.start, listing.query, listing.key))
    none = np.zeros(rows, dtype=np.int64)
    return [Emission(listing, none, none, ordered=True)]
