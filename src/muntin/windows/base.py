"""The traits of every window, and the windows whose edges lie on the time axis.

A window is a frozen description of its edges. It has no state and triggers nothing. There are two
families:

- *context free* windows, whose edges lie on the time axis whatever the tuples are
  (`ContextFreeWindow`);
- *tuple-driven* windows, whose edges follow the tuples of a key
  (`muntin.windows.tuple_driven`).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.expressions import Expr, as_expr
from muntin.timeline import INF, NEG_INF
from muntin.windows.validation import column_parameter, plain, text

if TYPE_CHECKING:
    import pyarrow as pa

    from muntin.aggregates.base import Aggregate

Ints: TypeAlias = npt.NDArray[np.int64]
"""Times, ranks, positions: int64 arrays."""

_OPTIONS = {
    "max_length": ", at most {}",
    "min_count": ", at least {}",
    "offset": ", offset {}",
    "emit_empty": ", also empty",
    "emit_partial": ", also partial",
    "measure": " on {}",
}
"""Optional arguments of windows, in the order and in the words of a description."""


class Context(enum.Enum):
    """The tuples that determine the edges of a window [scotty §4.4]."""

    FREE = "context free"
    """None: all edges are known beforehand."""
    FORWARD_FREE = "forward context free"
    """The tuples up to t, for all edges up to t."""
    FORWARD_AWARE = "forward context aware"
    """Tuples after t, for some edge before t."""


class Window(ABC):
    """Base of all windows: frozen dataclasses, equal by value, described in words.

    `constructor` names the function of `muntin.windows` that makes the window.
    """

    __slots__ = ()

    context: ClassVar[Context]
    constructor: ClassVar[str]
    measure: str | None = None
    """The column on which the windows lie; None for time (or rank)."""
    repeats: ClassVar[bool] = False
    """Whether tuples of one time can make several windows with equal edges: results number them."""
    wants_records: ClassVar[bool] = False
    """Whether it runs the user's code over records."""
    civil: ClassVar[bool] = False
    """Whether its edges lie on calendars and clocks: times must then be timestamps."""
    endless: ClassVar[bool] = False
    """Whether its windows have no last one: at the end of a stream they stop after the newest tuple."""
    unprompted: ClassVar[bool] = False
    """Whether windows are emitted at regular times with the watermark, also without a tuple of their own."""
    counts_tuples: ClassVar[bool] = False
    """Whether its measure is the rank of tuples, which a late tuple shifts."""
    refuses: ClassVar[bool] = False
    """Whether some values of its inputs are unusable, so that their tuples are bad: see `refused`."""
    emit_partial: bool = False
    """Whether a window that never filled is emitted at the end of its stream."""

    @abstractmethod
    def describe(self) -> str:
        """The window in words, for `explain()` and for messages."""

    def _described(self, words: str) -> str:
        """The words, followed by the optional arguments that differ from their defaults."""
        given = dict(self._given())
        return words + "".join(
            option.format(text(given[name])) for name, option in _OPTIONS.items() if name in given
        )

    def parameters(self) -> dict[str, object]:
        """Arguments of `constructor` that make an equal window, as plain values; defaults are left out."""
        parameters: dict[str, object] = {}
        for name, value in self._given():
            if not isinstance(value, Expr):
                parameters[name] = plain(value)
            elif name == "column":
                parameters |= column_parameter(value)
            else:
                parameters[name] = value.to_text()
        return parameters

    def inputs(self) -> tuple[Expr, ...]:
        """Predicates, values and measures that the window reads."""
        read = [value for _, value in self._given() if isinstance(value, Expr)]
        return (*read, *([] if self.measure is None else [as_expr(self.measure)]))

    def _given(self) -> Iterator[tuple[str, Any]]:
        """Names and values of the fields that differ from their defaults."""
        for field in fields(self):  # type: ignore[arg-type]  # a dataclass, unless it overrides all of the above
            value = getattr(self, field.name)
            if field.default is MISSING or value != field.default:
                yield field.name, value

    def _settle(self, **values: object) -> None:
        """Replace what the user wrote by checked values, in `__post_init__` of a frozen dataclass."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def spans(self) -> tuple[int, ...]:
        """All lengths of time among its arguments: they must fit the unit of the time column."""
        return ()

    def spans_over(self, types: Mapping[Expr, pa.DataType], integer_time: bool) -> tuple[int, ...]:
        """The same over inputs of these types, with the units of lengths that are columns of the input.

        An error where these do not fit the time column.
        """
        return self.spans()

    def refused(self, columns: Mapping[Expr, pa.Array]) -> tuple[Expr, npt.NDArray[np.bool_], str]:
        """An input, which of its values are unusable, and the rule that they break, if it `refuses` any."""
        raise NotImplementedError

    @property
    def period(self) -> int | None:
        """The time from one end to the next where windows follow each other endlessly; None for others."""
        return None

    @property
    def per_tuple(self) -> int:
        """The largest number of windows that contain one tuple, where the lengths determine it; else 1."""
        return 1

    @property
    def on_measure(self) -> bool:
        """Whether its windows have edges on a second axis: ranks, or the measure."""
        return self.counts_tuples or self.measure is not None

    @property
    def emits_empty(self) -> bool:
        """Whether windows without a tuple are emitted as well."""
        return False

    @property
    def holds_keys(self) -> bool:
        """Whether the windows need state of every key for ever, unless silent keys are forgotten."""
        return False

    @property
    def restarts(self) -> bool:
        """Whether a key without an open window is equivalent to one that was never seen."""
        return not self.holds_keys

    @property
    def interpreted(self) -> bool:
        """Whether the interpreter computes its edges, which serves one thread at a time."""
        return self.wants_records

    @property
    def session_gap(self) -> int | None:
        """The gap of a session on time, which the slicer cuts at; None for other windows."""
        return None

    @property
    def series(self) -> tuple[int, int, int] | None:
        """Length, slide and offset, where its windows are one arithmetic series on time; None for others."""
        return None

    @property
    def earliest(self) -> int:
        """No window of it starts before this time."""
        return NEG_INF

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Aggregates that decide where its windows end."""
        return ()

    def progressions(self, in_order: bool = False) -> list[tuple[int, int]]:
        """The edges as arithmetic progressions (offset, period), where they are such on time.

        For a stream in order, only where windows start. [scotty §7.1.2]
        """
        return []

    def slices_per_window(self, rate: float) -> float:
        """The number of slices that a window combines, if edges cut `rate` slices per unit of time.

        1 where the tuples alone determine how long a window is: its own edges cut nothing inside it.
        """
        return 1.0

    def complete_at(self, newest: int) -> int:
        """The watermark that completes every window over tuples up to `newest`.

        NEG_INF where only a further tuple ends windows, or there are none.
        """
        return NEG_INF


