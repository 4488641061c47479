"""Punctuation windows: marked tuples of the stream begin windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from muntin.expressions import ColumnLike, Expr, as_predicate
from muntin.windows.arguments import constructor
from muntin.windows.columns import condition
from muntin.windows.frame import CLOSE, OPEN, Actions, Frame
from muntin.windows.tuple_driven import Contexts, Tuples
from muntin.windows.validation import column_name

__all__ = ["Punctuation", "punctuation"]


@dataclass(frozen=True, slots=True)
class Punctuation(Frame):
    """A tuple that satisfies the predicate closes the window before and opens the next, to which it belongs.

    The first window starts at the first tuple. A window ends at the time of the
    tuple that closed it.

    >>> window = Punctuation("mark")
    >>> tuples = Tuples.of([1, 4, 6, 9], mark=[False, True, None, True])
    >>> window.cut(window.initial(1), tuples, upto=9).intervals()
    [(1, 4), (4, 9)]
    """

    predicate: Expr
    measure: str | None = None

    constructor: ClassVar[str] = "punctuation"

    def __post_init__(self) -> None:
        self._settle(predicate=as_predicate(self.predicate))
        column_name(self.measure)

    def describe(self) -> str:
        return self._described(f"punctuation where {self.predicate}")

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        marks = condition(tuples, self.predicate, self)
        return np.where(marks, np.uint8(CLOSE | OPEN), np.uint8(OPEN))


@constructor
def punctuation(predicate: ColumnLike, *, measure: str | None = None) -> Punctuation:
    """A window from each tuple that satisfies the predicate to the next one.

    The predicate is an Arrow expression or a text: `mt.col("kind") == "start"`, or
    `"kind == 'start'"`.

    >>> punctuation("kind == 'start'").describe()
    "punctuation where kind == 'start'"
    """
    return Punctuation(predicate, measure)  # type: ignore[arg-type]  # __post_init__ reads the text
