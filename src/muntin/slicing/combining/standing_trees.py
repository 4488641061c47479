"""FlatFAT over slices: a tree for each key, which persists between watermarks and follows the table."""

from __future__ import annotations

from itertools import count

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Partial
from muntin.aggregates.partials.columns import NumericPartial
from muntin.aggregates.partials.step_codes import FLOAT_SUM, INTEGER_SUM, NONE
from muntin.slicing.combining.base import Combiner, View, WalkedWindows
from muntin.slicing.combining.standing_tree_kernels import (
    CHANGED,
    COMBINES,
    LEAST_ROOM,
    follow,
    serve,
)
from muntin.slicing.partials import PartialSet, States

Column = npt.NDArray[np.int64]

FIXED_COST, WINDOW_COST, ROW_COST = 16_384, 150, 5
"""The costs of trees: per watermark, per window, and per row that is compared. The unit is one combine of
sums in a walk, slice by slice (measured: 20 µs, 0.2 µs and 7 ns, where such a combine takes 1.3 ns)."""
FAST = 16
"""A walk combines counts and extremes this many times as fast as sums."""

_numbers = count(1)


class StandingTrees(Combiner):
    """Binary trees over the slices of each key, in arrays that all keys share [reactive §4].

    The partials of a slice and of a node are 64-bit words, so one compiled call updates all trees with the
    slices that changed and combines all windows, of whatever lengths, in 2 log2(n) combines each. A slice
    that changes costs log2(n), a new one 1 on average. A slice that is inserted before others moves those
    behind it. Rows that have not changed since the last call are not read again (`SliceTable.seen`).

    `others` combines partials that have no words. Unless `forced`, it walks where that is less work.
    `exact`: sums of floats go to `others` too, since their last digits depend on the shape of a tree.
    """

    serves_ranges = True

    def __init__(self, others: Combiner, forced: bool = False, exact: bool = False) -> None:
        self._others, self._walk, self._forced, self._exact = others, WalkedWindows(), forced, exact
        self.reset()

    def reset(self) -> None:
        self._others.reset()
        self._partials: tuple[Partial, ...] = ()
        self._codes: Column | None = None
        self._folds = -1
        self._serial = -1
        self._walked = 0
        self._clear(0, 0, 0)

    def _clear(self, keys: int, leaves: int, width: int) -> None:
        """Drop all trees, and make room for this number of keys and leaves."""
        self._regions = np.zeros((keys, 5), dtype=np.int64)
        self._identity = np.empty((3, leaves), dtype=np.int64)
        self._nodes = np.empty((2 * leaves, width), dtype=np.int64)
        self._counters = np.zeros(3, dtype=np.int64)
        self._changes = np.empty((2, leaves), dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return int(self._regions.nbytes + self._identity.nbytes + self._nodes.nbytes) + self._others.nbytes

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        if self._folds != view.folds or self._partials != partials.partials:
            # A new slice may have the start and the size of one that was joined to another.
            self.reset()
            self._partials, self._folds = partials.partials, view.folds
            self._codes = self._codes_of(partials.partials)
        if self._codes is None or not len(view):
            return self._others.reduce(partials, states, view)
        if not self._forced and self._walk_cost(view) < self._tree_cost(view):
            self._walked += self._walk_cost(view)
            return self._walk.reduce(partials, states, view)
        lo, hi = view.lo, view.hi
        if view.rows is not None:
            full = hi > lo
            lo, hi = (
                np.where(full, view.rows[np.where(full, lo, 0)], 0),
                np.where(full, view.rows[np.where(full, hi, 1) - 1] + 1, 0),
            )
            if not np.array_equal(hi - lo, np.maximum(view.hi - view.lo, 0)):
                return self._others.reduce(partials, states, view)  # some window omits slices
        words = self._combined(self._codes, partials, states, view, lo, hi)
        if words is None:
            self.reset()
            return self._walk.reduce(partials, states, view)  # raises the error that names the window
        combines, self._counters[COMBINES] = int(self._counters[COMBINES]), 0
        return partials.from_words(words.T.copy()), combines * len(partials.partials)

    def _codes_of(self, partials: tuple[Partial, ...]) -> Column | None:
        """The codes of these partials; None where `others` combines them."""
        codes = [p.step_code if isinstance(p, NumericPartial) else NONE for p in partials]
        if NONE in codes or (self._exact and FLOAT_SUM in codes):
            return None
        return np.array(codes, dtype=np.int64)

    def _walk_cost(self, view: View) -> int:
        """The cost of a walk, in combines of sums."""
        assert self._codes is not None
        sums = int(((self._codes == INTEGER_SUM) | (self._codes == FLOAT_SUM)).sum())
        return view.walked * (FAST * sums + len(self._codes) - sums) // FAST

    def _tree_cost(self, view: View) -> int:
        """The cost of comparing rows and combining nodes, in the same unit.

        A table that was not followed is compared once walks have cost as much as that. With many keys, a
        step inserts rows before others, and all are compared each time.
        """
        cost = FIXED_COST + WINDOW_COST * len(view)
        if len(view) and view.key[0] != view.key[-1]:
            return cost + ROW_COST * len(view.table)
        if view.table.seen[0] == self._serial:
            return cost
        return cost + max(0, ROW_COST * len(view.table) - self._walked)

    def _combined(
        self, codes: Column, partials: PartialSet, states: States, view: View, lo: Column, hi: Column
    ) -> Column | None:
        """The words of each window, one row each; None where a sum of integers exceeds its room."""
        table, key = view.table, view.key
        keys = key[:1] if key[0] == key[-1] and (key == key[0]).all() else np.unique(key)
        known, unchanged = table.seen
        serial = next(_numbers)
        if len(self._regions) <= keys[-1]:
            regions = np.zeros((max(2 * len(self._regions), int(keys[-1]) + 1), 5), dtype=np.int64)
            regions[: len(self._regions)] = self._regions
            self._regions = regions
        if self._changes.shape[1] < len(table):  # fresh pages would cost more than the rest
            self._changes = np.empty((2, 2 * len(table)), dtype=np.int64)
        rows, leaves = self._changes
        while not follow(
            self._regions, self._identity, self._counters, table.fixed, keys, known, unchanged, serial,
            rows, leaves,
        ):  # fmt: skip
            self._clear(len(self._regions), _room(table.key, keys), _width(partials))
        table.seen = (serial, len(table))
        self._serial, self._walked = serial, 0
        changed = int(self._counters[CHANGED])
        rows, leaves = rows[:changed], leaves[:changed]
        words = partials.to_words(partials.take(states, rows))
        out = np.empty((len(lo), words.shape[0]), dtype=np.int64)
        fits = serve(
            codes, self._regions, self._nodes, self._counters, keys, leaves, words, table.fixed, key, lo, hi,
            out,
        )  # fmt: skip
        return out if fits else None


def _room(key: Column, keys: Column) -> int:
    """The leaves of trees for the rows of these keys, and for some growth."""
    sizes = np.searchsorted(key, keys, side="right") - np.searchsorted(key, keys)
    rooms = np.maximum(LEAST_ROOM, 1 << np.ceil(np.log2(np.maximum(sizes + sizes // 4, 1))).astype(np.int64))
    return int(rooms.sum() + rooms.sum() // 4 + 2 * rooms.max())


def _width(partials: PartialSet) -> int:
    """The number of 64-bit words of all partials of a slice."""
    return sum(p.width for p in partials.partials if isinstance(p, NumericPartial))
