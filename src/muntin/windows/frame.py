"""The base of frames: windows that follow each other along the tuples of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.deferred_import import DeferredImport
from muntin.windows.base import Context
from muntin.windows.kernel_arguments import Numbers, arrays, cuts_of_rows, matrix, measure_values
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples

if TYPE_CHECKING:
    from muntin.windows import frame_kernels
else:
    frame_kernels = DeferredImport("muntin.windows.frame_kernels")

CLOSE, OPEN, COMPLETE = 1, 2, 4

Actions: TypeAlias = npt.NDArray[np.uint8]
"""Per tuple the sum of its actions: CLOSE, OPEN, COMPLETE."""

FIELDS = ("begin", "start", "last", "seen", "low", "position")
"""The fields with which the context of every frame begins."""


class Frame(TupleDriven):
    """Base of frames; a subclass gives the actions of each tuple (`actions`).

    With a measure the frames are the same, and `low` and `high` are the positions on it
    (its largest value so far) at the first tuple and at the tuple that ended the frame.
    """

    __slots__ = ()

    context: ClassVar[Context] = Context.FORWARD_FREE
    repeats: ClassVar[bool] = True
    context_fields: ClassVar[tuple[str, ...]] = FIELDS
    min_count: int = 1

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        """The actions of each tuple; advances the fields of the contexts after FIELDS."""
        raise NotImplementedError

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        return self._frames(contexts, tuples, self.actions(contexts, tuples), ending.closing)

    def _frames(self, contexts: Contexts, tuples: Tuples, actions: Actions, closing: bool) -> Cuts:
        """The windows that the actions open and close."""
        measure: Numbers = np.zeros(0, np.int64)
        if self.measure is not None:
            measure = measure_values(tuples, self)
        rows, marks, opened = frame_kernels.frames(
            *arrays(tuples),
            matrix(contexts),
            matrix(contexts, measure.dtype),
            actions,
            measure,
            self.measure is not None,
            self.min_count,
            closing,
        )
        return cuts_of_rows(rows, None if self.measure is None else marks, opened)
