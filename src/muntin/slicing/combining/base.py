"""What a store does in the operator: one row of partials for each window, from the slices of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from muntin.errors import UserCodeError
from muntin.slicing.combining.walking_kernels import walk
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.slice_table import SliceTable
from muntin.timeline import NEG_INF

Column = npt.NDArray[np.int64]

_FEW = 512
"""So many combines take less time than to begin with anything else."""


@dataclass(slots=True)
class View:
    """Windows over slices: window j combines `rows[lo[j]:hi[j]]` of the table, all of one key.

    Without `rows` the table's own order counts. Slices that begin before `needed()` are in no window
    that comes out later. `folds`: how often slices of the table were joined so far.
    """

    table: SliceTable
    rows: Column | None
    query: Column
    key: Column
    lo: Column
    hi: Column
    needed: Callable[[], int] = lambda: NEG_INF
    folds: int = 0
    walked: int = field(init=False)
    """Combines per partial if each window is combined by itself."""
    reach: int = field(init=False)
    """How many slices lie from the first that a window has to the last."""

    def __post_init__(self) -> None:
        self.walked, self.reach = walk(self.lo, self.hi)

    def __len__(self) -> int:
        return len(self.lo)

    def between(self, begin: int, end: int) -> View:
        """The windows from one position to another."""
        query, key, lo, hi = (column[begin:end] for column in (self.query, self.key, self.lo, self.hi))
        return View(self.table, self.rows, query, key, lo, hi, self.needed, self.folds)

    def row(self, position: Column) -> Column:
        """The rows of the table at these positions."""
        return position if self.rows is None else self.rows[position]


class Combiner(ABC):
    """A store over the slices of an operator.

    It sees partials only through `PartialSet`: columns of numbers and Python objects alike. What it
    keeps from one watermark to the next is derived from slices and never part of a snapshot.
    """

    @abstractmethod
    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        """One row for each window, and how often two partials were combined for that."""

    def reset(self) -> None:  # noqa: B027  # most stores keep nothing
        """Forget what was kept: the next call builds it anew."""

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return 0


class WalkedWindows(Combiner):
    """Walks over the slices of each window: best where they are few, as in [scotty §3.4]."""

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        return partials.window(states, view.rows, view.lo, view.hi), view.walked * len(partials.partials)


class Either(Combiner):
    """A store that keeps nothing, or none where the windows are so few that walking is less work."""

    def __init__(self, store: Combiner) -> None:
        self._store, self._lazy = store, WalkedWindows()

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        quicker = self._lazy if view.walked <= max(view.reach, _FEW) else self._store
        return quicker.reduce(partials, states, view)


def combine(combiner: Combiner, partials: PartialSet, view: View) -> tuple[States, int]:
    """One row for each window, and how many combines that took.

    Partials that grow with their tuples (collect, quantiles), and what needs them, are walked over
    whatever the store is: sums of many slices would hold their items again and again.
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
        # A store may combine slices that no window joins alone, and the user's combine may refuse
        # that. Without a store, what fails is what a window needs.
        return WalkedWindows().reduce(partials, states, view)
    done = dict(zip(chosen, reduced, strict=True))
    for i, (partial, needs) in enumerate(zip(partials.partials, partials.needs, strict=True)):
        if growing[i]:
            before, after = tuple(states[n] for n in needs), tuple(done[n] for n in needs)
            done[i] = partial.window(states[i], view.rows, view.lo, view.hi, before, after)
            combines += view.walked
    return tuple(done[i] for i in range(len(growing))), combines


def assemble(
    partials: PartialSet, states: States, view: View, served: Column, found: States
) -> tuple[States, int]:
    """`found` for the windows `served`; the others are combined by themselves."""
    if len(served) == len(view):
        place = np.empty(len(view), dtype=np.int64)
        place[served] = np.arange(len(view))
        return partials.take(found, place), 0
    others = np.setdiff1d(np.arange(len(view)), served)
    lo, hi = view.lo[others], view.hi[others]
    rest = partials.reduce(states, view.rows, lo, hi)
    place = np.empty(len(view), dtype=np.int64)
    place[np.concatenate([served, others])] = np.arange(len(view))
    combines = int(np.maximum(hi - lo - 1, 0).sum()) * len(partials.partials)
    return partials.take(partials.concat([found, rest]), place), combines
