"""Punctuation windows, which marked tuples begin, and frames, which last as long as a condition holds.

Threshold, delta and boundary frames after Grossniklaus et al., "Frames: Data-driven
Windows"; the fourth kind, aggregate frames, is in `muntin.windows.until`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.errors import QueryError
from muntin.expressions import ColumnLike, Expr, as_expr, as_predicate
from muntin.timeline import INF, LIMIT
from muntin.windows.arguments import constructor
from muntin.windows.frame import CLOSE, COMPLETE, FIELDS, OPEN, Actions, Frame
from muntin.windows.kernel_arguments import Flags, Numbers, arrays, condition, matrix, number_values, owned
from muntin.windows.tuple_driven import Contexts, Tuples
from muntin.windows.validation import column_name, fail, number, positive_number, whole_number

if TYPE_CHECKING:
    from muntin.windows import frame_kernels
else:
    frame_kernels = DeferredImport("muntin.windows.frame_kernels")


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


@dataclass(frozen=True, slots=True)
class PunctuationPair(Frame):
    """From a tuple that satisfies `begin` to the next one that satisfies `end`, both included.

    Tuples between two windows are in none. While a window is open, further begins have no effect.

    >>> window = PunctuationPair("on", "off")
    >>> tuples = Tuples.of([1, 4, 6, 9], on=[False, True, True, None], off=[True, False, True, True])
    >>> window.cut(window.initial(1), tuples, upto=9).intervals()
    [(4, 7)]
    """

    begin: Expr
    end: Expr
    measure: str | None = None

    constructor: ClassVar[str] = "punctuation"

    def __post_init__(self) -> None:
        self._settle(begin=as_predicate(self.begin, "begin"), end=as_predicate(self.end, "end"))
        column_name(self.measure)

    @property
    def restarts(self) -> bool:
        return self.measure is None

    def describe(self) -> str:
        return self._described(f"punctuation from {self.begin} to {self.end}")

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        begins, ends = condition(tuples, self.begin, self), condition(tuples, self.end, self)
        actions: Actions = OPEN * begins.astype(np.uint8) + COMPLETE * ends.astype(np.uint8)
        return actions


@dataclass(frozen=True, slots=True)
class Threshold(Frame):
    """Runs of tuples for which the predicate holds, of at least `min_count` tuples.

    A frame ends at the time of the tuple that breaks it.

    >>> window = Threshold("hot")
    >>> tuples = Tuples.of([1, 2, 3, 4, 5], hot=[True, True, False, True, None])
    >>> window.cut(window.initial(1), tuples, upto=9).intervals()
    [(1, 3), (4, 5)]
    """

    predicate: Expr
    min_count: int = 1
    measure: str | None = None

    constructor: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        predicate = as_predicate(self.predicate)
        self._settle(predicate=predicate, min_count=whole_number(self.min_count, "min_count"))
        column_name(self.measure)

    @property
    def restarts(self) -> bool:
        return self.measure is None

    def describe(self) -> str:
        return self._described(f"threshold while {self.predicate}")

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        holds = condition(tuples, self.predicate, self)
        return np.where(holds, np.uint8(OPEN), np.uint8(CLOSE))


@dataclass(frozen=True, slots=True)
class Delta(Frame):
    """A frame lasts until a value is more than `by` away from the frame's first value.

    The tuple with that value opens the next frame. Null and NaN stay in the current
    frame.

    >>> window = Delta("price", 5)
    >>> tuples = Tuples.of([1, 2, 3, 4], price=[10, 15, 16, 12])
    >>> window.cut(window.initial(1), tuples, upto=9, closing=True).intervals()
    [(1, 3), (3, 5)]
    """

    column: Expr
    by: float
    measure: str | None = None

    constructor: ClassVar[str] = "delta"
    context_fields: ClassVar[tuple[str, ...]] = (*FIELDS, "known", "reference")

    def __post_init__(self) -> None:
        column, by = as_expr(self.column), number(self.by, "by")
        if by < 0:
            raise fail("by must not be negative", by, f"did you mean {-by}?")
        self._settle(column=column, by=by)
        column_name(self.measure)

    def describe(self) -> str:
        return self._described(f"delta of {self.column} by {self.by}")

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        values, valid, by = number_values(tuples, self.column, self, self.by)
        if values.dtype == np.int64:
            by = min(math.floor(by), INF)  # the distance of two integers is one
        return drift(contexts, tuples, values, valid, by)


@dataclass(frozen=True, slots=True)
class Boundary(Frame):
    """A new frame whenever a value crosses a multiple of `step`: floor(value / step) changes.

    Null and NaN stay in the current frame.

    >>> window = Boundary("height", 100)
    >>> tuples = Tuples.of([1, 2, 3, 4], height=[90, 99, 100, 250])
    >>> window.cut(window.initial(1), tuples, upto=9, closing=True).intervals()
    [(1, 3), (3, 4), (4, 5)]
    """

    column: Expr
    step: float
    measure: str | None = None

    constructor: ClassVar[str] = "boundary"
    context_fields: ClassVar[tuple[str, ...]] = (*FIELDS, "known", "reference")

    def __post_init__(self) -> None:
        self._settle(column=as_expr(self.column), step=positive_number(self.step, "step"))
        column_name(self.measure)

    def describe(self) -> str:
        return self._described(f"boundary of {self.column} at multiples of {self.step}")

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        values, valid, step = number_values(tuples, self.column, self, self.step)
        if values.dtype == np.int64 and step == int(step):
            bands = values // min(int(step), LIMIT)
        else:
            bands = multiples_below(values, step)
        return drift(contexts, tuples, owned(bands), valid, 0)


def multiples_below(values: Numbers, step: float) -> Numbers:
    """floor(value / step), as floats; 0.3 is the third multiple of 0.1, although 0.3 / 0.1 is below 3.

    >>> multiples_below(np.array([0.29, 0.3, -0.1, np.inf]), 0.1).tolist()
    [2.0, 3.0, -1.0, inf]
    """
    exact = Fraction(str(step))  # the decimal number that the user wrote
    over, under = float(exact.numerator), float(exact.denominator)
    bands: Numbers = np.floor(values * (under / over))
    # A multiple is rounded once; the quotient may be off by one through rounding.
    bands += (bands + 1) * over / under <= values
    bands -= bands * over / under > values
    return bands


def drift(contexts: Contexts, tuples: Tuples, values: Numbers, valid: Flags, by: float) -> Actions:
    """Close and open where a value is more than `by` away from the first of its frame."""
    # One type for `by` and the values: one compiled version of each.
    by = values.dtype.type(by)
    offsets, _, _ = arrays(tuples)
    return frame_kernels.drift_actions(
        offsets, matrix(contexts), matrix(contexts, values.dtype), values, valid, by
    )


@constructor
def punctuation(
    predicate: ColumnLike | None = None,
    *,
    begin: ColumnLike | None = None,
    end: ColumnLike | None = None,
    measure: str | None = None,
) -> Punctuation | PunctuationPair:
    """A window from each tuple that satisfies the predicate to the next one.

    The predicate is an Arrow expression or a text: `mt.col("kind") == "start"`, or
    `"kind == 'start'"`. With `begin` and `end` instead, a window is from a tuple that satisfies
    `begin` to the next one that satisfies `end`.

    >>> punctuation("kind == 'start'").describe()
    "punctuation where kind == 'start'"
    >>> punctuation(begin="kind == 'take-off'", end="kind == 'landing'").describe()
    "punctuation from kind == 'take-off' to kind == 'landing'"
    """
    # __post_init__ reads the texts.
    if begin is None and end is None and predicate is not None:
        return Punctuation(predicate, measure)  # type: ignore[arg-type]
    if predicate is not None or begin is None or end is None:
        given = [
            name
            for name, value in (("predicate", predicate), ("begin", begin), ("end", end))
            if value is not None
        ]
        raise QueryError(
            f"punctuation needs a predicate, or both begin and end: got {' and '.join(given) or 'neither'}; "
            "for example punctuation(\"kind == 'start'\")"
        )
    return PunctuationPair(begin, end, measure)  # type: ignore[arg-type]


@constructor
def threshold(predicate: ColumnLike, min_count: int = 1, *, measure: str | None = None) -> Threshold:
    """Frames while a predicate holds (an Arrow expression or a text).

    >>> threshold("speed > 100", min_count=3).describe()
    'threshold while speed > 100, at least 3'
    """
    return Threshold(predicate, min_count, measure)  # type: ignore[arg-type]  # __post_init__ reads the text


@constructor
def delta(column: ColumnLike, by: Any, *, measure: str | None = None) -> Delta:
    """Frames until a value drifts by more than `by`.

    >>> delta("price", by=0.5).describe()
    'delta of price by 0.5'
    """
    return Delta(column, by, measure)  # type: ignore[arg-type]  # __post_init__ reads the name


@constructor
def boundary(column: ColumnLike, step: Any, *, measure: str | None = None) -> Boundary:
    """Frames between crossings of multiples of `step`.

    >>> boundary("height", step=100).describe()
    'boundary of height at multiples of 100'
    """
    return Boundary(column, step, measure)  # type: ignore[arg-type]  # __post_init__ reads the name
