"""Emission of windows again: updates of values that changed, and retractions of windows that vanished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.emitted_windows import (
    FINAL_ROW,
    IDENTITY,
    RETRACT_ROW,
    UPDATE_ROW,
    Candidates,
    EmittedWindows,
)
from muntin.slicing.emission.listing import ALL_ROWS, Listing
from muntin.slicing.listing_kernels import sum_ranges
from muntin.slicing.served import ServedWindow

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["contents", "reconcile", "update"]

Column = npt.NDArray[np.int64]


def update(state: State, served: ServedWindow, listing: Listing) -> Emission:
    """Emit changed instances of a window that remembers only revisions: others were emitted if not empty."""
    new, fresh = contents(state, listing)
    known = state.emitted.get(served.name, EmittedWindows())
    row = known.find(new)
    was_emitted = new.n > fresh
    revision = np.where(row >= 0, known.revision[row], 0) if len(known) else 0
    kind = np.where(was_emitted, UPDATE_ROW, FINAL_ROW)
    return Emission(listing, kind, np.where(was_emitted, revision + 1, 0), remember=(served, new))


def reconcile(
    plan: BoundPlan,
    state: State,
    served: ServedWindow,
    listing: Listing,
    scope_from: int | None = None,
    early: bool = False,
) -> list[Emission]:
    """Emit the difference to the windows that were emitted before; open windows only when `early`.

    With `scope_from`, the listing is complete: emitted windows due later and not in it are retracted.
    """
    known = state.emitted.get(served.name, EmittedWindows())
    scope = None
    if scope_from is not None:
        scope = known.complete_at > scope_from
        # Cut again from tuples, windows appear that were emitted, expired and forgotten.
        listing = listing.take(listing.complete_at >= scope_from)
    new, _ = contents(state, listing)
    known, decision = known.decide(new, state.watermark, scope, early, scope_from)
    emissions = []
    if len(decision.gone):
        known = known.retracted(decision.gone)
        emissions.append(_retraction(plan, state, served, known, decision.gone))
    state.emitted = state.emitted | {served.name: known}
    if len(decision.emit):
        chosen, remember = listing.take(decision.emit), (served, new.take(decision.emit))
        emissions.append(Emission(chosen, decision.kind, decision.revision, remember=remember))
    return emissions


def _retraction(
    plan: BoundPlan, state: State, served: ServedWindow, known: EmittedWindows, gone: Column
) -> Emission:
    assert known.values is not None
    # Windows with the same edges in the order of their tuples, as they were emitted.
    gone = gone[np.lexsort([getattr(known, c)[gone] for c in IDENTITY])]
    values = known.values.take(pa.array(gone))
    # Copied: Arrow's memory is read-only, and kernels are compiled for writable arrays.
    start, end = (values.column(c).to_numpy().copy() for c in ("start", "end"))
    low, high = (known.a[gone], known.b[gone]) if served.window.on_measure else (None, None)
    none = np.zeros(len(gone), dtype=np.int64)
    windows = Listing(
        none + plan.served.number(served), known.key[gone], start, end, known.complete_at[gone], none, none,
        ALL_ROWS, low, high, known.ordinal[gone], life=known.life[gone],
    )  # fmt: skip
    columns = [c.combine_chunks() for c in values.drop_columns(["start", "end"]).columns]
    state.metrics.retractions += len(gone)
    return Emission(windows, none + RETRACT_ROW, known.revision[gone], columns)


def contents(state: State, listing: Listing) -> tuple[Candidates, Column]:
    """Identity and content of each window, and how many of its tuples are fresh."""
    table = state.slices
    n, fresh, mark = (np.empty(len(listing), dtype=np.int64) for _ in range(3))
    sum_ranges(listing.rows, listing.lo, listing.hi, table.n, table.fresh, table.mark, n, fresh, mark)
    on_time = listing.low is None
    a, b = (listing.start, listing.end) if on_time else (listing.low, listing.high)
    if not on_time:
        # Identified by its edges on the measure, a window also changes when it moves in time.
        mark = mark + listing.start * 0x51_7C_C1 + listing.end * 0x27_22_0A_95
    none = np.zeros(len(listing), dtype=np.int64)
    life = none if listing.life is None else listing.life
    ordinal = none if listing.ordinal is None else listing.ordinal
    return Candidates(listing.key, life, a, b, ordinal, n, mark, listing.complete_at), fresh
