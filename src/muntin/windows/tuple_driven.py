"""Windows whose edges follow the tuples of a key: their input and their output.

They walk over the tuples in (time, arrival) order and carry a small context from one call to the
next. [scotty §4.4, §5.4.2]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import PlacedError
from muntin.expressions import Expr, as_expr
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context, Ints, Window
from muntin.windows.context_checks import KeyPositions, fields_fit, lists_fit

Contexts: TypeAlias = npt.NDArray[Any]
"""One context per key: a structured array of int64 fields, or an object array of plain Python values."""


BLOCK_BITS = 6
"""Where windows look back, slices of stored tuples have about 2**6 tuples: a split aggregates them again."""

EARLIER = NEG_INF
"""The start of a window whose first tuple came in an earlier call: the slice that begins there knows it."""


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
    """The windows that one call of `cut` returns, one row each, and where slices must start.

    `begin` and `end` are ranks (end exclusive), `start` and `stop` times. A type with
    many open windows need not carry all their starts: it gives EARLIER. A window is
    complete at the watermark `complete_at`; INF marks a window without an end, which is shown
    as if it ended after its last tuple (only when `closing`).
    `low` and `high` are its edges as ranks or on another measure, else None.

    (`edge_segment`, `edge_rank`): sorted and distinct; the begins and ends of these
    windows, and the begins of windows opened by this call and still open.
    """

    segment: Ints
    begin: Ints
    end: Ints
    start: Ints
    stop: Ints
    complete_at: Ints
    low: npt.NDArray[Any] | None
    high: npt.NDArray[Any] | None
    edge_segment: Ints
    edge_rank: Ints

    def __len__(self) -> int:
        return len(self.segment)

    @property
    def open(self) -> npt.NDArray[np.bool_]:
        """Which windows have no end yet."""
        return np.equal(self.complete_at, INF)

    def intervals(self) -> list[tuple[int, int]]:
        """(start, stop) of every window, for inspection."""
        return list(zip(self.start.tolist(), self.stop.tolist(), strict=True))


class Ending(NamedTuple):
    """Windows that a call of `cut` ends without a further tuple; see the arguments of `cut`."""

    upto: int
    closing: bool
    partial: bool
    newest: int | None


class TupleDriven(Window):
    """A window type whose edges follow the tuples of a key.

    `cut` is called again and again with the next tuples of each key, split into
    calls in any way: the resulting windows do not depend on the split.

    Forward context aware types may begin a window before this call's tuples. They
    get, in each call, all tuples of the key from `keep_from` on, and their context
    says how far they came; the others get new tuples only.

    A subclass names the `context_fields` and implements `_cut`. The field `begin`
    is the rank at which the open window of a key begins, or the first rank that a forward
    context aware type looks back to; -1 if there is none. A type with several open windows
    per key overrides `keep_from` and `open_begins`.

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
    context_fields: ClassVar[tuple[str, ...]] = ()
    """The int64 fields of a context; `base` and `begin` are ranks, -1 where there is none."""

    @property
    def holds_keys(self) -> bool:
        return True

    @property
    def reach(self) -> int | None:
        """The time from the begin of a window to the tuple that ends it, at most; None where it is unbounded.

        Tuples further back may be missing from the input of `cut`, though `keep_from` named them.
        """
        return None

    def initial(self, n: int) -> Contexts:
        """Contexts of n keys that have no tuple yet."""
        contexts = np.zeros(n, [(name, np.int64) for name in self.context_fields])
        for name in {"base", "begin"} & set(self.context_fields):
            contexts[name] = -1
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
        """Walk over the tuples, advance `contexts` in place and return the windows that end.

        Args:
            contexts: `contexts[i]` belongs to segment i of the tuples.
            tuples: the next tuples of each key; a segment may be empty.
            upto: promises that every tuple before this time has been passed, now or
                in an earlier call. Only types with edges in time need it: `last` and
                `session` end windows that are due by then without a further tuple.
            closing: also return the windows that are still open, as if they ended
                after their last tuple. The contexts are useless afterwards: to look
                ahead of the end, pass copies.
            partial: when closing, also return count windows that are not full.
            newest: the newest tuple of the whole stream, after which a type with endless
                windows stops when closing; the newest passed if None.
        """
        return self._cut(contexts, tuples, Ending(upto, closing, partial, newest))

    @abstractmethod
    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        """Implements `cut`."""

    def count(self, contexts: Contexts, tuples: Tuples, closing: bool) -> int:
        """The number of windows that `cut` would return, without listing them; for `per_tuple` above 1."""
        return 0

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        """Per key: the smallest rank that a window not yet returned may need.

        `seen` is the number of tuples of each key so far, and the answer if no
        window is open. Forward context aware types need the tuples themselves from
        there on, the others only slices that start there.
        """
        return np.where(contexts["begin"] >= 0, contexts["begin"], seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        """(number of the key, rank) of the begins of all open windows: slices must start there.

        Forward context aware types do not know yet where their windows begin, and name none.
        """
        if self.context is Context.FORWARD_AWARE:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        key = np.flatnonzero(contexts["begin"] >= 0)
        return key, contexts["begin"][key]

    def open_until(self, contexts: Contexts) -> int:
        """The watermark that ends every open window of these contexts that time alone will end.

        NEG_INF where there is none, or where `complete_at` knows it from the newest tuple.
        """
        return NEG_INF

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
        # The context reads the tuples from `keep_from` on, so they must be present.
        needed = self.keep_from(contexts, positions.rank)
        there = self.reach is not None or (positions.first_stored <= needed).all()
        return bool(there and (needed <= positions.rank).all())
