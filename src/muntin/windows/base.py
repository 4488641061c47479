"""What every window has in common, and the windows whose edges lie on the time axis.

A window is a frozen description: where its edges lie, as far as that can be told.
It holds no state and triggers nothing. There are two families:

- *context free* windows, whose edges lie on the time axis whatever the tuples are
  (`ContextFreeWindow`);
- *tuple-driven* windows, whose edges follow the tuples of a key
  (`muntin.windows.tuple_driven`).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.expressions import Expr
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.aggregates.base import Aggregate

__all__ = [
    "Context",
    "ContextFreeWindow",
    "Ints",
    "Window",
]

Ints: TypeAlias = npt.NDArray[np.int64]
"""Times, ranks, positions: int64 arrays."""


class Context(enum.Enum):
    """What must be known before the edges of a window are [scotty §4.4]."""

    FREE = "context free"
    """Nothing: all edges are known beforehand."""
    FORWARD_FREE = "forward context free"
    """The tuples up to t, for all edges up to t."""
    FORWARD_AWARE = "forward context aware"
    """Tuples after t, for some edge before t."""


class Window(ABC):
    """Base of all windows: frozen, equal by value, described in words.

    `constructor` names the function of `muntin.windows` that makes the window and
    `parameters()` gives its arguments as plain values (as they stand in a TOML file).
    """

    __slots__ = ()

    context: ClassVar[Context]
    constructor: ClassVar[str]
    measure: str | None = None
    """The column that windows are laid on, or None for time (or rank)."""
    repeats: ClassVar[bool] = False
    """Whether tuples at one time can make several windows with the same edges: results number those."""
    wants_records: ClassVar[bool] = False
    """Whether it runs the user's code over records."""
    civil: ClassVar[bool] = False
    """Whether its edges lie on calendars and clocks: then times must be timestamps."""
    endless: ClassVar[bool] = False
    """Whether its windows have no last one: at the end of a stream they stop after the newest tuple."""
    unprompted: ClassVar[bool] = False
    """Whether windows come out at regular times with the watermark, also without a tuple of their own."""
    counts_tuples: ClassVar[bool] = False
    """Whether its measure is the rank of tuples, which a late tuple shifts."""
    emit_partial: bool = False
    """Whether a window that never filled comes out at the end of its stream."""

    @abstractmethod
    def describe(self) -> str:
        """The window in words, for `explain()` and for messages."""

    @abstractmethod
    def parameters(self) -> dict[str, object]:
        """Arguments of `constructor` that make an equal window; defaults are left out."""

    def inputs(self) -> tuple[Expr, ...]:
        """Predicates, values and measures that the window reads."""
        return ()

    def spans(self) -> tuple[int, ...]:
        """All lengths of time that it holds: they must fit the unit of the time column."""
        return ()

    @property
    def period(self) -> int | None:
        """The time from one end to the next of windows that follow each other on and on; None for others."""
        return None

    @property
    def per_tuple(self) -> int:
        """The most windows that hold a single tuple, where the lengths determine it; 1 otherwise."""
        return 1

    @property
    def on_measure(self) -> bool:
        """Whether its windows have edges beside time: as ranks, or on the measure."""
        return self.measure is not None

    @property
    def holds_keys(self) -> bool:
        """Whether the windows keep state of every key for ever, unless silent keys are forgotten."""
        return False

    @property
    def restarts(self) -> bool:
        """Whether a key without an open window is as good as one that was never seen."""
        return not self.holds_keys

    @property
    def interpreted(self) -> bool:
        """Whether its edges are found by the interpreter, which serves one thread at a time."""
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

        For a stream in order, where windows start. [scotty §7.1.2]
        """
        return []

    def slices_per_window(self, rate: float) -> float:
        """From how many slices a window is combined, if edges cut `rate` slices per unit of time."""
        return 0.0

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
    """Whether windows without a tuple come out as well, between the first and the last tuple of a key."""

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

        The spans are [first, last], both included, and neither end ever goes back.
        Every window comes once, sorted by (end, start), whether or not a tuple lies
        in it. A type with endless windows stops, when `upto` is INF, at the first
        edge after the last span.
        """

    def numbers(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints] | None:
        """For each span, the numbers of the first and the last window that `overlapping` lists.

        None for types whose windows are not numbered one after the other, in the order of their ends.
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
