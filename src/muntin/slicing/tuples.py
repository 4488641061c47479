"""Kept tuples: the part of the stream whose order, and so whose edges, may still change.

Tuple-driven windows (count, punctuation, frames, ...) have their edges between tuples, so out of
order their tuples are kept until they are final [scotty §5.1, Fig. 4]. Tuples are sliced when the
watermark reaches them. A tuple that then still comes (within the allowed lateness) takes the
slices of its key back to the last final edge and cuts them again.

Two positions per key, both ranks in the key's order of (time, arrival):
    committed   everything before is final; contexts and slices there never change
    sliced      everything before is in the slice table
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from muntin.aggregates.joining import MOST_BYTES, TextError, text_bytes
from muntin.errors import PlacedError, UserCodeError
from muntin.expressions import Expr
from muntin.slicing.batch import Batch, concat, numbers, ranges, values_at
from muntin.slicing.flood import Limit
from muntin.slicing.live import LiveQuery
from muntin.slicing.table_kernels import ends_until, key_offsets
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context
from muntin.windows.tuple_driven import Cuts, TupleDriven, Tuples

if TYPE_CHECKING:
    from muntin.slicing.manager import SliceManager

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
STAGES = ("committed", "sliced")
"""The two positions of a key: up to where its contexts are final, and up to where it is sliced."""
NO_LIFE = NEG_INF
"""In `Progress.last`: the key has no open life."""


def _no_ranks() -> Column:
    return np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Progress:
    """How far the contexts of each driven query have got, for all keys.

    Where keys are forgotten, it also describes the open life of each key: the rank at which it began
    (`life`), the time of its last tuple (`last`), and for each query the time of its first tuple.
    """

    rank: Column = field(default_factory=_no_ranks)
    contexts: dict[str, Any] = field(default_factory=dict)
    life: Column = field(default_factory=_no_ranks)
    last: Column = field(default_factory=_no_ranks)
    firsts: dict[str, Column] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of ranks and contexts; of contexts that are Python values, their length as text."""
        size = self.rank.nbytes + self.life.nbytes + self.last.nbytes
        size += sum(firsts.nbytes for firsts in self.firsts.values())
        for contexts in self.contexts.values():
            size += contexts.nbytes
            if contexts.dtype == object:
                size += sum(len(repr(context)) for context in contexts)
        return size

    def grow(self, keys: int, queries: tuple[LiveQuery, ...]) -> None:
        """Make room for new keys and new queries."""
        new = keys - len(self.rank)
        if new > 0:
            self.rank = np.concatenate([self.rank, np.zeros(new, dtype=np.int64)])
        for query in queries:
            old = self.contexts.get(query.name)
            fresh = driven_window(query).initial(keys - (0 if old is None else len(old)))
            if old is None:
                self.contexts[query.name] = fresh
            elif len(fresh):
                self.contexts[query.name] = np.concatenate([old, fresh])

    def grow_lives(self, keys: int, queries: tuple[LiveQuery, ...]) -> None:
        """Make room for the lives of new keys, and in new queries."""
        new = keys - len(self.life)
        if new > 0:
            self.life = np.concatenate([self.life, np.zeros(new, dtype=np.int64)])
            self.last = np.concatenate([self.last, np.full(new, NO_LIFE, dtype=np.int64)])
        for query in queries:
            old = self.firsts.get(query.name, _no_ranks())
            if query.ends_with_key and len(old) < keys:
                unknown = np.full(keys - len(old), INF, dtype=np.int64)
                self.firsts[query.name] = np.concatenate([old, unknown])

    def keep(self, keys: Column) -> None:
        """Forget all other keys."""
        self.rank = self.rank[keys]
        self.contexts = {name: contexts[keys] for name, contexts in self.contexts.items()}
        if len(self.life):
            self.life, self.last = self.life[keys], self.last[keys]
            self.firsts = {name: firsts[keys] for name, firsts in self.firsts.items()}

    def copy_from(self, other: Progress, keys: Column) -> None:
        """Go to where the other one is, for these keys."""
        self.rank[keys] = other.rank[keys]
        for name, contexts in self.contexts.items():
            contexts[keys] = copy_contexts(other.contexts[name][keys])
        if len(self.life):
            self.life[keys], self.last[keys] = other.life[keys], other.last[keys]
            for name, firsts in self.firsts.items():
                firsts[keys] = other.firsts[name][keys]


@dataclass(frozen=True, slots=True)
class Look:
    """How far a context may go: the watermark, and whether open windows are closed for a look."""

    upto: int
    newest: int
    closing: bool = False
    partial: bool = False
    limit: Limit | None = None
    """The limit of windows; None where the same windows were counted before."""
    failed: list[PlacedError] | None = None
    """Collects errors of the user's code where they are skipped; None where they are raised."""


