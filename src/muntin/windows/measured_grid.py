"""Where tuples stand on a measure, and evenly spaced edges on it.

A tuple's position is the largest value of the column so far, in the order of
tuples: one that lags counts where the stream stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.errors import DataError
from muntin.expressions import as_expr
from muntin.windows.base import Ints
from muntin.windows.columns import Numbers, matrix, measure_values, owned
from muntin.windows.tuple_driven import Contexts, TupleDriven, Tuples
from muntin.windows.validation import fail

if TYPE_CHECKING:
    from muntin.windows import measured_kernels
else:
    measured_kernels = DeferredImport("muntin.windows.measured_kernels")

__all__ = ["MeasureGrid", "positions_of"]


@dataclass(frozen=True, slots=True)
class MeasureGrid:
    """The windows [offset + k * slide, offset + k * slide + length), in whole units of 1 / scale.

    0.3 is an edge of a grid of 0.1; 3 * 0.1, which rounds to above 0.3, is not.

    >>> grid = MeasureGrid.of(0.2, 0.1, 0)
    >>> grid
    MeasureGrid(length=2, slide=1, offset=0, scale=10)
    >>> grid.on_measure(np.array([1, 3]), np.dtype(np.float64)).tolist()
    [0.1, 0.3]
    """

    length: int
    slide: int
    offset: int
    scale: int

    @classmethod
    def of(cls, length: Any, slide: Any, offset: Any) -> MeasureGrid:
        """The grid of the decimal numbers that the user wrote."""
        exact = [Decimal(str(value)).normalize() for value in (length, slide, offset)]
        digits = max(0, *(-int(value.as_tuple().exponent) for value in exact))
        for value, given in zip(exact, (length, slide, offset), strict=True):
            if digits > 15 or abs(value).scaleb(digits) > 2**53:
                raise fail("lengths on a measure must have at most 15 digits", given, "use another unit")
        whole = [int(value.scaleb(digits)) for value in exact]
        return cls(whole[0], whole[1], whole[2] % whole[1], 10**digits)

    def numbers(self, at: Numbers, window: str, measure: str) -> tuple[Ints, Ints]:
        """First and last number k of the windows that contain each position."""
        if at.dtype == np.int64:
            if self.scale > 1:
                raise DataError(
                    f"{window} needs whole numbers: {measure} is an integer column; "
                    "round the lengths, or cast the column to float64"
                )
            return (at - self.offset - self.length) // self.slide + 1, (at - self.offset) // self.slide
        # With decimals, edges are quotients of whole numbers that a float must hold exactly.
        if self.scale > 1 and len(at) and np.abs(at).max() > 2**53 / self.scale:
            raise DataError(
                f"{window} needs a measure below 2**53 / {self.scale}: got {np.abs(at).max()}; "
                "write the lengths with fewer digits"
            )
        return measured_kernels.grid_numbers(at, self.length, self.slide, self.offset, self.scale)

    def on_measure(self, units: Ints, dtype: np.dtype[Any]) -> Numbers:
        """Whole units as values of the measure, each rounded once."""
        return units if dtype == np.int64 else units / self.scale


def positions_of(window: TupleDriven, contexts: Contexts, tuples: Tuples) -> Numbers:
    """Where each tuple stands on the measure of a window."""
    assert window.measure is not None
    measure = measure_values(tuples, as_expr(window.measure), window.describe())
    return measured_kernels.positions(
        owned(tuples.offsets), measure, matrix(contexts), matrix(contexts, measure.dtype)
    )
