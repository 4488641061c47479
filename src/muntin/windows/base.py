"""What every window has in common, and how windows that follow the tuples are cut.

A window is a frozen description: where its edges lie, as far as that can be told.
It holds no state and triggers nothing. There are two families:

- *context free* windows, whose edges lie on the time axis whatever the tuples are
  (`ContextFreeWindow`);
- *tuple-driven* windows, whose edges follow the tuples of a key (`TupleDriven`):
  they walk over the tuples in (time, arrival) order and carry a small context
  from one call to the next. [scotty §4.4, §5.4.2]
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import PlacedError
from muntin.expressions import Expr, as_expr
from muntin.timeline import INF, NEG_INF
from muntin.windows.context_checks import KeyPositions, fields_fit, lists_fit

if TYPE_CHECKING:
    from muntin.aggregates.base import Aggregate

__all__ = [
    "EARLIER",
    "Context",
    "ContextFreeWindow",
    "Contexts",
    "Cuts",
    "Ints",
    "TupleDriven",
    "Tuples",
    "Window",
]

Ints: TypeAlias = npt.NDArray[np.int64]
"""Times, ranks, positions: int64 arrays."""

Contexts: TypeAlias = npt.NDArray[Any]
"""One context per key: a structured array of int64 fields, or an object array of plain Python values."""


EARLIER = NEG_INF
"""The start of a window whose first tuple came in an earlier call: the slice that begins there knows it."""


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


@dataclass(slots=True)
class Tuples:
    """Tuples sorted by (key, time, arrival): one segment per key.

    `rank` is the tuple's number within its key, without holes; windows count from
    the first rank that they see. `records` gives row i as a mapping, for windows
    that run the user's code; without it records are made from `columns`. `until`:
    per segment, the last time at which time alone may emit windows.
    """

    offsets: Ints
    time: Ints
    rank: Ints
    columns: dict[Expr, pa.Array | npt.NDArray[Any]] = field(default_factory=dict)
    records: Callable[[int], Mapping[str, Any]] | None = None
    failed: list[PlacedError] | None = None
    """Collects errors of the user's code where they are skipped; None where they are raised."""
    until: Ints | None = None

    @classmethod
    def of(cls, time: Sequence[int], **columns: Sequence[Any]) -> Tuples:
        """The tuples of a single key, from its first one on.

        >>> Tuples.of([10, 20, 20], price=[1.5, 2.5, None]).rank.tolist()
        [0, 1, 2]
        """
        n = len(time)
        return cls(
            np.array([0, n], np.int64),
            np.array(time, np.int64),
            np.arange(n, dtype=np.int64),
            {as_expr(name): pa.array(values) for name, values in columns.items()},
        )

    def __len__(self) -> int:
        return len(self.time)


@dataclass(slots=True)
class Cuts:
    """The windows that one call of `cut` found, one row each, and where slices must start.

    `begin` and `end` are ranks (end exclusive), `start` and `stop` times. A type with
    many open windows need not carry all their starts: it gives EARLIER. A window is
    complete at the watermark `due`; INF marks one that nothing has ended yet and
    that is shown as if it ended after its last tuple (only when `closing`).
    `low` and `high` are its edges as ranks or on another measure, else None.

    (`edge_segment`, `edge_rank`): sorted and distinct; the begins and ends of these
    windows, and the begins of windows opened by this call and still open.
    """

    segment: Ints
    begin: Ints
    end: Ints
    start: Ints
    stop: Ints
    due: Ints
    low: npt.NDArray[Any] | None
    high: npt.NDArray[Any] | None
    edge_segment: Ints
    edge_rank: Ints

    def __len__(self) -> int:
        return len(self.segment)

    @property
    def open(self) -> npt.NDArray[np.bool_]:
        """Which windows nothing has ended yet."""
        return np.equal(self.due, INF)

    def intervals(self) -> list[tuple[int, int]]:
        """(start, stop) of every window, to look at."""
        return list(zip(self.start.tolist(), self.stop.tolist(), strict=True))


class TupleDriven(Window):
    """A window type whose edges follow the tuples of a key.

    `cut` is called again and again with the next tuples of each key, split into
    calls in any way: the windows found do not depend on the split.

    Forward context aware types may begin a window before this call's tuples. They
    get, in each call, all tuples of the key from `keep_from` on, and their context
    says how far they came; the others get new tuples only.

    >>> from muntin.windows import count
    >>> window = count(2)
    >>> contexts = window.initial(1)
    >>> cuts = window.cut(contexts, Tuples.of([10, 20, 30]), upto=30)
    >>> cuts.intervals(), cuts.low.tolist()
    ([(10, 21)], [0])
    >>> window.keep_from(contexts, seen=np.array([3])).tolist()
    [2]
    """

    __slots__ = ()

    timed: ClassVar[bool] = False
    """Whether windows also end by the watermark alone, without a further tuple."""

    @property
    def holds_keys(self) -> bool:
        return True

    @property
    def reach(self) -> int | None:
        """How far back in time a window lies from the tuple that ends it; None where time sets no bound.

        Tuples further back may be missing from those that `cut` gets, though `keep_from` named them.
        """
        return None

    @abstractmethod
    def initial(self, n: int) -> Contexts:
        """Contexts of n keys that have no tuple yet."""

    @abstractmethod
    def cut(
        self,
        contexts: Contexts,
        tuples: Tuples,
        upto: int,
        closing: bool = False,
        partial: bool = False,
        newest: int | None = None,
    ) -> Cuts:
        """Walk over the tuples, advance `contexts` in place and return the windows found.

        Args:
            contexts: `contexts[i]` belongs to segment i of the tuples.
            tuples: the next tuples of each key; a segment may be empty.
            upto: promises that every tuple before this time has been passed, now or
                in an earlier call. Only types with edges in time need it: `last` and
                `session` close what is due by then without a further tuple.
            closing: also return the windows that are still open, as if they ended
                after their last tuple. The contexts are useless afterwards: for a
                look ahead of the end, pass copies.
            partial: when closing, also return count windows that are not full.
            newest: the newest tuple of the whole stream, after which a type that
                emits for ever stops when closing; the newest passed if None.
        """

    def count(self, contexts: Contexts, tuples: Tuples, closing: bool) -> int:
        """How many windows `cut` would return; for types with `per_tuple` above 1. Lists no windows."""
        return 0

    @abstractmethod
    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        """Per key: the smallest rank that a window not yet returned may need.

        `seen` is the number of tuples of each key so far, and the answer if no
        window is open. Forward context aware types need the tuples themselves from
        there on, the others only slices that start there.
        """

    @abstractmethod
    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        """(number of the key, rank) of the begins of all open windows: slices must start there.

        Forward context aware types do not know yet where their windows begin, and name none.
        """

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        """Whether contexts from a snapshot fit the position of each key in its tuples.

        Types whose fields depend on each other add checks.
        """
        if contexts.dtype == object:
            fits = lists_fit(contexts, self.initial(1)[0], positions)
        else:
            fits = fields_fit(contexts, positions)
        if not fits or self.context is not Context.FORWARD_AWARE:
            return fits
        # The context reads the tuples from `keep_from` on, so they must be kept.
        needed = self.keep_from(contexts, positions.rank)
        there = self.reach is not None or (positions.kept <= needed).all()
        return bool(there and (needed <= positions.rank).all())
