"""The lives of a key: a silence of `forget_keys_after` ends one, and the next tuple begins another.

Two neighbouring tuples of a key belong to one life if they are less than that span apart. So a life is a
session of its key: which tuples it has follows from their times, not from batches or watermarks. A life
is over when the watermark reaches the time of its last tuple plus the span. Then the windows that would
keep the key for ever close, and the next life begins with a context that has seen no tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import numbers
from muntin.slicing.closed_windows import ClosedWindows
from muntin.slicing.served import ServedWindow
from muntin.slicing.tuple_cuts import Walk, walk
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import NO_LIFE, Progress, copy_contexts, window_of
from muntin.timeline import INF
from muntin.windows.base import Context

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan

__all__ = ["Edges", "Lives"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Edges = tuple[Column, Column]
"""Keys and ranks at which slices begin."""


@dataclass(slots=True)
class Lives:
    """Runs of tuples, each of one life; the runs of a key follow each other.

    A run lies at begin:end among the tuples in order, and is empty where a life ends without a new one. Its
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
        plan: BoundPlan,
        tuples: TupleState,
        progress: Progress,
        new: Column,
        end: Column,
        upto: int,
        among: Column | None = None,
    ) -> Lives | None:
        """The lives of keys that have new tuples before the positions `end`, or whose life time may end.

        None where no key is ever forgotten. `among`: only these keys may end by time.
        """
        forget = plan.forget
        if forget is None:
            return None
        _, last = progress.lives
        waits = last > NO_LIFE
        if not any(window_of(q).timed and q.ends_with_key for q in plan.served.tuple_driven):
            waits &= last + forget <= upto
        waiting = np.flatnonzero(waits) if among is None else among[waits[among]]
        keys = np.union1d(new, waiting) if len(waiting) else new
        return cls.of(tuples, progress, keys, end[keys], upto, forget)

    @classmethod
    def of(
        cls, tuples: TupleState, progress: Progress, keys: Column, end: Column, upto: int, forget: int
    ) -> Lives:
        """The lives of these keys from where the contexts are to the positions `end`.

        `upto`: every tuple before this time is among them or was seen before.
        """
        assert tuples.batch is not None
        life, ends = progress.lives
        begin = tuples.offsets[keys] + progress.rank[keys] - tuples.positions.base[keys]
        size = np.maximum(end - begin, 0)
        at = numbers(begin, size)
        time, owner = tuples.batch.time[at], np.repeat(np.arange(len(keys)), size)
        before = np.empty(len(at), dtype=np.int64)
        before[1:] = time[:-1]
        firsts = (np.cumsum(size) - size)[size > 0]
        before[firsts] = ends[keys[size > 0]]
        starts = np.flatnonzero(time >= before + forget)
        continues = np.flatnonzero(ends[keys] > NO_LIFE)
        order = np.argsort(np.concatenate([continues, owner[starts]]), kind="stable")
        place = np.concatenate([continues, owner[starts]])[order]
        is_new = (np.arange(len(order)) >= len(continues))[order]
        begins = np.concatenate([begin[continues], at[starts]])[order]
        is_last = np.append(place[1:] != place[:-1], True)[: len(place)]
        stop = np.where(is_last, (begin + size)[place], np.append(begins[1:], 0)[: len(begins)])
        key = keys[place]
        last = ends[key]
        filled = stop > begins
        last[filled] = tuples.batch.time[stop[filled] - 1]
        until = last + forget
        rank = np.where(is_new, tuples.positions.base[key] + begins - tuples.offsets[key], life[key])
        return cls(key, begins, stop, rank, until, is_new, ~is_last | (until <= upto), is_last, forget)

    @property
    def begins(self) -> Edges:
        """Where lives begin."""
        return self.key[self.is_new], self.rank[self.is_new]

    def record(self, tuples: TupleState, progress: Progress) -> None:
        """Note in `progress` that the contexts of all windows have seen these tuples."""
        key, over = self.key[self.is_last], self.is_over[self.is_last]
        behind = tuples.positions.base[key] + self.end[self.is_last] - tuples.offsets[key]
        life, last = progress.lives
        life[key] = np.where(over, behind, self.rank[self.is_last])
        last[key] = np.where(over, NO_LIFE, self.until[self.is_last] - self.forget)

    def cut(
        self, tuples: TupleState, served: ServedWindow, progress: Progress, how: Walk
    ) -> tuple[ClosedWindows, list[Edges]]:
        """Advance the contexts of one window; where a life is over, its open windows close."""
        window = window_of(served)
        contexts, firsts = progress.context[served.name], progress.first[served.name]
        part, first = copy_contexts(contexts[self.key]), firsts[self.key]
        part[self.is_new], first[self.is_new] = window.initial(int(self.is_new.sum())), INF
        begin = self.begin
        if window.context is Context.FORWARD_AWARE:  # with the tuples of this life that it looks back to
            begin = tuples.offsets[self.key] + np.maximum(self.rank - tuples.positions.base[self.key], 0)
        closed_windows, edges = ClosedWindows(), list[Edges]()
        ending = replace(how, closing=True, partial=window.emit_partial)
        for chosen, each in ((np.flatnonzero(~self.is_over), how), (np.flatnonzero(self.is_over), ending)):
            if not len(chosen):
                continue
            key, until, walked = self.key[chosen], self.until[chosen], part[chosen]
            cuts, began = walk(tuples, served, walked, key, begin[chosen], self.end[chosen], each, until)
            part[chosen], first[chosen] = walked, np.minimum(first[chosen], began)
            if each is ending:
                cuts.complete_at = np.minimum(cuts.complete_at, until[cuts.segment])
            life = first[chosen][cuts.segment] if window.on_measure else None
            cuts.segment, cuts.edge_segment = key[cuts.segment], key[cuts.edge_segment]
            closed_windows = closed_windows.join(ClosedWindows.of(cuts, life))
            edges.append((cuts.edge_segment, cuts.edge_rank))
        if not how.closing:
            continues, ends = self.is_last & ~self.is_over, self.is_last & self.is_over
            contexts[self.key[continues]], firsts[self.key[continues]] = part[continues], first[continues]
            contexts[self.key[ends]], firsts[self.key[ends]] = window.initial(int(ends.sum())), INF
        return closed_windows, edges
