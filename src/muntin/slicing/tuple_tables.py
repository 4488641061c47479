"""The tables of tuples in order: the tuples, and for each key how far its windows have been cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions import Expr
from muntin.slicing.batch import Batch, concat, share_of
from muntin.slicing.schema import Role, Schema, Table, no_rows
from muntin.slicing.served import ServedWindow
from muntin.timeline import INF, NEG_INF
from muntin.windows.tuple_driven import TupleDriven

__all__ = ["NO_LIFE", "STAGES", "Positions", "Progress", "TupleRows", "copy_contexts", "window_of"]

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
    inputs: tuple[Expr, ...] = ()

    @property
    def columns(self) -> dict[str, Any]:
        batch = self.batch
        return {"key": batch.key, "time": batch.time, "seq": batch.seq, "fresh": self.fresh}

    def renumbered(self, ids: Column) -> Self:
        """The same tuples with the new numbers of their keys; each key has one, because it has tuples."""
        batch = self.batch
        key = ids[batch.key]
        return replace(self, batch=Batch(key, batch.time, batch.arrival, batch.values, lifted=batch.lifted))

    def of_keys(self, begin: int, end: int) -> Self:
        keep = (self.batch.key >= begin) & (self.batch.key < end)
        return replace(self, batch=share_of(self.batch, begin, end), fresh=self.fresh[keep])

    def among_all(self, begin: int, end: int) -> Self:
        batch = self.batch
        key = batch.key + begin
        return replace(self, batch=Batch(key, batch.time, batch.seq, batch.values, lifted=batch.lifted))

    def with_inputs(self, types: Mapping[Expr, pa.DataType]) -> Self:
        return replace(self, batch=self.batch.with_columns(types))

    def join(self, other: Self) -> Self:
        fresh = np.concatenate([self.fresh, other.fresh])
        return replace(self, batch=concat([self.batch, other.batch]), fresh=fresh)

    def attached(self) -> dict[str, pa.Array]:
        return {str(i): self.batch.values[e] for i, e in enumerate(self.inputs)}


@dataclass(slots=True)
class Positions(Table):
    """Per key: the rank of its first stored tuple, and the time of the last one that was sliced.

    `skipped`: for a window that was added later, the rank of its first tuple; -1 where none has arrived.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {"base": Role.RANK, "reached": Role.MOMENT},
        per_window={"skipped": Role.RANK},
        blank={"base": 0, "reached": NEG_INF, "skipped": -1},
    )

    base: Column = field(default_factory=no_rows)
    reached: Column = field(default_factory=no_rows)
    skipped: dict[str, Column] = field(default_factory=dict)

    def with_room(self, keys: int, windows: tuple[ServedWindow, ...]) -> Self:
        """With room for new keys and windows."""
        for window in windows:
            if window.since > NEG_INF and window.name not in self.skipped:
                self.skipped[window.name] = np.full(len(self), -1, dtype=np.int64)
        return self.grown(keys)


@dataclass(slots=True)
class Progress(Table):
    """How far the contexts of each tuple-driven window have advanced, for all keys.

    Where silent keys are forgotten, it also describes the open life of each key: the rank at which it
    began (`life`), the time of its last tuple (`last`), and for each window the time of its first tuple.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {"rank": Role.RANK, "life": Role.RANK, "last": Role.MOMENT},
        optional=("life", "last"),
        per_window={"context": Role.CONTEXT, "first": Role.MOMENT},
        blank={"rank": 0, "life": 0, "last": NO_LIFE, "first": INF},
    )

    rank: Column = field(default_factory=no_rows)
    context: dict[str, Any] = field(default_factory=dict)
    life: Column | None = None
    last: Column | None = None
    first: dict[str, Column] = field(default_factory=dict)

    @property
    def lives(self) -> tuple[Column, Column]:
        """`life` and `last`, where silent keys are forgotten."""
        assert self.life is not None
        assert self.last is not None
        return self.life, self.last

    def with_room(self, keys: int, windows: tuple[ServedWindow, ...], lives: bool) -> Self:
        """With room for new keys and windows; `lives`: silent keys are forgotten."""
        known = len(self)
        if lives and self.life is None:
            self.life = np.zeros(known, dtype=np.int64)
            self.last = np.full(known, NO_LIFE, dtype=np.int64)
        for window in windows:
            if lives and window.ends_with_key and window.name not in self.first:
                self.first[window.name] = np.full(known, INF, dtype=np.int64)
        grown = self.grown(keys)
        for window in windows:
            old = grown.context.get(window.name)
            initial = window_of(window).initial(keys - (0 if old is None else len(old)))
            if old is None:
                grown.context[window.name] = initial
            elif len(initial):
                grown.context[window.name] = np.concatenate([old, initial])
        return grown

    def without(self, names: list[str]) -> Self:
        """Without the contexts of these windows."""
        context = {name: column for name, column in self.context.items() if name not in names}
        first = {name: column for name, column in self.first.items() if name not in names}
        return replace(self, context=context, first=first)

    def copy_from(self, other: Progress, keys: Column) -> None:
        """Take over the positions and contexts of another stage, for these keys."""
        others = other.columns
        for name, column in self.columns.items():
            column[keys] = others[name][keys]
        for one, window, column in self.of_windows():
            column[keys] = copy_contexts(getattr(other, one)[window][keys])


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
