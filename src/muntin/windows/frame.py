"""What all frames share: windows that follow each other along the tuples of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr, as_expr
from muntin.windows.base import Context, Ints
from muntin.windows.columns import Numbers, matrix, measure_values, owned
from muntin.windows.found import cuts_of_rows
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples

if TYPE_CHECKING:
    from muntin.windows import frame_kernels
else:
    frame_kernels = DeferredImport("muntin.windows.frame_kernels")

__all__ = ["CLOSE", "COMPLETE", "OPEN", "Actions", "Frame", "cut_frames"]

CLOSE, OPEN, COMPLETE = 1, 2, 4

Actions: TypeAlias = npt.NDArray[np.uint8]
"""Per tuple the sum of what it does: CLOSE, OPEN, COMPLETE."""

FIELDS = ("begin", "start", "last", "seen", "low", "position")


class Frame(TupleDriven):
    """Base of frames; a subclass says what each tuple does (`actions`).

    With a measure the frames are the same, and `low` and `high` tell where the
    measure stood (its largest value so far) at the first tuple and at the tuple
    that ended the frame.
    """

    __slots__ = ()

    context: ClassVar[Context] = Context.FORWARD_FREE
    repeats: ClassVar[bool] = True
    extra_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the context beside FIELDS."""
    min_count: int = 1

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        """What each tuple does, advancing the extra fields of the contexts."""
        raise NotImplementedError

    def inputs(self) -> tuple[Expr, ...]:
        return () if self.measure is None else (as_expr(self.measure),)

    def initial(self, n: int) -> Contexts:
        contexts = np.zeros(n, [(name, np.int64) for name in (*FIELDS, *self.extra_fields)])
        contexts["begin"] = -1
        return contexts

    def cut(
        self,
        contexts: Contexts,
        tuples: Tuples,
        upto: int,
        closing: bool = False,
        partial: bool = False,
        newest: int | None = None,
    ) -> Cuts:
        return cut_frames(self, contexts, tuples, self.actions(contexts, tuples), closing)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return np.where(contexts["begin"] >= 0, contexts["begin"], seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        key = np.flatnonzero(contexts["begin"] >= 0)
        return key, contexts["begin"][key]


def cut_frames(window: Frame, contexts: Contexts, tuples: Tuples, actions: Actions, closing: bool) -> Cuts:
    """Make the windows that the actions open and close."""
    measure: Numbers = np.zeros(0, np.int64)
    if window.measure is not None:
        measure = measure_values(tuples, as_expr(window.measure), window.describe())
    rows, marks, opened = frame_kernels.framed(
        owned(tuples.offsets),
        owned(tuples.time),
        owned(tuples.rank),
        actions,
        matrix(contexts),
        matrix(contexts, measure.dtype),
        measure,
        window.measure is not None,
        window.min_count,
        closing,
    )
    return cuts_of_rows(rows, None if window.measure is None else marks, opened)
