"""Deferred combines: stores combine references to partials; all combines are then executed at once."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.combine_schedule_kernels import schedule
from muntin.slicing.combining.scanning import join, scan
from muntin.slicing.partials import PartialSet, States
from muntin.stores import monoid

Column = npt.NDArray[np.int64]
PartialRef: TypeAlias = "tuple[int, DeferredCombines]"

LEVELS_WITHOUT_SCANS = 16
"""Up to this many levels of dependent combines, executing them one by one is faster than scans."""

BY_REFERENCE = monoid(lambda p, q: p[1].defer(p[0], q[0]), name="deferred")
"""The monoid of a store of references: combining two of them gives a reference to the future result."""


class DeferredCombines:
    """Rows of partials, numbered in the order of their insertion, and combines yet to be executed.

    A store of `muntin.stores` runs over these numbers instead of partials. It decides which partials are
    combined; `execute` then combines whole columns, independent combines in one call.
    """

    def __init__(self, partials: PartialSet) -> None:
        self.partials = partials
        self.size = 0
        self._chunks: list[States] = []
        self._starts: list[int] = []
        self._left: list[int] = []
        self._right: list[int] = []

    def defer(self, p: int, q: int) -> PartialRef:
        """A reference to the combination of rows p and q, which `execute` computes."""
        self._left.append(p)
        self._right.append(q)
        return self.size + len(self._left) - 1, self

    def add(self, states: States, count: int) -> list[PartialRef]:
        """Append rows and return references to them; no combines may be pending."""
        self._append(states, count)
        return [(number, self) for number in range(self.size - count, self.size)]

    def _append(self, states: States, count: int) -> None:
        """Each chunk is at least twice as long as the next, so that each row is copied O(log n) times."""
        if not count:
            return
        start = self.size
        while self._starts and start - self._starts[-1] <= 2 * (self.size + count - start):
            start = self._starts.pop()
            states = self.partials.concat([self._chunks.pop(), states])
        self._chunks.append(states)
        self._starts.append(start)
        self.size += count

    def gather(self, numbers: Column) -> States:
        """The rows with these numbers."""
        starts = np.array(self._starts, dtype=np.int64)
        chunk = np.searchsorted(starts, numbers, side="right") - 1
        if (chunk == chunk[:1]).all():
            only = int(chunk[0])
            return self.partials.take(self._chunks[only], numbers - starts[only])
        used = np.unique(chunk)
        gathered = [
            self.partials.take(self._chunks[c], numbers[chunk == c] - starts[c]) for c in used.tolist()
        ]
        place = np.empty(len(numbers), dtype=np.int64)
        place[np.argsort(chunk, kind="stable")] = np.arange(len(numbers))
        return self.partials.take(self.partials.concat(gathered), place)

    def execute(self) -> int:
        """Execute the deferred combines; returns their number per partial."""
        count = len(self._left)
        if not count:
            return 0
        left, right = (np.array(side, dtype=np.int64) for side in (self._left, self._right))
        self._left, self._right = [], []
        rows, combines = _Execution(self, left, right).run()
        self._append(rows, count)
        return combines

    def retain(self, numbers: Column) -> dict[int, PartialRef]:
        """Drop all rows but these; returns a reference for each old number."""
        retained = self.gather(numbers)
        self._chunks, self._starts, self.size = [], [], 0
        self._append(retained, len(numbers))
        return {number: (new, self) for new, number in enumerate(numbers.tolist())}

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(self.partials.nbytes(chunk) for chunk in self._chunks)


class _Execution:
    """Executes deferred combines level by level: those of a level do not depend on each other."""

    def __init__(self, deferred: DeferredCombines, left: Column, right: Column) -> None:
        self.partials, self.size = deferred.partials, deferred.size
        both = np.concatenate([left, right])
        known = np.unique(both[both < deferred.size])
        self.rows = deferred.gather(known)
        self.used = len(known)
        self.place = np.empty(len(left), dtype=np.int64)
        self.known = known
        self.left, self.right = left, right
        plan = schedule(left, right, deferred.size, False)
        if plan[0].max() > LEVELS_WITHOUT_SCANS:
            plan = schedule(left, right, deferred.size, True)
        self.level, self.chain, self.turned = plan

    def run(self) -> tuple[States, int]:
        order = np.lexsort((self.chain, self.level))  # stable: the order within each chain remains
        bounds = np.flatnonzero(np.diff(self.level[order], prepend=-1, append=-1))
        combines = sum(
            self._step(order[a:b]) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        )
        return self.partials.take(self.rows, self.place), combines

    def _step(self, operations: Column) -> int:
        """Execute the combines of a level; returns their number."""
        left, right = self._rows(self.left[operations]), self._rows(self.right[operations])
        if (self.chain[operations] == operations).all():
            sums, combines = join(self.partials, self.rows, left, right), len(operations)
        else:
            sums, combines = self._chains(self.chain[operations], left, right)
        self.rows = self.partials.concat([self.rows, sums])
        self.place[operations] = self.used + np.arange(len(operations))
        self.used += len(operations)
        return combines

    def _chains(self, chain: Column, left: Column, right: Column) -> tuple[States, int]:
        """Chains of combines, each x0 * x1 * x2 ... with all its intermediate results."""
        heads = np.flatnonzero(np.diff(chain, prepend=-1))
        turned = self.turned[chain[heads]]
        along = np.repeat(turned, np.diff([*heads, len(chain)]))
        sequence = np.insert(np.where(along, left, right), heads, np.where(turned, right[heads], left[heads]))
        offsets = np.append(heads + np.arange(len(heads)), len(sequence))
        sums, combines = scan(self.partials, self.partials.take(self.rows, sequence), offsets, turned)
        results = np.delete(np.arange(len(sequence)), offsets[:-1])
        return self.partials.take(sums, results), combines

    def _rows(self, numbers: Column) -> Column:
        done = numbers >= self.size
        place = np.searchsorted(self.known, numbers)
        place[done] = self.place[numbers[done] - self.size]
        return place
