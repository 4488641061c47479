"""What was emitted and may still change: revisions, and the values that a retraction repeats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.schema import Role, Schema, Table, no_rows

Column = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

EARLY, COMPLETE, RETRACTED = 0, 1, 2
"""Stages of an emitted window."""

FINAL_ROW, EARLY_ROW, UPDATE_ROW, RETRACT_ROW = 0, 1, 2, 3
KINDS = pa.array(["final", "early", "update", "retract"])
"""Kinds of result rows, by code."""

COUNT, KEY, VALUE = Role.COUNT, Role.KEY, Role.VALUE


@dataclass(slots=True)
class Candidates:
    """Windows that may have to be emitted: identity, content (n, mark), and when due.

    The identity is the key, its life (see `Closed`) and the edges (a, b); `ordinal` tells equal ones apart.
    """

    key: Column
    life: Column
    a: Column
    b: Column
    ordinal: Column
    n: Column
    mark: Column
    due: Column

    def take(self, index: Column) -> Candidates:
        """The candidates at these positions."""
        names = ("key", "life", "a", "b", "ordinal", "n", "mark", "due")
        return Candidates(*(getattr(self, c)[index] for c in names))


@dataclass(slots=True)
class Decision:
    """Which candidates to emit and how; which emitted windows are no more."""

    emit: Column
    kind: Column
    revision: Column
    gone: Column


@dataclass(slots=True)
class Registry(Table):
    """Emitted windows of one query that have not expired, unordered; one entry per identity.

    `values` are those of windows that may be retracted, row by row.
    """

    SCHEMA: ClassVar[Schema] = Schema(
        {
            "a": VALUE, "b": VALUE, "key": KEY, "life": Role.MOMENT, "ordinal": COUNT, "n": COUNT,
            "mark": Role.ANY, "due": Role.EDGE, "revision": COUNT, "stage": Role.STAGE,
        }
    )  # fmt: skip

    a: Column = field(default_factory=no_rows)
    b: Column = field(default_factory=no_rows)
    key: Column = field(default_factory=no_rows)
    life: Column = field(default_factory=no_rows)
    ordinal: Column = field(default_factory=no_rows)
    n: Column = field(default_factory=no_rows)
    mark: Column = field(default_factory=no_rows)
    due: Column = field(default_factory=no_rows)
    revision: Column = field(default_factory=no_rows)
    stage: Column = field(default_factory=no_rows)
    values: pa.Table | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the columns and the values."""
        columns = sum(int(column.nbytes) for column in self.columns.values())
        return columns + (0 if self.values is None else int(self.values.nbytes))

    def find(self, new: Candidates) -> Column:
        """Position of each candidate's identity among the entries, -1 where it is new."""
        found = np.full(len(new.key), -1, dtype=np.int64)
        if not len(self) or not len(found):
            return found
        names = ("ordinal", "b", "a", "life", "key")
        columns = [np.concatenate([getattr(self, c), getattr(new, c)]) for c in names]
        order = np.lexsort(columns)
        same = np.ones(len(order) - 1, dtype=np.bool_)
        for column in columns:
            same &= column[order[1:]] == column[order[:-1]]
        # Entries precede equal candidates, since the sort is stable.
        hits = np.flatnonzero(same)
        found[order[hits + 1] - len(self)] = order[hits]
        return found

    def decide(
        self, new: Candidates, watermark: int, scope: Mask | None, early: bool, frozen: int | None = None
    ) -> Decision:
        """Compare the windows as they are now with what was emitted.

        `scope` marks the entries that `new` speaks of: those in it and not in `new` are gone.
        Windows that are not complete are emitted only when `early`. A late tuple may close an
        emitted window earlier without changing what it holds: entries take over when it is due now.
        What was complete and due by `frozen` when it was last looked at has expired: it stays as it was
        emitted, wherever its end lies now.
        """
        found = self.find(new)
        known = found >= 0
        at = np.maximum(found, 0)
        was_due, self.due = self.due, self.due.copy()
        self.due[found[known]] = new.due[known]
        complete = new.due <= watermark
        stage = np.where(known, self.stage[at], -1) if len(self) else np.full(len(found), -1)
        changed = ~known
        if len(self):
            other = (self.n[at] != new.n) | (self.mark[at] != new.mark)
            changed |= other | (stage == RETRACTED) | ((stage == EARLY) & complete)
        if frozen is not None and len(self):
            changed &= (stage != COMPLETE) | (was_due[at] > frozen)
        if not early:
            changed &= complete
        kind = np.where(complete, FINAL_ROW, EARLY_ROW)
        kind[complete & ((stage == COMPLETE) | (stage == RETRACTED))] = UPDATE_ROW
        revision = np.where(known, self.revision[at] + 1, 0) if len(self) else np.zeros_like(found)
        gone = np.zeros(0, dtype=np.int64)
        if scope is not None and len(self):
            present = np.zeros(len(self), dtype=np.bool_)
            present[found[known]] = True
            gone = np.flatnonzero(scope & ~present & (self.stage != RETRACTED))
        emit = np.flatnonzero(changed)
        return Decision(emit, kind[emit], revision[emit], gone)

    def retract(self, gone: Column) -> None:
        """These entries were taken back; their revisions go on if they ever return."""
        self.stage, self.revision = self.stage.copy(), self.revision.copy()
        self.stage[gone] = RETRACTED
        self.revision[gone] += 1

    def record(self, new: Candidates, revision: Column, watermark: int, values: pa.Table | None) -> None:
        """Remember what was emitted."""
        found = self.find(new)
        keep = np.ones(len(self), dtype=np.bool_)
        keep[found[found >= 0]] = False
        stage = np.where(new.due <= watermark, COMPLETE, EARLY)
        fresh = {"revision": revision, "stage": stage}
        if values is not None:
            kept = [] if self.values is None else [self.values.filter(pa.array(keep))]
            self.values = pa.concat_tables([*kept, values]).combine_chunks()
        for name in self.SCHEMA.columns:
            added = fresh[name] if name in fresh else getattr(new, name)
            old = getattr(self, name)[keep]
            setattr(self, name, np.concatenate([old, added]) if len(old) else np.asarray(added).copy())

    def forget(self, final: int) -> None:
        """Drop the entries that have expired; those due at `final` itself may be cut once more."""
        self._filter(self.due >= final)

    def _filter(self, keep: Mask) -> None:
        if keep.all():
            return
        for name in self.SCHEMA.columns:
            setattr(self, name, getattr(self, name)[keep])
        if self.values is not None:
            self.values = self.values.filter(pa.array(keep)).combine_chunks()
