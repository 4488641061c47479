"""The lives of a key: a silence of `forget_keys_after` ends one, and the next tuple begins another.

Two neighbouring tuples of a key belong to one life if they are less than that span apart. So a life is a
session of its key: which tuples it has follows from their times, not from batches or watermarks. A life
is over when the watermark reaches the time of its last tuple plus the span. Then the windows that would
hold the key for ever close, and the next life begins with a context that has seen no tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import numbers
from muntin.slicing.closed import Closed
from muntin.slicing.live import LiveQuery
from muntin.slicing.tuples import NO_LIFE, KeptTuples, Look, Progress, copy_contexts, driven_window
from muntin.timeline import INF
from muntin.windows.base import Context

if TYPE_CHECKING:
    from muntin.slicing.manager import SliceManager

__all__ = ["Edges", "Lives"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Edges = tuple[Column, Column]
"""Keys and ranks at which slices begin."""


@dataclass(slots=True)
class Lives:
    """Runs of tuples, each of one life; the runs of a key follow each other.

    A run lies at begin:end among the kept tuples, and is empty where a life ends without a new one. Its
    life began at `rank` and lasts `until` the given time, if no later tuple prolongs it.
    """

    key: Column
    begin: Column
    end: Column
    rank: Column
    until: Column
    is_new: Mask
    is_over: Mask
    is_last: Mask
    forget: int

    @classmethod
    def under_way(
        cls,
        manager: SliceManager,
        kept: KeptTuples,
        progress: Progress,
        new: Column,
        end: Column,
        upto: int,
        among: Column | None = None,
    ) -> Lives | None:
        """The lives of keys that have new tuples before the positions `end`, or whose life time may end.

        None where no key is ever forgotten. `among`: only these keys may end by time.
        """
        forget = manager.forget
        if forget is None:
            return None
        waits = progress.last > NO_LIFE
        if not any(driven_window(q).timed and q.ends_with_key for q in manager.live.driven):
            waits &= progress.last + forget <= upto
        waiting = np.flatnonzero(waits) if among is None else among[waits[among]]
        keys = np.union1d(new, waiting) if len(waiting) else new
        return cls.of(kept, progress, keys, end[keys], upto, forget)

    @classmethod
    def of(
        cls, kept: KeptTuples, progress: Progress, keys: Column, end: Column, upto: int, forget: int
    ) -> Lives:
        """The lives of these keys from where the contexts are to the positions `end`.

        `upto`: every tuple before this time is among them or was seen before.
        """
        assert kept.batch is not None
        begin = kept.offsets[keys] + progress.rank[keys] - kept.base[keys]
        size = np.maximum(end - begin, 0)
        at = numbers(begin, size)
        time, owner = kept.batch.time[at], np.repeat(np.arange(len(keys)), size)
        before = np.empty(len(at), dtype=np.int64)
        before[1:] = time[:-1]
        firsts = (np.cumsum(size) - size)[size > 0]
        before[firsts] = progress.last[keys[size > 0]]
        starts = np.flatnonzero(time >= before + forget)
        continues = np.flatnonzero(progress.last[keys] > NO_LIFE)
        order = np.argsort(np.concatenate([continues, owner[starts]]), kind="stable")
        place = np.concatenate([continues, owner[starts]])[order]
        is_new = (np.arange(len(order)) >= len(continues))[order]
        own = np.concatenate([begin[continues], at[starts]])[order]
        is_last = np.append(place[1:] != place[:-1], True)[: len(place)]
        stop = np.where(is_last, (begin + size)[place], np.append(own[1:], 0)[: len(own)])
        key = keys[place]
        last = progress.last[key]
        filled = stop > own
        last[filled] = kept.batch.time[stop[filled] - 1]
        until = last + forget
        rank = np.where(is_new, kept.base[key] + own - kept.offsets[key], progress.life[key])
        return cls(key, own, stop, rank, until, is_new, ~is_last | (until <= upto), is_last, forget)

    @property
    def begins(self) -> Edges:
        """Where lives begin."""
        return self.key[self.is_new], self.rank[self.is_new]

    def record(self, kept: KeptTuples, progress: Progress) -> None:
        """Note in `progress` that the contexts of all queries have seen these tuples."""
        key, over = self.key[self.is_last], self.is_over[self.is_last]
        behind = kept.base[key] + self.end[self.is_last] - kept.offsets[key]
        progress.life[key] = np.where(over, behind, self.rank[self.is_last])
        progress.last[key] = np.where(over, NO_LIFE, self.until[self.is_last] - self.forget)

    def cut(
        self, kept: KeptTuples, query: LiveQuery, progress: Progress, look: Look
    ) -> tuple[Closed, list[Edges]]:
        """Run one query's context over these tuples; where a life is over, its open windows close."""
        window = driven_window(query)
        contexts, firsts = progress.contexts[query.name], progress.firsts[query.name]
        part, first = copy_contexts(contexts[self.key]), firsts[self.key]
        part[self.is_new], first[self.is_new] = window.initial(int(self.is_new.sum())), INF
        begin = self.begin
        if window.context is Context.FORWARD_AWARE:  # with the tuples of this life that it looks back to
            begin = kept.offsets[self.key] + np.maximum(self.rank - kept.base[self.key], 0)
        found, edges = Closed(), []
        ending = replace(look, closing=True, partial=window.emit_partial)
        for some, how in ((np.flatnonzero(~self.is_over), look), (np.flatnonzero(self.is_over), ending)):
            if not len(some):
                continue
            key, until, own = self.key[some], self.until[some], part[some]
            cuts, began = kept.run(query, own, key, begin[some], self.end[some], how, until)
            part[some], first[some] = own, np.minimum(first[some], began)
            if how is ending:
                cuts.due = np.minimum(cuts.due, until[cuts.segment])
            life = first[some][cuts.segment] if window.on_measure else None
            cuts.segment, cuts.edge_segment = key[cuts.segment], key[cuts.edge_segment]
            found = found.join(Closed.of(cuts, life))
            edges.append((cuts.edge_segment, cuts.edge_rank))
        if not look.closing:
            continues, ends = self.is_last & ~self.is_over, self.is_last & self.is_over
            contexts[self.key[continues]], firsts[self.key[continues]] = part[continues], first[continues]
            contexts[self.key[ends]], firsts[self.key[ends]] = window.initial(int(ends.sum())), INF
        return found, edges
