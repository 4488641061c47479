"""Count windows: the measure is the tuple's rank within its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.windows.arguments import constructor
from muntin.windows.base import Context, Ints, Window
from muntin.windows.context_checks import KeyPositions
from muntin.windows.grids import integer_ranges
from muntin.windows.kernel_arguments import arrays, cuts_of_rows, matrix
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import flag, whole_number

if TYPE_CHECKING:
    from muntin.windows import count_kernels
else:
    count_kernels = DeferredImport("muntin.windows.count_kernels")


@dataclass(frozen=True, slots=True)
class Count(TupleDriven):
    """The tuples of ranks [k * every, k * every + n), for k = 0, 1, ...; `low` and `high` are these ranks.

    A window ends with its n-th tuple. One that never filled is not emitted, unless
    `emit_partial`.

    >>> window = Count(2, every=1)
    >>> window.cut(window.initial(1), Tuples.of([10, 20, 30]), upto=100).intervals()
    [(10, 21), (20, 31)]
    """

    n: int
    every: int
    emit_partial: bool = False

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "count"
    counts_tuples: ClassVar[bool] = True
    context_fields: ClassVar[tuple[str, ...]] = ("base", "seen", "last")

    def __post_init__(self) -> None:
        n = whole_number(self.n, "n")
        self._settle(n=n, every=whole_number(self.every, "every", cure="leave it out to tumble"))
        flag(self.emit_partial, "emit_partial")

    def describe(self) -> str:
        every = f" every {self.every}" if self.every != self.n else ""
        return self._described(f"count {self.n}{every}")

    def parameters(self) -> dict[str, object]:
        given = Window.parameters(self)
        return {name: value for name, value in given.items() if name != "every" or value != self.n}

    def slices_per_window(self, rate: float) -> float:
        # Where they do not tile, slices begin at their begins and at their ends.
        return self.n / self.every * (1 if self.n % self.every == 0 else 2)

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows, opened = count_kernels.count_windows(
            *arrays(tuples), matrix(contexts), self.n, self.every, ending.closing and ending.partial
        )
        low = rows[1] - contexts["base"][rows[0]]
        return cuts_of_rows(rows, np.stack([low, low + self.n]), opened)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        base, first, _ = self._open(contexts, seen)
        needed: Ints = np.minimum(base + first * self.every, seen)
        return needed

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        base, first, last = self._open(contexts, seen)
        key = np.repeat(np.arange(len(seen)), np.maximum(last - first + 1, 0))
        return key, base[key] + integer_ranges(first, last) * self.every

    def _open(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints, Ints]:
        """The first rank of each key, and the numbers of its first and last open window."""
        base = np.where(contexts["base"] < 0, seen, contexts["base"])
        first = np.maximum((seen - base - self.n) // self.every + 1, 0)
        return base, first, (seen - base - 1) // self.every

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        known = contexts["base"] >= 0
        counted = np.where(
            known, contexts["base"] + contexts["seen"] == positions.rank, contexts["seen"] == 0
        )
        return TupleDriven.contexts_fit(self, contexts, positions) and bool(counted.all())


@constructor
def count(n: int, every: int | None = None, *, emit_partial: bool = False) -> Count:
    """Windows of n tuples of a key, by rank; a new one starts every `every` tuples.

    >>> count(100, every=10).describe()
    'count 100 every 10'
    """
    return Count(n, n if every is None else every, emit_partial)
