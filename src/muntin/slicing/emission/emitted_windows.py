"""Emitted windows that may still change: their revisions, and the values that a retraction repeats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.emission.valued_table import ValuedTable
from muntin.slicing.schema import Role, Schema, no_rows

__all__ = [
    "COMPLETE", "EARLY", "EARLY_ROW", "FINAL_ROW", "KINDS", "RETRACTED", "RETRACT_ROW", "UPDATE_ROW",
    "Candidates", "Decision", "EmittedWindows", "repeated_rows",
]  # fmt: skip

Column = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

EARLY, COMPLETE, RETRACTED = 0, 1, 2
"""Stages of an emitted window."""

FINAL_ROW, EARLY_ROW, UPDATE_ROW, RETRACT_ROW = 0, 1, 2, 3
KINDS = pa.array(["final", "early", "update", "retract"])
"""Kinds of result rows, by code."""

COUNT, KEY, VALUE = Role.COUNT, Role.KEY, Role.VALUE
IDENTITY = ("ordinal", "b", "a", "life", "key")
"""The columns that identify a window, least significant first."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Windows that may be emitted: identity, content (n, mark), and the watermark that completes them.

    The identity is the key, its life (see `ClosedWindows`) and the edges (a, b); `ordinal` tells equal ones
    apart.
    """

    key: Column
    life: Column
    a: Column
    b: Column
    ordinal: Column
    n: Column
    mark: Column
    complete_at: Column

    def take(self, index: Column) -> Candidates:
        """The candidates at these positions."""
        names = ("key", "life", "a", "b", "ordinal", "n", "mark", "complete_at")
        return Candidates(*(getattr(self, c)[index] for c in names))


@dataclass(frozen=True, slots=True)
class Decision:
    """Which candidates to emit and how; which emitted windows no longer exist."""

    emit: Column
    kind: Column
    revision: Column
    gone: Column


@dataclass(frozen=True, slots=True)
class EmittedWindows(ValuedTable):
    """Emitted instances of one window that have not expired, unordered; one row per identity.

    `values`: the results of windows that may be retracted, row by row.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "a": VALUE, "b": VALUE, "key": KEY, "life": Role.MOMENT, "ordinal": COUNT, "n": COUNT,
            "mark": Role.ANY, "complete_at": Role.EDGE, "revision": COUNT, "stage": Role.STAGE,
        },
        time="complete_at",
    )  # fmt: skip

    a: Column = field(default_factory=no_rows)
    b: Column = field(default_factory=no_rows)
    key: Column = field(default_factory=no_rows)
    life: Column = field(default_factory=no_rows)
    ordinal: Column = field(default_factory=no_rows)
    n: Column = field(default_factory=no_rows)
    mark: Column = field(default_factory=no_rows)
    complete_at: Column = field(default_factory=no_rows)
    revision: Column = field(default_factory=no_rows)
    stage: Column = field(default_factory=no_rows)
    values: pa.Table | None = None

    def find(self, new: Candidates) -> Column:
        """The row of each candidate's identity, -1 where it is new."""
        rows = np.full(len(new.key), -1, dtype=np.int64)
        if not len(self) or not len(rows):
            return rows
        order, hits = repeated_rows([np.concatenate([getattr(self, c), getattr(new, c)]) for c in IDENTITY])
        # Rows precede equal candidates, since the sort is stable.
        rows[order[hits + 1] - len(self)] = order[hits]
        return rows

    def is_distinct(self) -> bool:
        """Whether each identity has one row."""
        return not len(self) or not len(repeated_rows([getattr(self, c) for c in IDENTITY])[1])

    def decide(
        self, new: Candidates, watermark: int, scope: Mask | None, early: bool, frozen: int | None = None
    ) -> tuple[EmittedWindows, Decision]:
        """Compare the windows as they are now with those that were emitted.

        `scope` marks the rows that `new` covers: a row in it without a candidate is gone.
        Windows that are not complete are emitted only when `early`. A late tuple may close an emitted
        window earlier without changing its content: the rows returned have the new `complete_at`.
        A window that was complete by `frozen` has expired: it stays as it was emitted, wherever its end is.
        """
        row = self.find(new)
        known = row >= 0
        at = np.maximum(row, 0)
        complete_at = self.complete_at.copy()
        complete_at[row[known]] = new.complete_at[known]
        complete = new.complete_at <= watermark
        stage = np.where(known, self.stage[at], -1) if len(self) else np.full(len(row), -1)
        changed = ~known
        if len(self):
            other = (self.n[at] != new.n) | (self.mark[at] != new.mark)
            changed |= other | (stage == RETRACTED) | ((stage == EARLY) & complete)
        if frozen is not None and len(self):
            changed &= (stage != COMPLETE) | (self.complete_at[at] > frozen)
        if not early:
            changed &= complete
        kind = np.where(complete, FINAL_ROW, EARLY_ROW)
        kind[complete & ((stage == COMPLETE) | (stage == RETRACTED))] = UPDATE_ROW
        revision = np.where(known, self.revision[at] + 1, 0) if len(self) else np.zeros_like(row)
        gone = np.zeros(0, dtype=np.int64)
        if scope is not None and len(self):
            present = np.zeros(len(self), dtype=np.bool_)
            present[row[known]] = True
            gone = np.flatnonzero(scope & ~present & (self.stage != RETRACTED))
        emit = np.flatnonzero(changed)
        return replace(self, complete_at=complete_at), Decision(emit, kind[emit], revision[emit], gone)

    def retracted(self, gone: Column) -> EmittedWindows:
        """These rows were retracted; their revisions go on if they ever return."""
        stage, revision = self.stage.copy(), self.revision.copy()
        stage[gone] = RETRACTED
        revision[gone] += 1
        return replace(self, stage=stage, revision=revision)

    def recorded(
        self, new: Candidates, revision: Column, watermark: int, values: pa.Table | None
    ) -> EmittedWindows:
        """These windows were emitted."""
        row = self.find(new)
        again = row[row >= 0]
        stays: Mask | slice = slice(None)
        if len(again):
            stays = np.ones(len(self), dtype=np.bool_)
            stays[again] = False
        stage = np.where(new.complete_at <= watermark, COMPLETE, EARLY)
        fresh = {"revision": revision, "stage": stage}
        if values is not None and self.values is not None:
            old_values = self.values if isinstance(stays, slice) else self.values.filter(pa.array(stays))
            values = pa.concat_tables([old_values, values])
        columns = {}
        for name in self.SCHEMA.columns:
            added = fresh[name] if name in fresh else getattr(new, name)
            old = getattr(self, name)[stays]
            columns[name] = np.concatenate([old, added]) if len(old) else np.asarray(added).copy()
        return EmittedWindows(**columns, values=self.values if values is None else values.combine_chunks())

    def since(self, final: int) -> EmittedWindows:
        """The rows that have not expired; those due at `final` itself may be cut once more."""
        stays = self.complete_at >= final
        return self if stays.all() else self.take(stays)


def repeated_rows(columns: list[Column]) -> tuple[Column, Column]:
    """The sorted order of rows, and the positions in it whose row equals the next one."""
    order = np.lexsort(columns)
    same = np.ones(len(order) - 1, dtype=np.bool_)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    return order, np.flatnonzero(same)
