"""Slicing of kept tuples: tuple-driven windows decide where slices begin, once the order is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import UserCodeError
from muntin.expressions import Expr
from muntin.slicing.batch import Batch, numbers, ranges
from muntin.slicing.closed import Closed, Past
from muntin.slicing.listing_kernels import mark_pairs, rows_holding
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.lives import Edges, Lives
from muntin.slicing.slicer import slice_sorted
from muntin.slicing.table import SliceTable
from muntin.slicing.table_kernels import align_ranks
from muntin.slicing.tuples import NO_LIFE, KeptTuples, Look, Progress, driven_window
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context

if TYPE_CHECKING:
    from muntin.slicing.manager import SliceManager

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class KeptSlicer:
    """Keeps tuples while their order may change, and slices them up to the watermark."""

    IN_PLACE = ("closed", "past")

    def __init__(self, manager: SliceManager) -> None:
        self.manager = manager
        self.tuples = KeptTuples()
        self.closed: dict[str, Closed] = {}
        self.past: dict[str, Past] = {}
        self._ahead = False
        self._upto = NEG_INF
        self._unseen = True

    @property
    def nbytes(self) -> int:
        """Bytes of kept tuples, contexts and closed windows."""
        closed = sum(closed.nbytes for closed in self.closed.values())
        return self.tuples.nbytes + closed + sum(past.nbytes for past in self.past.values())

    def add(self, batch: Batch) -> None:
        """Keep these tuples."""
        self.tuples.arrive(batch)

    def emitted(self) -> None:
        """All windows that are closed and due came out: what is final may be forgotten."""
        self._unseen = False

    def mark(self, fresh: bool) -> None:
        """All tuples are fresh from now on, or none is."""
        self.tuples.fresh[:] = fresh

    def slice(self, upto: int) -> None:
        """Bring the slice table up to the tuples at `upto`.

        Beyond the watermark tuples may still be overtaken: what is sliced there, for early results,
        is taken back by the next call.
        """
        self._unseen = True
        kept, manager = self.tuples, self.manager
        keys = manager.keys
        self.tuples.grow(self.manager)
        timed = manager.forget is not None or any(driven_window(q).timed for q in manager.live.driven)
        dirty = kept.settle(keys, self._upto if timed else NEG_INF)
        self._upto = upto
        if self._ahead:
            dirty = np.arange(keys, dtype=np.int64)
        self._ahead = upto > manager.watermark
        self._take_back(dirty)
        if kept.batch is None:
            return
        end = kept.positions_until(upto)
        reached = kept.base + end - kept.offsets[:-1]
        new = np.flatnonzero(reached > kept.sliced.rank)
        edges: list[Edges] = []
        lives = Lives.under_way(manager, kept, kept.sliced, new, end, min(upto, manager.watermark))
        look = self._look(upto)
        for query in manager.live.driven:
            if lives is not None and query.ends_with_key:
                closed, found = lives.cut(kept, query, kept.sliced, look)
                self._remember(query, closed)
                edges += found
                continue
            over = np.arange(keys, dtype=np.int64) if driven_window(query).timed else new
            cuts = kept.cut(query, kept.sliced, over, end[over], look)
            self._remember(query, Closed.of(cuts))
            edges.append((cuts.edge_segment, cuts.edge_rank))
        if lives is not None:
            edges.append(lives.begins)
            lives.record(kept, kept.sliced)
        # A slice ends where the final part ends, so that this part can be committed.
        final = kept.base + kept.positions_until(self._final_until()) - kept.offsets[:-1]
        edges.append((new, final[new]))
        affected = np.unique(np.concatenate([new, *(k for k, _ in edges)])) if manager.live.aware else new
        if len(affected):
            self._build(affected, reached, edges)
        kept.sliced.rank[new] = reached[new]
        kept.reached[new] = kept.batch.time[end[new] - 1]

    def _look(self, upto: int, closing: bool = False, partial: bool = False) -> Look:
        manager = self.manager
        failed = manager.failed if manager.skips_errors else None
        return Look(upto, manager.newest, closing, partial, manager.limit, failed)

    def open_windows(self, query: LiveQuery, partial: bool) -> Closed:
        """The windows of a query that are open now, as if they ended with the last tuple."""
        kept = self.tuples
        if kept.batch is None:
            return Closed()
        keys = np.arange(len(kept.base), dtype=np.int64)
        end = kept.offsets[keys] + kept.sliced.rank[keys] - kept.base[keys]
        look = self._look(self.manager.watermark, closing=True, partial=partial)
        if self.manager.forget is not None and query.ends_with_key:
            self.tuples.grow(self.manager)
            keys = np.flatnonzero(kept.sliced.last > NO_LIFE)
            lives = Lives.of(kept, kept.sliced, keys, end[keys], NEG_INF, self.manager.forget)
            return lives.cut(kept, query, kept.sliced, look)[0]
        return Closed.of(kept.cut(query, kept.sliced, keys, end, look))

    def adapt(self, old: LiveSet, live: LiveSet, inputs: Mapping[Expr, pa.DataType]) -> None:
        """Forget all about queries that are gone; new ones, also of the same name, start afresh."""
        kept = self.tuples
        kept.arrived = [batch.with_columns(inputs) for batch in kept.arrived]
        if kept.batch is not None:
            kept.batch = kept.batch.with_columns(inputs)
        gone = [q.name for q in old.driven if q not in live.driven]
        contexts = (kept.sliced.contexts, kept.committed.contexts)
        lives = (kept.sliced.firsts, kept.committed.firsts)
        for known in (*contexts, *lives, kept.skipped, self.closed, self.past):
            for name in gone:
                known.pop(name, None)
        self.tuples.grow(self.manager)

    def dissolve(self) -> None:
        """Nothing needs the order of tuples any more: all of them become plain slices."""
        self.slice(INF)
        table = self.manager.table
        self.manager.table = table.changed(rank=np.full(len(table), -1, dtype=np.int64))

    def _remember(self, query: LiveQuery, new: Closed) -> None:
        old = self.closed.get(query.name)
        self.closed[query.name] = new if old is None else old.join(new)

    def _take_back(self, dirty: Column) -> None:
        """A tuple came before others that were sliced: their keys go back to what is final."""
        if not len(dirty):
            return
        kept = self.tuples
        kept.sliced.copy_from(kept.committed, dirty)
        kept.reached[dirty] = NEG_INF
        is_dirty = np.zeros(self.manager.keys, dtype=np.bool_)
        is_dirty[dirty] = True
        for name, closed in self.closed.items():
            self.closed[name] = closed.take(~is_dirty[closed.key])
        for query in self.manager.live.driven:
            past = self.past.get(query.name)
            if past is not None:
                self.past[query.name] = past.take(~(is_dirty[past.key] & self._cut_again(query, past)))
        table = self.manager.table
        gone = is_dirty[table.key] & (table.rank >= kept.committed.rank[table.key])
        if gone.any():
            self.manager.table = table.take(np.flatnonzero(~gone), self.manager.partials)

    def _cut_again(self, query: LiveQuery, past: Past) -> Mask:
        """Which of these windows come again, cut from what is final on: they have, or need, later tuples.

        Some end with their last tuple, some with the one behind it; the context knows which are open.
        """
        kept, certain = self.tuples, self.tuples.committed.rank[past.key]
        skip = kept.skip_of(query)
        seen = np.maximum(kept.committed.rank - skip, 0)
        key, begin = driven_window(query).open_begins(kept.committed.contexts[query.name], seen)
        span = 1 + max(int(past.begin.max(initial=0)), int((begin + skip[key]).max(initial=0)))
        is_open = np.isin(past.key * span + past.begin, key * span + begin + skip[key])
        again: Mask = (past.end > certain) | ((past.end == certain) & is_open)
        return again

    def _build(self, keys: Column, reached: Column, edges: list[tuple[Column, Column]]) -> None:
        """Aggregate tuples into slices: from the sliced rank on, or all kept ones if windows look back."""
        kept, manager = self.tuples, self.manager
        assert kept.batch is not None
        begin = kept.sliced.rank[keys].copy()
        levels: SliceTable | None = None
        if manager.live.aware:
            edges = [*edges, (keys, begin), self._look_back(keys, reached)]
            begin = kept.base[keys]
            levels = self._remove_from(keys, begin)
            edges.append((levels.key, levels.rank))
        size = reached[keys] - begin
        offsets = np.concatenate([[0], np.cumsum(size)])
        if not offsets[-1]:
            return
        index = ranges(kept.offsets[keys] + begin - kept.base[keys], size)
        part = kept.batch.take(index)
        rank = numbers(begin, size)
        forced = self._forced(keys, begin, reached, offsets, edges)
        fixed = manager.edges_around(*part.times[:2], part.time)
        rows = slice_sorted(part, fixed, manager.live.gap, manager.partials, forced, rank)
        begins = np.concatenate([[0], np.cumsum(rows.n)[:-1]])
        rows.fresh = np.add.reduceat(kept.fresh[index], begins, dtype=np.int64)
        if levels is not None:
            rows.level = _carry_levels(rows, levels, kept.sliced.rank, len(manager.live.gaps))
        manager.insert(rows, fixed)

    def _look_back(self, keys: Column, reached: Column) -> tuple[Column, Column]:
        """Cuts at the oldest tuples that windows may still look back to, so that older ones can go."""
        kept = self.tuples
        oldest = reached[keys].copy()
        for query in self.manager.live.driven:
            if query.window.context is Context.FORWARD_AWARE:
                oldest = np.minimum(oldest, self.keep_from(query, kept.sliced, reached)[keys])
        return keys, oldest

    def _remove_from(self, keys: Column, rank: Column) -> SliceTable:
        """Take the slices of these keys from these ranks on out of the table."""
        manager = self.manager
        bound = np.full(manager.keys, INF, dtype=np.int64)
        bound[keys] = rank
        gone = manager.table.rank >= bound[manager.table.key]
        removed = manager.table.take(np.flatnonzero(gone), manager.partials)
        manager.table = manager.table.take(np.flatnonzero(~gone), manager.partials)
        return removed

    def _forced(
        self,
        keys: Column,
        begin: Column,
        reached: Column,
        offsets: Column,
        edges: list[tuple[Column, Column]],
    ) -> Mask:
        forced = np.zeros(int(offsets[-1]), dtype=np.bool_)
        place = np.full(self.manager.keys, -1, dtype=np.int64)
        place[keys] = np.arange(len(keys))
        for edge_key, edge_rank in edges:
            segment = place[edge_key]
            known = segment >= 0
            segment, at = segment[known], edge_rank[known]
            inside = (at >= begin[segment]) & (at < reached[keys][segment])
            segment, at = segment[inside], at[inside]
            forced[offsets[segment] + at - begin[segment]] = True
        return forced

    # What is final, and what is still needed. --------------------------------------------------------

    def _final_until(self) -> int:
        """Tuples up to this time have their final place in the order of their key.

        In order a tuple at the watermark may be followed, but not preceded, by one that comes later.
        """
        manager = self.manager
        in_order = manager.in_order and manager.final == manager.watermark and not self._ahead
        return manager.final if in_order else manager.final - 1

    def commit(self) -> None:
        """Make final what no tuple can change any more, and forget the tuples of it.

        Nothing, where windows were closed for another reason than to come out: a new query looks at
        the slices, too.
        """
        kept, manager = self.tuples, self.manager
        self.tuples.grow(self.manager)  # keys and queries may be newer than the last slicing
        if kept.batch is None or self._unseen:
            return
        final = kept.base + kept.positions_until(self._final_until()) - kept.offsets[:-1]
        target = np.minimum(final, kept.sliced.rank)
        ranked = np.flatnonzero(manager.table.rank >= 0)
        target = align_ranks(
            manager.table.key[ranked], manager.table.rank[ranked], target, kept.sliced.rank, manager.keys
        )
        target = np.maximum(target, kept.committed.rank)
        # Without lateness what is sliced is final: its contexts are taken over as they are.
        settled = manager.final == manager.watermark and not self._ahead
        caught_up = (target == kept.sliced.rank) & settled
        kept.committed.copy_from(kept.sliced, np.flatnonzero(caught_up))
        # Where some final tuples are not among these, time must not close what they belong to.
        for upto, some in ((manager.final, target >= final), (NEG_INF, target < final)):
            self._commit_contexts(np.flatnonzero(~caught_up & some), target, upto)
        kept.committed.rank = np.maximum(kept.committed.rank, target)
        self._expire()
        kept.drop_before(self._tuples_needed_from())

    def _commit_contexts(self, keys: Column, target: Column, upto: int) -> None:
        """Bring the final contexts of these keys to the ranks `target`."""
        if not len(keys):
            return
        kept, manager = self.tuples, self.manager
        # The same errors were reported when these tuples were sliced.
        look = Look(upto, manager.newest, failed=[] if manager.skips_errors else None)
        end = kept.offsets[:-1] + target - kept.base
        moved = keys[target[keys] > kept.committed.rank[keys]]
        lives = Lives.under_way(self.manager, kept, kept.committed, moved, end, upto, keys)
        for query in self.manager.live.driven:
            if lives is not None and query.ends_with_key:
                lives.cut(kept, query, kept.committed, look)
                continue
            own = keys if driven_window(query).timed else moved
            if len(own):
                kept.cut(query, kept.committed, own, end[own], look)
        if lives is not None:
            lives.record(kept, kept.committed)

    def _expire(self) -> None:
        """Forget the windows that no tuple can change, but for the edges of the last ones."""
        final = self.manager.final
        windows = {q.name: q.window for q in self.manager.live.driven}
        for name, closed in self.closed.items():
            self.closed[name] = closed.take(closed.due > final)
            if windows[name].repeats:
                past = self.past.get(name, Past()).join(Past.of(closed.take(closed.due <= final)))
                self.past[name] = self._still_counting(past, windows[name].on_measure)

    def _still_counting(self, past: Past, on_measure: bool) -> Past:
        """Those of these windows whose edges another one may still get: it counts behind them.

        On a measure any later one may. In time that needs a tuple at the final time, or one behind
        the window that no other window has closed yet.
        """
        certain = self.tuples.committed.rank
        if on_measure:
            return past.last_ones(certain)
        at_final = past.due == self.manager.final
        followed = past.end < self.tuples.sliced.rank[past.key]
        return past.take(at_final).join(past.take(followed & ~at_final).last_ones(certain))

    def _tuples_needed_from(self) -> Column:
        kept, manager = self.tuples, self.manager
        needed = kept.committed.rank.copy()
        for query in manager.live.driven:
            if query.window.context is Context.FORWARD_AWARE:
                needed = np.minimum(needed, self.needed_from(query))
        if not manager.live.aware:
            return needed
        ranked = np.flatnonzero(manager.table.rank >= 0)
        rank = manager.table.rank[ranked]
        aligned = align_ranks(manager.table.key[ranked], rank, needed, kept.sliced.rank, manager.keys)
        return np.maximum(aligned, kept.base)

    def needed_from(self, query: LiveQuery) -> Column:
        """Per key: the smallest rank that a window of the query which is not closed for good may need."""
        kept, final = self.tuples, self.manager.final
        needed = self.keep_from(query, kept.committed, kept.committed.rank)
        reach = driven_window(query).reach
        if reach is None or final == NEG_INF:
            return needed
        # What still comes lies at `final` or later, and so looks back less far the longer a key is
        # silent. Tuples that are not final yet may lie before: their context knows what they need.
        old = kept.base + kept.positions_until(final - reach) - kept.offsets[:-1]
        silent = kept.committed.rank == kept.base + np.diff(kept.offsets)
        return np.where(silent, np.maximum(needed, old), needed)

    def keep_from(self, query: LiveQuery, progress: Progress, seen: Column) -> Column:
        """Per key: the smallest rank that a window may still need, as far as its context tells."""
        skip = self.tuples.skip_of(query)
        own = np.maximum(seen - skip, 0)
        try:
            kept = driven_window(query).keep_from(progress.contexts[query.name], own)
        except UserCodeError as error:
            error.cure = f'repair it, remove the window "{query.name}", or choose on_error="skip"'
            if not self.manager.skips_errors:
                raise
            self.manager.failed.append(error)
            kept = np.zeros(len(own), dtype=np.int64)  # keep every tuple, as without keep_rank
        return np.where(seen > skip, kept + skip, seen)

    def needs(self, table: SliceTable) -> Mask:
        """Rows that a tuple-driven window may still need."""
        kept = self.tuples
        needed = kept.committed.rank.copy()
        for query in self.manager.live.driven:
            needed = np.minimum(needed, self.needed_from(query))
        for closed in self.closed.values():
            np.minimum.at(needed, closed.key, closed.begin)
        return (table.rank >= 0) & (table.rank + table.n > needed[table.key])

    def needed_cuts(self, table: SliceTable) -> Mask:
        """Rows that must not be joined to the row before: a window begins or ends there."""
        kept = self.tuples
        hard = (table.rank >= 0) & (table.rank >= np.minimum(kept.committed.rank, kept.base)[table.key])
        pairs = [(c.key, c.begin) for c in self.closed.values()] + [
            (c.key, c.end) for c in self.closed.values()
        ]
        for query in self.manager.live.driven:
            skip = kept.skip_of(query)
            seen = np.maximum(kept.committed.rank - skip, 0)
            key, rank = driven_window(query).open_begins(kept.committed.contexts[query.name], seen)
            pairs.append((key, rank + skip[key]))
        for key, rank in pairs:
            mark_pairs(table.offsets(self.manager.keys), table.rank, key, rank, hard)
        return hard


def _carry_levels(rows: SliceTable, old: SliceTable, sliced: Column, classes: int) -> Column:
    """Levels of rebuilt slices: those of the slice that held their first tuple before.

    Of tuples that were `sliced` and are in no slice, that one was dropped: no session has them any more.
    """
    dropped = np.where(rows.rank < sliced[rows.key], classes, 0)
    if not len(old):
        return dropped
    held = rows_holding(old.key, old.rank, old.n, rows.key, rows.rank)
    return np.where(held >= 0, old.level[held], dropped)