class ContextFreeWindow(Window):
    """A window type on the time axis. All intervals are [start, end).

    >>> from muntin.windows import sliding
    >>> window = sliding(10, every=5)
    >>> window.edges(0, 12).tolist(), window.starts(0, 12).tolist()
    ([0, 5, 10], [0, 5, 10])
    >>> starts, ends = window.windows(np.array([7]), after=-100, upto=100)
    >>> starts.tolist(), ends.tolist()
    ([0, 5], [10, 15])
    >>> window.last_end(np.array([7])).tolist(), window.first_start(11)
    ([15], 5)
    """

    __slots__ = ()

    context: ClassVar[Context] = Context.FREE
    emit_empty: bool = False
    """Whether windows without a tuple are emitted, between the first and the last tuple of a key."""

    def inputs(self) -> tuple[Expr, ...]:
        return ()

    @property
    def emits_empty(self) -> bool:
        return self.emit_empty

    @property
    def holds_keys(self) -> bool:
        return self.emit_empty

    def complete_at(self, newest: int) -> int:
        _, ends = self.windows(np.array([newest], dtype=np.int64), newest, INF)
        return int(ends.max(initial=NEG_INF))

    @abstractmethod
    def edges(self, lo: int, hi: int) -> Ints:
        """Sorted distinct edges (starts and ends of windows) in [lo, hi]."""

    @abstractmethod
    def starts(self, lo: int, hi: int) -> Ints:
        """Sorted distinct starts of windows in [lo, hi]."""

    @abstractmethod
    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        """Starts and ends of all windows that overlap one of the spans and end in (after, upto].

        The spans are [first, last], both included; first and last never decrease.
        Every window is listed once, sorted by (end, start), whether or not it contains a
        tuple. A type with endless windows stops, when `upto` is INF, at the first
        edge after the last span.
        """

    def numbers(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints] | None:
        """For each span, the numbers of the first and the last window that `overlapping` lists.

        None for types whose windows are not numbered consecutively in the order of their ends.
        """
        return None

    def windows(self, times: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        """Starts and ends of all windows that contain one of the (sorted) times and end in (after, upto]."""
        return self.overlapping(times, times, after, upto)

    @abstractmethod
    def last_end(self, times: Ints) -> Ints:
        """Per time: the end of the latest-ending window that contains it; NEG_INF if there is none."""

    @abstractmethod
    def first_start(self, after: int) -> int:
        """The smallest start of any window that ends after `after`; INF if there is none."""