@dataclass(slots=True)
class KeptTuples:
    """Tuples in (key, time, arrival) order, with the positions that each key has reached."""

    batch: Batch | None = None
    fresh: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    arrived: list[Batch] = field(default_factory=list)
    base: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    reached: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    committed: Progress = field(default_factory=Progress)
    sliced: Progress = field(default_factory=Progress)
    offsets: Column = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    skipped: dict[str, Column] = field(default_factory=dict)
    text_bytes: dict[Expr, int] = field(default_factory=dict)
    """The bytes of each column of texts: kept tuples must fit into one Arrow column."""
    counted: bool = False
    """Whether arrivals of all tuples were counted here, so that new ones come behind those kept."""

    def stage(self, name: str) -> Progress:
        """The progress of one of STAGES."""
        return {"committed": self.committed, "sliced": self.sliced}[name]

    def __len__(self) -> int:
        kept = 0 if self.batch is None else len(self.batch)
        return kept + sum(len(b) for b in self.arrived)

    def arrive(self, batch: Batch) -> None:
        """Keep these tuples; a TextError if the texts of a column no longer fit into one Arrow column."""
        for expr, column in batch.values.items():
            more = text_bytes(column)
            if more:
                size = self.text_bytes.get(expr, 0) + more
                if size > MOST_BYTES:
                    raise TextError(f'"{expr}" has {size:,} bytes in tuples that wait for a watermark')
                self.text_bytes[expr] = size
        self.arrived.append(batch)

    @property
    def nbytes(self) -> int:
        """Bytes of the kept tuples, and of what is known of each key."""
        kept = self.fresh.nbytes + (0 if self.batch is None else self.batch.nbytes)
        kept += sum(b.nbytes for b in self.arrived) + sum(s.nbytes for s in self.skipped.values())
        kept += self.base.nbytes + self.reached.nbytes + self.offsets.nbytes
        return kept + self.committed.nbytes + self.sliced.nbytes

    def grow(self, manager: SliceManager) -> None:
        """Make room for new keys and new queries."""
        keys, driven = manager.keys, manager.live.driven
        new = keys - len(self.base)
        if new > 0:
            self.base = np.concatenate([self.base, np.zeros(new, dtype=np.int64)])
            self.reached = np.concatenate([self.reached, np.full(new, NEG_INF, dtype=np.int64)])
            self.offsets = np.concatenate([self.offsets, np.full(new, self.offsets[-1])])
        for progress in (self.committed, self.sliced):
            progress.grow(keys, driven)
            if manager.forget is not None:
                progress.grow_lives(keys, driven)

    def batches(self) -> list[Batch]:
        """All kept tuples, in parts."""
        return self.arrived if self.batch is None else [*self.arrived, self.batch]

    def settle(self, keys: int, reached: int) -> Column:
        """Sort the new arrivals in; returns the keys whose sliced part they reach into.

        `reached`: contexts of windows that time alone may close have been told of no tuple before it.
        """
        if not self.arrived:
            return np.zeros(0, dtype=np.int64)
        kept = self.batch if self.batch is not None and len(self.batch) else None
        counted = all(isinstance(batch.arrival, int) for batch in self.arrived)
        self.counted = counted and (kept is None or self.counted)
        new = concat(self.arrived)
        self.arrived = []
        dirty = self._reached_into(new, reached)
        fresh = np.ones(len(new), dtype=np.bool_)
        if kept is not None:
            new = concat([kept, new])
            fresh = np.concatenate([self.fresh, fresh])
        self.batch, order = new.in_order(in_turn=self.counted)
        self.fresh = fresh[order]
        self.text_bytes = _text_bytes(self.batch)
        self._index(keys)
        return dirty

    def _reached_into(self, new: Batch, reached: int) -> Column:
        """The keys of which some tuple comes before one that was sliced."""
        newest = max(int(self.reached.max()), reached)
        if new.times[0] > newest:
            return np.zeros(0, dtype=np.int64)
        behind = new.time < np.maximum(self.reached[new.key], reached)
        if self.batch is not None and len(self.batch):
            # Among tuples of one time the input may say itself which one comes first.
            behind |= (new.time == self.reached[new.key]) & (new.seq < self.batch.seq.max())
        return np.unique(new.key[behind])

    def _index(self, keys: int) -> None:
        assert self.batch is not None
        if self.batch.ids is None:
            self.offsets = np.full(keys + 1, len(self.batch), dtype=np.int64)
            self.offsets[0] = 0
        else:
            self.offsets = key_offsets(self.batch.ids, keys)

    def positions_until(self, upto: int) -> Column:
        """Per key: position behind its last tuple with time <= upto."""
        if self.batch is None or not len(self.batch):
            return self.offsets[1:].copy()
        return ends_until(self.batch.time, self.offsets, upto)

    def drop_before(self, rank: Column) -> None:
        """Forget the tuples with smaller ranks, key by key."""
        if self.batch is None or not (rank > self.base).any():
            return
        skipped = np.maximum(rank - self.base, 0)
        left = np.maximum(self.offsets[1:] - self.offsets[:-1] - skipped, 0)
        keep = ranges(self.offsets[:-1] + skipped, left)
        if isinstance(keep, slice) and 2 * int(left[0]) < len(self.batch):
            keep = np.arange(keep.start, keep.stop)  # a view of few tuples would hold the memory of all
        self.batch = self.batch.take(keep)
        self.fresh = self.fresh[keep]
        self.text_bytes = _text_bytes(self.batch)
        self.base = np.maximum(self.base, rank)
        self._index(len(self.base))

    def cut(
        self,
        query: LiveQuery,
        progress: Progress,
        keys: Column,
        end: Column,
        look: Look,
    ) -> Cuts:
        """Run one query's context over the tuples of these keys up to the positions `end`."""
        aware = query.window.context is Context.FORWARD_AWARE
        begin = self.offsets[keys]
        if not aware:
            begin = begin + progress.rank[keys] - self.base[keys]
        contexts = progress.contexts[query.name]
        part = copy_contexts(contexts[keys])
        cuts, _ = self.run(query, part, keys, begin, end, look)
        if not look.closing:
            contexts[keys] = part
        cuts.segment = keys[cuts.segment]
        cuts.edge_segment = keys[cuts.edge_segment]
        return cuts

    def run(
        self,
        query: LiveQuery,
        contexts: Any,
        keys: Column,
        begin: Column,
        end: Column,
        look: Look,
        until: Column | None = None,
    ) -> tuple[Cuts, Column]:
        """Run contexts over the tuples at begin:end, each over those of its key.

        Returns the windows, with the numbers of contexts as segments, and the time of the first tuple
        that each context was given; INF where there was none.
        """
        skipped = self._skip(query, keys)
        tuples = self._segments(
            query, keys, np.maximum(begin, self.offsets[keys] + skipped - self.base[keys]), end
        )
        size = np.diff(tuples.offsets)
        if skipped.any():
            tuples.rank = tuples.rank - np.repeat(skipped, size)
        tuples.until, tuples.failed = until, look.failed
        window = driven_window(query)
        if window.per_tuple > 1 and look.limit is not None:
            inputs = len(tuples) + len(keys)
            if inputs * window.per_tuple > look.limit.most(inputs):
                look.limit.check(query, window.count(contexts, tuples, look.closing), inputs, look.newest)
        try:
            cuts = window.cut(
                contexts, tuples, look.upto, closing=look.closing, partial=look.partial, newest=look.newest
            )
        except UserCodeError as error:
            error.cure = f'repair it, remove the window "{query.name}", or choose on_error="skip"'
            raise
        for segment, ranks in (
            (cuts.segment, (cuts.begin, cuts.end)),
            (cuts.edge_segment, (cuts.edge_rank,)),
        ):
            for rank in ranks:
                rank += skipped[segment]
        first = np.full(len(keys), INF, dtype=np.int64)
        first[size > 0] = tuples.time[tuples.offsets[:-1][size > 0]]
        return cuts, first

    def _skip(self, query: LiveQuery, keys: Column) -> Column:
        """Per key: the rank of the query's first tuple; a query added on the fly starts its own count."""
        if query.since == NEG_INF:
            return np.zeros(len(keys), dtype=np.int64)
        known = self.skipped.setdefault(query.name, np.full(len(self.base), -1, dtype=np.int64))
        if len(known) < len(self.base):
            known = np.concatenate([known, np.full(len(self.base) - len(known), -1, dtype=np.int64)])
            self.skipped[query.name] = known
        times = self.batch.time if self.batch is not None else np.zeros(0, dtype=np.int64)
        inside = np.concatenate([[0], np.cumsum(times < query.since)])
        early = inside[self.offsets[keys + 1]] - inside[self.offsets[keys]]
        # Once a tuple of its own has left, no earlier one can come any more.
        settled = (known[keys] >= 0) & (early == 0)
        known[keys] = np.where(settled, known[keys], self.base[keys] + early)
        return known[keys]

    def _segments(self, query: LiveQuery, keys: Column, begin: Column, end: Column) -> Tuples:
        """The tuples at begin:end of each key as one segment each."""
        assert self.batch is not None
        size = np.maximum(end - begin, 0)
        offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        index = ranges(begin, size)
        columns = {e: values_at(self.batch.values[e], index) for e in query.inputs}
        rank = numbers(self.base[keys] - self.offsets[keys] + begin, size)
        return Tuples(offsets, self.batch.time[index], rank, columns)

    def skip_of(self, query: LiveQuery) -> Column:
        """Rank of the query's first tuple, for all keys."""
        return self._skip(query, np.arange(len(self.base), dtype=np.int64))


def _text_bytes(batch: Batch) -> dict[Expr, int]:
    return {expr: size for expr, column in batch.values.items() if (size := text_bytes(column))}


def copy_contexts(contexts: Any) -> Any:
    """A copy that the window may change: user windows hold Python values."""
    if contexts.dtype == object:
        import copy

        return np.array([copy.deepcopy(c) for c in contexts] + [None], dtype=object)[:-1]
    return contexts.copy()


def driven_window(query: LiveQuery) -> TupleDriven:
    """The window of a query whose edges depend on the tuples in order."""
    assert isinstance(query.window, TupleDriven)
    return query.window
