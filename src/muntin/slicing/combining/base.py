"""Combiners: each combines the slices of a table into one row of partial aggregates per window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from muntin.errors import UserCodeError
from muntin.slicing.combining.slice_range_kernels import walk
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.slice_table import SliceTable
from muntin.timeline import NEG_INF

Column = npt.NDArray[np.int64]

WALKED_COMBINES = 512
"""Up to this many combines, walking over slices costs less than the setup of any store."""


@dataclass(slots=True)
class View:
    """Windows over slices: window j combines `rows[lo[j]:hi[j]]` of the table, all of one key.

    Without `rows`, positions are rows of the table. Slices that begin before `needed()` are in no window
    that is emitted later. `folds`: the number of times that slices of the table were joined.
    """

    table: SliceTable
    rows: Column | None
    number: Column
    key: Column
    lo: Column
    hi: Column
    needed: Callable[[], int] = lambda: NEG_INF
    folds: int = 0
    walked: int = field(init=False)
    """Combines per partial if each window is combined on its own."""
    reach: int = field(init=False)
    """Number of slices from the first slice of any window to the last."""

    def __post_init__(self) -> None:
        self.walked, self.reach = walk(self.lo, self.hi)

    def __len__(self) -> int:
        return len(self.lo)

    def between(self, begin: int, end: int) -> View:
        """The windows from one position to another."""
        number, key, lo, hi = (column[begin:end] for column in (self.number, self.key, self.lo, self.hi))
        return View(self.table, self.rows, number, key, lo, hi, self.needed, self.folds)

    def row(self, position: Column) -> Column:
        """The rows of the table at these positions."""
        return position if self.rows is None else self.rows[position]


class Combiner(ABC):
    """Combines slices into windows with one store.

    Partials are accessed only through `PartialSet`, whether columns of numbers or Python objects. Stores
    that persist between watermarks are derived from slices and never part of a snapshot.
    """

    serves_ranges = False
    """Whether what persists serves any range of slices, not only windows that move on."""

    @abstractmethod
    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        """One row for each window, and the number of combines."""

    def reset(self) -> None:  # noqa: B027  # most stores do not persist
        """Drop persistent stores: the next call builds them again."""

    @property
    def nbytes(self) -> int:
        """Bytes of persistent stores."""
        return 0


class WalkedWindows(Combiner):
    """Walks over the slices of each window: best for windows of few slices [scotty §3.4]."""

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        return partials.window(states, view.rows, view.lo, view.hi), view.walked * len(partials.partials)


class RebuiltOrWalked(Combiner):
    """A store that is built at each watermark, or a walk over slices where that is less work."""

    def __init__(self, store: Combiner) -> None:
        self._store, self._walk = store, WalkedWindows()

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        cheaper = self._walk if view.walked <= max(view.reach, WALKED_COMBINES) else self._store
        return cheaper.reduce(partials, states, view)


def combine(combiner: Combiner, partials: PartialSet, view: View) -> tuple[States, int]:
    """One row for each window, and the number of combines.

    Partials that grow with their tuples (collect, quantiles), and partials that need them, are always
    walked over: the inner nodes of a store would repeat the items of their slices.
    """
    states = view.table.states
    growing = () if partials.numeric else partials.growing(states)
    if isinstance(combiner, WalkedWindows) or (growing and all(growing)):
        return WalkedWindows().reduce(partials, states, view)
    try:
        if not any(growing):
            return combiner.reduce(partials, states, view)
        chosen = [i for i, grows in enumerate(growing) if not grows]
        reduced, combines = combiner.reduce(partials.select(chosen), tuple(states[i] for i in chosen), view)
    except BaseException as error:
        combiner.reset()
        if not isinstance(error, UserCodeError):
            raise
        # A store may combine slices that no window combines, and a user's `combine` may fail on those.
        # The walk combines only slices of one window, so its errors are those of windows.
        return WalkedWindows().reduce(partials, states, view)
    done = dict(zip(chosen, reduced, strict=True))
    for i, (partial, needs) in enumerate(zip(partials.partials, partials.needs, strict=True)):
        if growing[i]:
            before, after = tuple(states[n] for n in needs), tuple(done[n] for n in needs)
            done[i] = partial.window(states[i], view.rows, view.lo, view.hi, before, after)
            combines += view.walked
    return tuple(done[i] for i in range(len(growing))), combines
