"""All that an operator knows between two steps, as one value: a header of plain values, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import PlacedError
from muntin.metrics import Metrics
from muntin.slicing.emission.changes import ComparedWindows
from muntin.slicing.emission.emitted_windows import EmittedWindows
from muntin.slicing.emission.key_extents import KeyExtents
from muntin.slicing.keys import KeyTable
from muntin.slicing.schema import Change, Table
from muntin.slicing.tuple_state import TupleState
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.combining.base import Combiner
    from muntin.slicing.late_tuples import LateTuples
    from muntin.slicing.side_outputs import LateOutput
    from muntin.slicing.slice_table import SliceTable

__all__ = ["Header", "State"]

Column = npt.NDArray[np.int64]
NOTHING_COMPARED = ComparedWindows()


class Header:
    """The plain values of a state; all that there is before the types of the input are known."""

    def __init__(self) -> None:
        self.watermark = NEG_INF
        """Every tuple before it has been seen."""
        self.newest = NEG_INF
        """The newest time of any tuple that is not too late for all windows."""
        self.retained_from = NEG_INF
        """Slices from this time on are complete: no tuple of them was dropped or folded."""
        self.has_late_change = False
        """Whether a tuple at or before the watermark was added since windows were last emitted."""
        self.arrivals = 0
        """The number of tuples that have arrived, which orders tuples of one time."""
        self.metrics = Metrics()
        self.late_counts: dict[str, int] = {}
        """For each window the number of tuples that were late for it."""
        self.bad_output: tuple[pa.Table, ...] = ()
        """Bad tuples that were not taken yet, where they are routed."""
        self.late_output: tuple[LateOutput, ...] = ()
        """Late tuples that were not taken yet, where they are routed."""

    def draft(self) -> Self:
        """A copy for a step to change."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.metrics = self.metrics.copy()
        return new

    def is_quiet(self, watermark: int) -> bool:
        """Whether moving to this watermark emits and changes nothing; unknown without the tables."""
        return False


class State(Header):
    """The state of an operator. A step changes a draft of it, and leaves the state itself as it was.

    A draft shares all tables and arrays with its state; a step replaces them and writes to none. Arrays
    of tuples are copied before they are written to (`TupleState.own`).
    """

    def __init__(self, plan: BoundPlan, header: Header | None = None) -> None:
        super().__init__()
        if header is not None:
            self.__dict__.update(header.__dict__)
        self.keys = KeyTable(plan.binding.keys)
        self.key_count = 1
        """The number of keys that tables refer to; at least 1."""
        self.slices: SliceTable = plan.no_slices
        self.late_tuples: tuple[LateTuples, ...] = ()
        """Tuples before the final time, which the next watermark judges per window."""
        self.tuples: TupleState | None = TupleState() if plan.served.tuple_driven else None
        self.emitted: dict[str, EmittedWindows] = {}
        """Emitted windows that may still change."""
        self.compared = NOTHING_COMPARED
        """Windows whose values later ones are compared with, where only changes are emitted."""
        self.extents: dict[str, KeyExtents] = {}
        """For windows that are emitted empty: the times between which each key has tuples."""
        # What follows is derived, and no part of a snapshot.
        self.store: Combiner | None = None
        """Combines slices into windows, once a window has needed that."""
        self.folds = 0
        """How often slices were joined because no edge between them was needed any more."""
        self.fold_above = 64
        """The number of slices at which the next fold is worth its cost."""
        self.evict_above = 0
        """The number of slices at which the next eviction is worth its cost."""
        self.compact_above = 1024
        """The number of keys at which the next compaction is worth its cost."""
        self.quiet_until = NEG_INF
        """No smaller watermark emits or changes anything, as long as no late tuple arrives."""
        self.failed: list[PlacedError] = []
        """Errors that were skipped in this step."""

    def draft(self) -> Self:
        new = super().draft()
        new.keys, new.failed = self.keys.draft(), []
        if self.tuples is not None:
            new.tuples = self.tuples.draft()
        return new

    def combiner(self, plan: BoundPlan) -> Combiner:
        """The store that combines slices into windows."""
        if self.store is None:
            self.store = plan.new_store()
        return self.store

    def reset_store(self) -> None:
        """Let the store forget the slices that it follows."""
        if self.store is not None:
            self.store.reset()

    def drop_slices(self, plan: BoundPlan) -> None:
        """Drop all slices: no window that is emitted later needs one."""
        self.retained_from = max(self.retained_from, self.newest + 1)
        self.slices = plan.no_slices

    def is_quiet(self, watermark: int) -> bool:
        return watermark < self.quiet_until and not self.late_tuples

    @property
    def newest_late(self) -> int:
        """The time of the newest tuple that waits to be judged."""
        return max((int(late.rows.last.max()) for late in self.late_tuples), default=NEG_INF)

    def tables(self, plan: BoundPlan) -> Iterator[tuple[str, Table]]:
        """All tables with their names."""
        yield "slices", self.slices
        for i, late in enumerate(self.late_tuples):
            yield f"late/{i}", late.rows
            if late.raw is not None:
                yield f"late_raw/{i}", late.raw
        if self.tuples is not None:
            yield from self.tuples.tables(plan.binding.inputs)
        yield from ((f"emitted/{name}", table) for name, table in self.emitted.items())
        if len(self.compared):
            yield "compared", self.compared
        yield from ((f"extents/{name}", table) for name, table in self.extents.items())

    def change_tables(self, change: Change) -> None:
        """Replace all tables."""
        self.slices = change(self.slices)
        self.late_tuples = tuple(late.changed(change) for late in self.late_tuples)
        if self.tuples is not None:
            self.tuples.change_tables(change)
        self.emitted = {name: change(table) for name, table in self.emitted.items()}
        self.compared = change(self.compared)
        self.extents = {name: change(table) for name, table in self.extents.items()}

    def nbytes(self, plan: BoundPlan) -> int:
        """Bytes of all tables, keys and the store."""
        stored = 0 if self.store is None else self.store.nbytes
        return sum(table.nbytes for _, table in self.tables(plan)) + self.keys.nbytes + stored

    def oldest(self) -> Column:
        """Per key the time of its oldest tuple; INF if there is none."""
        times = [(self.slices.key, self.slices.first)]
        if self.tuples is not None:
            times += [(batch.key, batch.time) for batch in self.tuples.batches()]
        oldest = np.full(self.key_count, INF, dtype=np.int64)
        for key, time in times:
            np.minimum.at(oldest, key, time)
        return oldest
