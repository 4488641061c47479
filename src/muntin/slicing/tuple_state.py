"""Tuples in order: the part of the stream whose order, and so whose edges, may still change.

Tuple-driven windows (count, punctuation, frames, ...) have their edges between tuples, so out of
order their tuples are kept until they are final [scotty §5.1, Fig. 4]. Tuples are sliced when the
watermark reaches them. A tuple that arrives later, within the allowed lateness, takes the slices of its
key back to the last final edge, and they are cut again.

Two positions per key, both ranks in the key's order of (time, arrival):
    committed   everything before is final; contexts and slices there never change
    sliced      everything before is in the slice table
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.joining import MOST_BYTES, TextError, text_bytes
from muntin.encoding import encode
from muntin.expressions import Expr
from muntin.slicing.batch import Batch, concat, distinct, ranges
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.schema import Role, Schema, Table, no_rows
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table_kernels import ends_until, key_offsets
from muntin.timeline import INF, NEG_INF
from muntin.windows.tuple_driven import TupleDriven

__all__ = [
    "NO_LIFE",
    "STAGES",
    "Positions",
    "Progress",
    "TupleRows",
    "TupleState",
    "copy_contexts",
    "window_of",
]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
STAGES = ("committed", "sliced")
"""The two positions of a key: up to where its contexts are final, and up to where it is sliced."""
NO_LIFE = NEG_INF
"""In `Progress.last`: the key has no open life."""


@dataclass(frozen=True, slots=True)
class TupleRows(Table):
    """Tuples as a table: where they belong, and the inputs of windows and aggregates."""

    SCHEMA: ClassVar[Schema] = Schema(
        {"key": Role.KEY, "time": Role.TIME, "seq": Role.ANY, "fresh": Role.FLAG}, time="time"
    )

    batch: Batch
    fresh: Mask
    """Which tuples arrived since the last emission."""
    inputs: tuple[Expr, ...]

    @property
    def columns(self) -> dict[str, Any]:
        batch = self.batch
        return {"key": batch.key, "time": batch.time, "seq": batch.seq, "fresh": self.fresh}

    def attached(self) -> dict[str, pa.Array]:
        return {str(i): self.batch.values[e] for i, e in enumerate(self.inputs)}


@dataclass(slots=True)
class Positions(Table):
    """Per key: the rank of its first kept tuple, and the time of the last one that was sliced.

    `skipped`: for a window that was added later, the rank of its first tuple; -1 where none has arrived.
    """

    SCHEMA: ClassVar[Schema] = Schema({"base": Role.RANK, "reached": Role.MOMENT}, per_key=True)

    base: Column = field(default_factory=no_rows)
    reached: Column = field(default_factory=no_rows)
    skipped: dict[str, Column] = field(default_factory=dict)

    def take(self, rows: Any) -> Self:
        skipped = {name: column[rows] for name, column in self.skipped.items()}
        return replace(self, base=self.base[rows], reached=self.reached[rows], skipped=skipped)

    def attached(self) -> dict[str, pa.Array]:
        return {f"skipped/{name}": pa.array(column) for name, column in self.skipped.items()}

    def grow(self, keys: int, windows: tuple[ServedWindow, ...]) -> None:
        """Make room for new keys and windows."""
        self.base = _extended(self.base, keys, 0)
        self.reached = _extended(self.reached, keys, NEG_INF)
        for window in windows:
            if window.since > NEG_INF:
                known = self.skipped.get(window.name, no_rows())
                self.skipped[window.name] = _extended(known, keys, -1)

    def copy(self) -> Positions:
        """A copy whose arrays may be written to."""
        skipped = {name: column.copy() for name, column in self.skipped.items()}
        return Positions(self.base.copy(), self.reached.copy(), skipped)


@dataclass(slots=True)
class Progress(Table):
    """How far the contexts of each tuple-driven window have advanced, for all keys.

    Where silent keys are forgotten, it also describes the open life of each key: the rank at which it
    began (`life`), the time of its last tuple (`last`), and for each window the time of its first tuple.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {"rank": Role.RANK, "life": Role.RANK, "last": Role.MOMENT}, optional=("life", "last"), per_key=True
    )

    rank: Column = field(default_factory=no_rows)
    contexts: dict[str, Any] = field(default_factory=dict)
    life: Column | None = None
    last: Column | None = None
    firsts: dict[str, Column] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of ranks and contexts; of contexts that are Python values, their length as text."""
        size = sum(int(column.nbytes) for column in (*self.columns.values(), *self.firsts.values()))
        for contexts in self.contexts.values():
            size += contexts.nbytes
            if contexts.dtype == object:
                size += sum(len(repr(context)) for context in contexts)
        return size

    @property
    def lives(self) -> tuple[Column, Column]:
        """`life` and `last`, where silent keys are forgotten."""
        assert self.life is not None
        assert self.last is not None
        return self.life, self.last

    def attached(self) -> dict[str, pa.Array]:
        contexts = {f"context/{name}": _to_arrow(column) for name, column in self.contexts.items()}
        return contexts | {f"first/{name}": pa.array(column) for name, column in self.firsts.items()}

    def take(self, rows: Any) -> Self:
        numbers = {name: column[rows] for name, column in self.columns.items()}
        contexts = {name: column[rows] for name, column in self.contexts.items()}
        firsts = {name: column[rows] for name, column in self.firsts.items()}
        return replace(self, contexts=contexts, firsts=firsts, **numbers)

    def copy(self) -> Progress:
        """A copy whose arrays may be written to."""
        return Progress(
            self.rank.copy(),
            {name: contexts.copy() for name, contexts in self.contexts.items()},
            None if self.life is None else self.life.copy(),
            None if self.last is None else self.last.copy(),
            {name: column.copy() for name, column in self.firsts.items()},
        )

    def grow(self, keys: int, windows: tuple[ServedWindow, ...], lives: bool) -> None:
        """Make room for new keys and windows; `lives`: silent keys are forgotten."""
        self.rank = _extended(self.rank, keys, 0)
        for window in windows:
            old = self.contexts.get(window.name)
            fresh = window_of(window).initial(keys - (0 if old is None else len(old)))
            if old is None:
                self.contexts[window.name] = fresh
            elif len(fresh):
                self.contexts[window.name] = np.concatenate([old, fresh])
            if lives and window.ends_with_key:
                self.firsts[window.name] = _extended(self.firsts.get(window.name, no_rows()), keys, INF)
        if lives:
            self.life = _extended(no_rows() if self.life is None else self.life, keys, 0)
            self.last = _extended(no_rows() if self.last is None else self.last, keys, NO_LIFE)

    def without(self, names: list[str]) -> None:
        """Drop the contexts of these windows."""
        self.contexts = {name: column for name, column in self.contexts.items() if name not in names}
        self.firsts = {name: column for name, column in self.firsts.items() if name not in names}

    def copy_from(self, other: Progress, keys: Column) -> None:
        """Take over the positions and contexts of another stage, for these keys."""
        self.rank[keys] = other.rank[keys]
        for name, contexts in self.contexts.items():
            contexts[keys] = copy_contexts(other.contexts[name][keys])
        if self.life is not None:
            for column, others in zip(self.lives, other.lives, strict=True):
                column[keys] = others[keys]
            for name, firsts in self.firsts.items():
                firsts[keys] = other.firsts[name][keys]


class TupleState:
    """The tuples of tuple-driven windows in (key, time, arrival) order, and the positions of each key.

    A step changes a draft. Arrays that are written to are copied once per draft, by `own`.
    """

    def __init__(self) -> None:
        self.batch: Batch | None = None
        """The tuples in order."""
        self.fresh: Mask = np.zeros(0, dtype=np.bool_)
        """Which of them arrived since the last emission."""
        self.arrived: tuple[Batch, ...] = ()
        """Tuples that are not yet among the ordered ones."""
        self.offsets: Column = np.zeros(1, dtype=np.int64)
        """The tuples of key k are offsets[k]:offsets[k + 1]."""
        self.positions = Positions()
        self.committed = Progress()
        self.sliced = Progress()
        self.closed: dict[str, ClosedWindows] = {}
        self.expired: dict[str, ExpiredWindows] = {}
        self.text_bytes: dict[Expr, int] = {}
        """The bytes of each column of texts: kept tuples must fit into one Arrow column."""
        self.counted = False
        """Whether arrivals of all tuples were counted here, so that new ones come behind those kept."""
        self.is_ahead = False
        """Whether tuples beyond the watermark are sliced, for early results."""
        self.sliced_until = NEG_INF
        """The time up to which tuples were last sliced."""
        self.has_unseen = True
        """Whether windows were closed for another reason than to be emitted."""
        self._owned = True

    def draft(self) -> TupleState:
        """A copy for a step; its arrays are shared until `own`."""
        new = object.__new__(TupleState)
        new.__dict__.update(self.__dict__)
        new.closed, new.expired, new.text_bytes = (
            self.closed.copy(),
            self.expired.copy(),
            self.text_bytes.copy(),
        )
        new._owned = False
        return new

    def own(self) -> None:
        """Copy what may be written to in this step."""
        if not self._owned:
            self.positions, self._owned = self.positions.copy(), True
            self.committed, self.sliced = self.committed.copy(), self.sliced.copy()

    def __len__(self) -> int:
        return (0 if self.batch is None else len(self.batch)) + sum(len(b) for b in self.arrived)

    def tables(self, inputs: tuple[Expr, ...]) -> Iterator[tuple[str, Table]]:
        """All tables with their names; `inputs` are the columns of the tuples."""
        if self.batch is not None:
            yield "tuples", TupleRows(self.batch, self.fresh, inputs)
        for i, batch in enumerate(self.arrived):
            yield f"arrived/{i}", TupleRows(batch, np.ones(len(batch), dtype=np.bool_), inputs)
        yield "positions", self.positions
        for stage in STAGES:
            yield f"progress/{stage}", getattr(self, stage)
        yield from ((f"closed/{name}", table) for name, table in self.closed.items())
        yield from ((f"expired/{name}", table) for name, table in self.expired.items())

    def batches(self) -> list[Batch]:
        """All kept tuples."""
        return [*self.arrived, *([] if self.batch is None else [self.batch])]

    def change_batches(self, change: Callable[[Batch], Batch]) -> None:
        """Replace all kept tuples by others, one for one."""
        self.arrived = tuple(change(batch) for batch in self.arrived)
        self.batch = None if self.batch is None else change(self.batch)

    def renumber(self, ids: Column) -> None:
        """Give keys new numbers; those without one, -1, are forgotten."""
        self.change_batches(lambda batch: Batch(ids[batch.key], batch.time, batch.arrival, batch.values))
        self.renumber_tables(ids)

    def renumber_tables(self, ids: Column) -> None:
        """As `renumber`, for all but the tuples themselves."""
        self.own()
        self.positions = self.positions.renumbered(ids)
        self.committed, self.sliced = self.committed.renumbered(ids), self.sliced.renumbered(ids)
        self.closed = {name: table.renumbered(ids) for name, table in self.closed.items()}
        self.expired = {name: table.renumbered(ids) for name, table in self.expired.items()}
        self.offsets = np.zeros(len(self.positions) + 1, dtype=np.int64)
        if self.batch is not None:
            self.index(len(self.positions))

    def grow(self, keys: int, windows: tuple[ServedWindow, ...], lives: bool) -> None:
        """Make room for new keys and windows."""
        self.own()
        self.offsets = _extended(self.offsets, keys + 1, int(self.offsets[-1]))
        self.positions.grow(keys, windows)
        for progress in (self.committed, self.sliced):
            progress.grow(keys, windows, lives)

    def without(self, names: list[str]) -> None:
        """Drop all that belongs to these windows."""
        self.own()
        self.committed.without(names)
        self.sliced.without(names)
        for tables in (self.positions.skipped, self.closed, self.expired):
            for name in names:
                tables.pop(name, None)

    def arrive(self, batch: Batch) -> None:
        """Keep these tuples; a TextError if the texts of a column no longer fit into one Arrow column."""
        for expr, column in batch.values.items():
            more = text_bytes(column)
            if more:
                size = self.text_bytes.get(expr, 0) + more
                if size > MOST_BYTES:
                    raise TextError(f'"{expr}" has {size:,} bytes in tuples that wait for a watermark')
                self.text_bytes[expr] = size
        self.arrived += (batch,)

    def count_texts(self) -> None:
        """Count the bytes of texts in all tuples."""
        sizes: dict[Expr, int] = {}
        for batch in self.batches():
            for expr, column in batch.values.items():
                if size := text_bytes(column):
                    sizes[expr] = sizes.get(expr, 0) + size
        self.text_bytes = sizes

    def mark(self, fresh: bool) -> None:
        """All tuples count as fresh from now on, or none does."""
        self.fresh = np.full(len(self.fresh), fresh, dtype=np.bool_)

    def settle(self, keys: int, reached: int) -> Column:
        """Sort the new arrivals in; returns the keys whose sliced part they reach into.

        `reached`: windows that time alone may close have seen no tuple before this time.
        """
        if not self.arrived:
            return no_rows()
        stored = self.batch if self.batch is not None and len(self.batch) else None
        counted = all(isinstance(batch.arrival, int) for batch in self.arrived)
        self.counted = counted and (stored is None or self.counted)
        new = concat(list(self.arrived))
        self.arrived = ()
        dirty = self._reached_into(new, reached)
        fresh = np.ones(len(new), dtype=np.bool_)
        if stored is not None:
            new = concat([stored, new])
            fresh = np.concatenate([self.fresh, fresh])
        self.batch, order = new.in_order(in_turn=self.counted)
        self.fresh = fresh[order]
        self.count_texts()
        self.index(keys)
        return dirty

    def _reached_into(self, new: Batch, reached: int) -> Column:
        """The keys of which some tuple comes before one that was sliced."""
        sliced = self.positions.reached
        if new.times[0] > max(int(sliced.max()), reached):
            return no_rows()
        behind = new.time < np.maximum(sliced[new.key], reached)
        if self.batch is not None and len(self.batch):
            # The input may say itself which of several tuples of one time comes first.
            behind |= (new.time == sliced[new.key]) & (new.seq < self.batch.seq.max())
        return distinct(new.key[behind])

    def index(self, keys: int) -> None:
        """Find where the tuples of each key lie."""
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

    def ranks_until(self, upto: int) -> Column:
        """Per key: the number of its tuples with time <= upto."""
        return self.positions.base + self.positions_until(upto) - self.offsets[:-1]

    def drop_before(self, rank: Column) -> None:
        """Forget the tuples with smaller ranks, key by key."""
        base = self.positions.base
        if self.batch is None or not (rank > base).any():
            return
        skipped = np.maximum(rank - base, 0)
        left = np.maximum(self.offsets[1:] - self.offsets[:-1] - skipped, 0)
        keep = ranges(self.offsets[:-1] + skipped, left)
        if isinstance(keep, slice) and 2 * int(left[0]) < len(self.batch):
            keep = np.arange(keep.start, keep.stop)  # a view of few tuples would hold the memory of all
        self.batch = self.batch.take(keep)
        self.fresh = self.fresh[keep]
        self.count_texts()
        self.positions.base = np.maximum(base, rank)
        self.index(len(base))

    def skip(self, window: ServedWindow, keys: Column | None = None) -> Column:
        """Per key: the rank of the window's first tuple; a window that was added later counts from there."""
        base = self.positions.base
        keys = np.arange(len(base), dtype=np.int64) if keys is None else keys
        if window.since == NEG_INF:
            return np.zeros(len(keys), dtype=np.int64)
        self.own()
        known = _extended(self.positions.skipped.get(window.name, no_rows()), len(base), -1)
        self.positions.skipped[window.name] = known
        times = self.batch.time if self.batch is not None else no_rows()
        inside = np.concatenate([[0], np.cumsum(times < window.since)])
        early = inside[self.offsets[keys + 1]] - inside[self.offsets[keys]]
        # Once a tuple of its own has left, no earlier one can arrive any more.
        settled = (known[keys] >= 0) & (early == 0)
        known[keys] = np.where(settled, known[keys], base[keys] + early)
        return known[keys]


def copy_contexts(contexts: Any) -> Any:
    """A copy that the window may change: user windows hold Python values."""
    if contexts.dtype == object:
        import copy

        return np.array([copy.deepcopy(c) for c in contexts] + [None], dtype=object)[:-1]
    return contexts.copy()


def window_of(served: ServedWindow) -> TupleDriven:
    """The window type of a tuple-driven window."""
    assert isinstance(served.window, TupleDriven)
    return served.window


def _extended(column: Column, size: int, value: int) -> Column:
    """The column with this value in new rows."""
    new = size - len(column)
    return np.concatenate([column, np.full(new, value, dtype=np.int64)]) if new > 0 else column


def _to_arrow(contexts: Any) -> pa.Array:
    if contexts.dtype == object:
        return pa.array([encode(context) for context in contexts], pa.string())
    raw = pa.py_buffer(np.ascontiguousarray(contexts).tobytes())
    return pa.Array.from_buffers(pa.binary(contexts.dtype.itemsize), len(contexts), [None, raw])
