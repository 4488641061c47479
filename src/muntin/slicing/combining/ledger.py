"""Partials by number: what the stores combine is noted down, and then done for all of them at once."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.ledger_kernels import schedule
from muntin.slicing.combining.scanning import join, scan
from muntin.slicing.partials import PartialSet, States
from muntin.stores import monoid

Column = npt.NDArray[np.int64]
Numbered: TypeAlias = "tuple[int, Ledger]"

FEW_STEPS = 16
"""Up to here, steps one after the other are quicker than scans."""

NUMBERS = monoid(lambda p, q: p[1].note(p[0], q[0]), name="ledger")
"""The monoid of a store whose partials lie in a ledger: combining two of them gives the next number."""


class Ledger:
    """Rows of partials, known by the order in which they came.

    A store of `muntin.stores` runs over these numbers instead of partials. It decides what is
    combined with what; `settle` then combines the columns, whatever they hold, in a few steps.
    """

    def __init__(self, partials: PartialSet) -> None:
        self.partials = partials
        self.size = 0
        self._chunks: list[States] = []
        self._starts: list[int] = []
        self._left: list[int] = []
        self._right: list[int] = []

    def note(self, p: int, q: int) -> Numbered:
        """The number that the combination of p and q will have."""
        self._left.append(p)
        self._right.append(q)
        return self.size + len(self._left) - 1, self

    def add(self, states: States, count: int) -> list[Numbered]:
        """Take rows in; what was noted is settled."""
        self._append(states, count)
        return [(number, self) for number in range(self.size - count, self.size)]

    def _append(self, states: States, count: int) -> None:
        """Chunks at least double from the last to the first, so that each row moves O(log n) times."""
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
        """The rows of these numbers."""
        starts = np.array(self._starts, dtype=np.int64)
        chunk = np.searchsorted(starts, numbers, side="right") - 1
        used = np.unique(chunk)
        parts = [self.partials.take(self._chunks[c], numbers[chunk == c] - starts[c]) for c in used.tolist()]
        if len(parts) == 1:
            return parts[0]
        place = np.empty(len(numbers), dtype=np.int64)
        place[np.argsort(chunk, kind="stable")] = np.arange(len(numbers))
        return self.partials.take(self.partials.concat(parts), place)

    def settle(self) -> int:
        """Combine all that was noted; how much that was, a partial."""
        count = len(self._left)
        if not count:
            return 0
        left, right = (np.array(side, dtype=np.int64) for side in (self._left, self._right))
        self._left, self._right = [], []
        rows, combines = _Execution(self, left, right).run()
        self._append(rows, count)
        return combines

    def keep(self, numbers: Column) -> dict[int, Numbered]:
        """Drop all rows but these; returns their new numbers."""
        kept = self.gather(numbers)
        self._chunks, self._starts, self.size = [], [], 0
        self._append(kept, len(numbers))
        return {number: (new, self) for new, number in enumerate(numbers.tolist())}

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(self.partials.nbytes(chunk) for chunk in self._chunks)


class _Execution:
    """Does what was noted, all that can be done at the same time in one step."""

    def __init__(self, ledger: Ledger, left: Column, right: Column) -> None:
        self.partials, self.size = ledger.partials, ledger.size
        both = np.concatenate([left, right])
        known = np.unique(both[both < ledger.size])
        self.rows = ledger.gather(known)
        self.used = len(known)
        self.place = np.empty(len(left), dtype=np.int64)
        self.known = known
        self.left, self.right = left, right
        plan = schedule(left, right, ledger.size, False)
        if plan[0].max() > FEW_STEPS:
            plan = schedule(left, right, ledger.size, True)
        self.level, self.chain, self.turned = plan

    def run(self) -> tuple[States, int]:
        order = np.lexsort((self.chain, self.level))  # stable, so each chain stays in its order
        bounds = np.flatnonzero(np.diff(self.level[order], prepend=-1, append=-1))
        combines = sum(
            self._step(order[a:b]) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        )
        return self.partials.take(self.rows, self.place), combines

    def _step(self, operations: Column) -> int:
        """All combinations of a level."""
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
        """Chains of combinations, each x0 * x1 * x2 ... with all its intermediate results."""
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
