"""Evenly spaced windows on another advancing measure: kilometres, invoice numbers.

A tuple's position is the largest value of the measure up to this tuple, in the
order of tuples: a tuple that lags counts at the position of the stream.
"""

from __future__ import annotations

from abc import abstractmethod
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.errors import DataError
from muntin.windows.base import Context, Ints
from muntin.windows.context_checks import KeyPositions
from muntin.windows.grids import EvenlySpaced, integer_ranges
from muntin.windows.kernel_arguments import arrays, cuts_of_rows, matrix, measure_values, needs, owned
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import fail

if TYPE_CHECKING:
    from muntin.windows import measured_kernels
else:
    measured_kernels = DeferredImport("muntin.windows.measured_kernels")


class EvenlySpacedOnMeasure(TupleDriven):
    """Evenly spaced windows on a measure; `low` and `high` are their edges on it.

    The edges are those of a window on whole units of the measure (`on_units`). A window starts with
    its first tuple, and ends at the time of the first one at `high` or beyond, which completes it.
    Open are the windows with the numbers oldest <= k < following.
    """

    __slots__ = ()

    context: ClassVar[Context] = Context.FORWARD_FREE
    context_fields: ClassVar[tuple[str, ...]] = ("seen", "position", "oldest", "following", "latest")

    @property
    @abstractmethod
    def on_units(self) -> tuple[EvenlySpaced, int]:
        """The same window on integers, and the number of units in 1 of the measure."""

    @property
    def distinct_begins(self) -> int:
        """The largest number of tuples that begin the open windows of a key."""
        return self.per_tuple

    @property
    def per_tuple(self) -> int:
        return self.on_units[0].per_tuple

    def slices_per_window(self, rate: float) -> float:
        return 2.0 * self.per_tuple

    def initial(self, n: int) -> Contexts:
        ring = ("begins", np.int64, (self.distinct_begins,))
        return np.zeros(n, [*((name, np.int64) for name in self.context_fields), ring])

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        units, dtype = self._units(contexts, tuples)
        window, scale = self.on_units
        rows, opened = measured_kernels.measured_windows(
            *arrays(tuples), matrix(contexts), units, window.layout(), ending.closing
        )
        marks = np.stack(window.numbered(rows[6]))
        return cuts_of_rows(rows[:6], marks if dtype == np.int64 else marks / scale, opened)

    def _units(self, contexts: Contexts, tuples: Tuples) -> tuple[Ints, np.dtype[Any]]:
        """The position of each tuple in whole units, rounded down, and the type of the measure."""
        measure = measure_values(tuples, self)
        at = measured_kernels.positions(
            owned(tuples.offsets), measure, matrix(contexts), matrix(contexts, measure.dtype)
        )
        _, scale = self.on_units
        if at.dtype == np.int64:
            if scale > 1:
                raise needs_whole_numbers(self)
            return at, at.dtype
        # With decimals, edges are quotients of whole numbers that a float must represent exactly.
        if scale > 1 and len(at) and np.abs(at).max() > 2**53 / scale:
            limit = f"a measure below 2**53 / {scale}: got {np.abs(at).max()}"
            raise needs(self, f"{limit}; write the lengths with fewer digits")
        return measured_kernels.units_reached(at, scale), at.dtype

    def count(self, contexts: Contexts, tuples: Tuples, closing: bool) -> int:
        units, _ = self._units(contexts.copy(), tuples)
        layout, offsets = self.on_units[0].layout(), owned(tuples.offsets)
        return int(measured_kernels.count_measured(offsets, matrix(contexts), units, layout, closing))

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        slot = contexts["oldest"] % self.distinct_begins
        begin = contexts["begins"][np.arange(len(contexts)), slot]
        return np.where(contexts["oldest"] < contexts["following"], begin, seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        oldest = contexts["oldest"]
        begins = np.minimum(contexts["following"] - oldest, self.distinct_begins)
        key = np.repeat(np.arange(len(contexts)), begins)
        return key, contexts["begins"][
            key, integer_ranges(oldest, oldest + begins - 1) % self.distinct_begins
        ]

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        if not TupleDriven.contexts_fit(self, contexts, positions):
            return False
        open_windows = contexts["following"] - contexts["oldest"]
        return bool(((open_windows >= 0) & (open_windows <= self.per_tuple)).all())


def whole_units(*lengths: Any) -> tuple[tuple[int, ...], int]:
    """Decimal numbers that the user wrote, in whole units of 1 / scale, and the scale.

    0.3 is then a multiple of 0.1; 3 * 0.1, which rounds to above 0.3, is not.

    >>> whole_units(0.2, 0.1, 3)
    ((2, 1, 30), 10)
    """
    exact = [Decimal(str(value)).normalize() for value in lengths]
    digits = max(0, *(-int(value.as_tuple().exponent) for value in exact))
    for value, given in zip(exact, lengths, strict=True):
        if digits > 15 or abs(value).scaleb(digits) > 2**53:
            raise fail("lengths on a measure must have at most 15 digits", given, "use another unit")
    return tuple(int(value.scaleb(digits)) for value in exact), 10**digits


def needs_whole_numbers(window: TupleDriven) -> DataError:
    """The error for fractions of the unit of an integer measure."""
    cure = "round the lengths, or cast the column to float64"
    return needs(window, f"whole numbers: {window.measure} is an integer column; {cure}")
