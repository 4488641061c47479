"""Cutty's two styles of user-defined windows: a function, and a trigger with eviction [cutty §3.2]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, overload

from muntin.errors import UserCodeError
from muntin.expressions import Expr, as_expr
from muntin.windows.arguments import constructor
from muntin.windows.base import Context
from muntin.windows.begins_and_ends import BeginsAndEnds
from muntin.windows.records import (
    Record,
    SeesRecords,
    cuts_of_user_code,
    guarded,
    natural,
    records_of,
    skip_or_raise,
)
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, Tuples
from muntin.windows.validation import fail


class _ByFunctions(SeesRecords):
    """Windows that functions of the user find, which read the named columns."""

    __slots__ = ()

    columns: tuple[str, ...]

    def parameters(self) -> dict[str, object]:
        given = SeesRecords.parameters(self)
        return given | ({"columns": list(self.columns)} if self.columns else {})

    def inputs(self) -> tuple[Expr, ...]:
        return tuple(as_expr(name) for name in self.columns)


@dataclass(frozen=True, slots=True)
class Discretize(_ByFunctions, BeginsAndEnds):
    """Deterministic windows: a function counts the windows that begin and end with each record.

    `function(record)` returns (begins, ends): the `ends` oldest open windows end
    before the record, then `begins` windows begin with it. Ends beyond the open
    windows have no effect. Windows of three tuples, every two, as in the paper:

    >>> window = Discretize(lambda r: (r.rank % 2 == 0, r.rank >= 3 and (r.rank - 3) % 2 == 0))
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 3, 4, 5, 6]), upto=9)
    >>> cuts.begin.tolist(), cuts.end.tolist()
    ([0, 2], [3, 5])
    """

    function: Callable[[Record], tuple[int, int]]
    columns: tuple[str, ...] = ()

    constructor: ClassVar[str] = "discretize"

    def __post_init__(self) -> None:
        _require_callable(self.function, "function")
        self._settle(columns=_names(self.columns))

    def describe(self) -> str:
        return f"discretize by {_name(self.function)}"

    def observe(self, state: Any, record: Record) -> tuple[Any, int, int]:
        begins, ends = self.function(record)
        return state, begins, ends

    def _user_function(self) -> str:
        return _name(self.function)


class Buffer(Sequence[Record]):
    """The records that a trigger looks at, oldest first; read only.

    >>> buffer = Buffer()
    >>> for rank in range(3):
    ...     buffer.append(Record({}, time=10 * rank, rank=rank))
    >>> buffer.evict(1)
    >>> len(buffer), buffer[0].rank, buffer[-1].time
    (2, 1, 20)
    """

    __slots__ = ("_head", "_items")

    def __init__(self) -> None:
        self._items: list[Record] = []
        self._head = 0

    def append(self, record: Record) -> None:
        """Add the newest record; for the window only."""
        self._items.append(record)

    def evict(self, count: int) -> None:
        """Let the oldest records go; for the window only. Amortised O(1) per record."""
        self._head = min(self._head + count, len(self._items))
        if 2 * self._head > len(self._items):
            del self._items[: self._head]
            self._head = 0

    def __len__(self) -> int:
        return len(self._items) - self._head

    def __iter__(self) -> Iterator[Record]:
        return islice(self._items, self._head, None)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self._items[self._head + i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"the buffer holds {len(self)} records: got the index {index}")
        return self._items[self._head + index if index >= 0 else index]


@dataclass(frozen=True, slots=True)
class Trigger(_ByFunctions):
    """Non-deterministic windows: the buffer of records, whenever the trigger fires.

    Each record joins the buffer, `evict(buffer)` returns the number of the oldest records
    that leave it, and when `trigger(buffer)` is true the buffer is a window. An empty
    buffer never is.

    >>> window = Trigger(lambda b: len(b) == 2, lambda b: max(0, len(b) - 2))
    >>> window.cut(window.initial(1), Tuples.of([1, 2, 3]), upto=9).intervals()
    [(1, 3), (2, 4)]
    """

    trigger: Callable[[Buffer], bool]
    evict: Callable[[Buffer], int]
    columns: tuple[str, ...] = ()

    context: ClassVar[Context] = Context.FORWARD_AWARE
    constructor: ClassVar[str] = "trigger"
    context_fields: ClassVar[tuple[str, ...]] = ("base", "begin", "seen")

    def __post_init__(self) -> None:
        _require_callable(self.trigger, "trigger")
        _require_callable(self.evict, "evict")
        self._settle(columns=_names(self.columns))

    def describe(self) -> str:
        return f"trigger by {_name(self.trigger)}, evict by {_name(self.evict)}"

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows: list[tuple[int, ...]] = []
        record_at = records_of(tuples)
        offsets, ranks = tuples.offsets.tolist(), tuples.rank.tolist()
        for segment, (base, begin, seen) in enumerate(contexts.tolist()):
            lo, hi = offsets[segment], offsets[segment + 1]
            if lo == hi:
                continue
            low = ranks[lo]
            base, begin, seen = (low, low, low) if base < 0 else (base, begin, seen)
            buffer = Buffer()
            for i in range(lo + begin - low, hi):
                buffer.append(record_at(i, base))
                if ranks[i] >= seen and self._fires(buffer, tuples):
                    start, stop = buffer[0].time, buffer[-1].time + 1
                    rows.append((segment, ranks[i] + 1 - len(buffer), ranks[i] + 1, start, stop, stop))
            seen = ranks[hi - 1] + 1
            contexts[segment] = (base, seen - len(buffer), seen)
        return cuts_of_user_code(rows)

    def _fires(self, buffer: Buffer, tuples: Tuples) -> bool:
        record = buffer[-1]
        try:
            leaving = guarded(self, _name(self.evict), record, lambda: self.evict(buffer))
            buffer.evict(natural(leaving, self, "the number of evicted records", record))
            if not len(buffer):
                return False
            return guarded(self, _name(self.trigger), record, lambda: bool(self.trigger(buffer)))
        except UserCodeError as error:
            skip_or_raise(tuples, error)
            return False


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", repr(function)))


def _require_callable(value: object, name: str) -> None:
    if not callable(value):
        raise fail(f"{name} must be a function", value, "pass the function itself, not its name")


def _names(columns: Any) -> tuple[str, ...]:
    """One name or several."""
    names = (columns,) if isinstance(columns, str) else columns
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise fail("columns must be names of columns", columns, 'for example columns=["price"]')
    return tuple(names)


@constructor
def discretize(
    function: Callable[[Record], tuple[int, int]], *, columns: str | Sequence[str] = ()
) -> Discretize:
    """Windows that begin and end with records, as a function of the record counts: (begins, ends).

    `columns` names the columns that the function reads.

    >>> def turns(record):
    ...     return (1, 1) if record["turn"] else (0, 0)
    >>> discretize(turns, columns=["turn"]).describe()
    'discretize by turns'
    """
    return Discretize(function, columns)  # type: ignore[arg-type]  # __post_init__ reads names


@constructor
def trigger(
    trigger: Callable[[Buffer], bool], evict: Callable[[Buffer], int], *, columns: str | Sequence[str] = ()
) -> Trigger:
    """Windows over a buffer of records: `evict` removes records, `trigger` emits the buffer.

    >>> def full(buffer):
    ...     return len(buffer) >= 3
    >>> def older_than_a_minute(buffer):
    ...     return sum(buffer[-1].time - record.time > 60_000_000 for record in buffer)
    >>> trigger(full, older_than_a_minute).describe()
    'trigger by full, evict by older_than_a_minute'
    """
    return Trigger(trigger, evict, columns)  # type: ignore[arg-type]  # __post_init__ reads names
