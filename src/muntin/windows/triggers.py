"""Non-deterministic windows of the user's own: a buffer of records, a trigger and an evictor [cutty §3.2]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, overload

from muntin.errors import UserCodeError
from muntin.timeline import SpanLike
from muntin.windows.arguments import constructor
from muntin.windows.base import Context
from muntin.windows.context_checks import KeyPositions
from muntin.windows.cutty import ByFunctions, column_names, function_name, require_callable
from muntin.windows.lookback import edges_fit, first_edge_after, last_edges
from muntin.windows.records import Record, cuts_of_user_code, guarded, natural, records_of, skip_or_raise
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import fail, flag, positive_span, same_kind, text, time_offset


class Buffer(Sequence[Record]):
    """The records that a trigger looks at, oldest first; read only.

    `time` is that of the newest record or, for a trigger in time, of the edge. A record is made when it
    is first read. Adding and evicting take O(1).

    >>> buffer = Buffer(lambda i: Record({}, time=10 * i, rank=i), begin=0, end=2)
    >>> buffer.append(20)
    >>> buffer.evict(1)
    >>> len(buffer), buffer[0].rank, buffer[-1].time, buffer.time
    (2, 1, 20, 20)
    """

    __slots__ = ("_begin", "_end", "_made", "_record", "time")

    def __init__(self, record: Callable[[int], Record], begin: int, end: int) -> None:
        self._record, self._begin, self._end = record, begin, end
        self._made: dict[int, Record] = {}
        self.time = 0

    def append(self, time: int) -> None:
        """Add the next record, of this time; for the window only."""
        self._end += 1
        self.time = time

    def evict(self, count: int) -> None:
        """Remove the oldest records; for the window only."""
        begin = min(self._begin + count, self._end)
        for place in range(self._begin, begin):
            self._made.pop(place, None)
        self._begin = begin

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[Record]:
        return map(self._at, range(self._begin, self._end))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self._at(self._begin + i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"the buffer holds {len(self)} records: got the index {index}")
        return self._at(index + (self._begin if index >= 0 else self._end))

    def _at(self, place: int) -> Record:
        record = self._made.get(place)
        if record is None:
            record = self._made[place] = self._record(place)
        return record


class _Buffered(ByFunctions):
    """Base: windows over a buffer of records; the context of a key says which records are in it."""

    __slots__ = ()

    evict: Callable[[Buffer], int]
    context: ClassVar[Context] = Context.FORWARD_AWARE
    constructor: ClassVar[str] = "trigger"

    def _evicted(self, buffer: Buffer, tuples: Tuples, trigger: Callable[[Buffer], bool] | None) -> bool:
        """Evict records; returns whether the buffer is a window: not empty, and any trigger is true."""
        if not len(buffer):
            return False
        seen = buffer[-1]
        try:
            leaving = guarded(self, function_name(self.evict), seen, lambda: self.evict(buffer))
            buffer.evict(natural(leaving, self, "the number of evicted records", seen))
            if not len(buffer) or trigger is None:
                return len(buffer) > 0
            return guarded(self, function_name(trigger), seen, lambda: bool(trigger(buffer)))
        except UserCodeError as error:
            skip_or_raise(tuples, error)
            return False


def _record(record_at: Callable[[int, int], Record], base: int, i: int) -> Record:
    return record_at(i, base)


@dataclass(frozen=True, slots=True)
class Trigger(_Buffered):
    """The buffer of records, whenever a record fires the trigger.

    Each record joins the buffer, `evict(buffer)` returns the number of the oldest records
    that leave it, and when `trigger(buffer)` is true the buffer is a window; if `exclusive`,
    without the record that fires. An empty buffer is no window.

    >>> window = Trigger(lambda b: len(b) == 2, lambda b: max(0, len(b) - 2))
    >>> window.cut(window.initial(1), Tuples.of([1, 2, 3]), upto=9).intervals()
    [(1, 3), (2, 4)]
    """

    trigger: Callable[[Buffer], bool]
    evict: Callable[[Buffer], int]
    columns: tuple[str, ...] = ()
    exclusive: bool = False

    context_fields: ClassVar[tuple[str, ...]] = ("base", "begin", "seen")

    def __post_init__(self) -> None:
        require_callable(self.trigger, "trigger")
        require_callable(self.evict, "evict")
        self._settle(columns=column_names(self.columns), exclusive=flag(self.exclusive, "exclusive"))

    def describe(self) -> str:
        fires = ", before the record that fires" if self.exclusive else ""
        return f"trigger by {function_name(self.trigger)}, evict by {function_name(self.evict)}{fires}"

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows: list[tuple[int, ...]] = []
        record_at = records_of(tuples)
        offsets, times, ranks = tuples.offsets.tolist(), tuples.time.tolist(), tuples.rank.tolist()
        for segment, (base, begin, seen) in enumerate(contexts.tolist()):
            lo, hi = offsets[segment], offsets[segment + 1]
            if lo == hi:
                continue
            low = ranks[lo]
            base, begin, seen = (low, low, low) if base < 0 else (base, begin, seen)
            zero = lo - low
            buffer = Buffer(partial(_record, record_at, base), zero + begin, zero + seen)
            for i in range(zero + seen, hi):
                buffer.append(times[i])
                if not self._evicted(buffer, tuples, self.trigger):
                    continue
                first, end = ranks[i] + 1 - len(buffer), ranks[i] + (not self.exclusive)
                if first < end:
                    # The record that fires is the first one after an exclusive window.
                    complete_at = times[i] + 1
                    stop = times[i] if self.exclusive else complete_at
                    rows.append((segment, first, end, times[lo + first - low], stop, complete_at))
            seen = ranks[hi - 1] + 1
            contexts[segment] = (base, seen - len(buffer), seen)
        return cuts_of_user_code(rows)


@dataclass(frozen=True, slots=True)
class TimedTrigger(_Buffered):
    """The buffer of records at every edge offset + k * every after the first tuple.

    `evict` is called at each record and at each edge; the trigger, if there is one, at each edge.

    >>> window = TimedTrigger(lambda b: max(0, len(b) - 2), 10)
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 3, 14]), upto=30)
    >>> cuts.intervals(), cuts.begin.tolist(), cuts.end.tolist()
    ([(2, 10), (3, 20), (3, 30)], [1, 2, 2], [3, 4, 4])
    """

    evict: Callable[[Buffer], int]
    every: int
    offset: int = 0
    trigger: Callable[[Buffer], bool] | None = None
    columns: tuple[str, ...] = ()

    timed: ClassVar[bool] = True
    unprompted: ClassVar[bool] = True
    context_fields: ClassVar[tuple[str, ...]] = ("base", "begin", "seen", "edge")

    def __post_init__(self) -> None:
        if self.trigger is not None:
            require_callable(self.trigger, "trigger")
        require_callable(self.evict, "evict")
        every, offset = positive_span(self.every, "every"), time_offset(self.offset)
        same_kind(every=every, offset=offset)
        columns = column_names(self.columns)
        self._settle(every=every, offset=type(offset)(offset % every), columns=columns)

    def describe(self) -> str:
        fires = "" if self.trigger is None else f" by {function_name(self.trigger)}"
        return self._described(
            f"trigger{fires} every {text(self.every)}, evict by {function_name(self.evict)}"
        )

    @property
    def period(self) -> int:
        return self.every

    def spans(self) -> tuple[int, ...]:
        return self.every, self.offset

    def complete_at(self, newest: int) -> int:
        return first_edge_after(newest, self.every, self.offset)

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows: list[tuple[int, ...]] = []
        record_at = records_of(tuples)
        offsets, times, ranks = tuples.offsets.tolist(), tuples.time.tolist(), tuples.rank.tolist()
        until = last_edges(self, contexts, tuples, ending).tolist()
        for segment, (base, begin, seen, edge) in enumerate(contexts.tolist()):
            lo, hi = offsets[segment], offsets[segment + 1]
            if lo == hi:
                continue
            low = ranks[lo]
            if base < 0:
                base = begin = seen = low
                edge = self.complete_at(times[lo])
            i = lo + seen - low
            buffer = Buffer(partial(_record, record_at, base), lo + begin - low, i)
            while i < hi or edge <= until[segment]:
                if i < hi and times[i] < edge:
                    buffer.append(times[i])
                    self._evicted(buffer, tuples, None)
                    i += 1
                elif edge <= until[segment]:
                    buffer.time = edge
                    if self._evicted(buffer, tuples, self.trigger):
                        first = i - len(buffer)
                        rows.append((segment, low + first - lo, low + i - lo, times[first], edge, edge))
                    edge += self.every
                else:
                    break
            seen = low + i - lo
            contexts[segment] = (base, seen - len(buffer), seen, edge)
        return cuts_of_user_code(rows)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        return TupleDriven.contexts_fit(self, contexts, positions) and edges_fit(contexts, positions)


@constructor
def trigger(
    trigger: Callable[[Buffer], bool] | None = None,
    evict: Callable[[Buffer], int] | None = None,
    *,
    every: SpanLike | None = None,
    offset: SpanLike = 0,
    exclusive: bool = False,
    columns: str | Sequence[str] = (),
) -> Trigger | TimedTrigger:
    """Windows over a buffer of records: `evict` removes records, `trigger` emits the buffer.

    With `every`, the buffer is emitted at every multiple of it, if `trigger`, when there is one, is
    true. With `exclusive`, the record that fires is not in its window.

    >>> def full(buffer):
    ...     return len(buffer) >= 3
    >>> def older_than_a_minute(buffer):
    ...     return sum(buffer.time - record.time > 60_000_000 for record in buffer)
    >>> trigger(full, older_than_a_minute).describe()
    'trigger by full, evict by older_than_a_minute'
    >>> trigger(evict=older_than_a_minute, every="5 seconds").describe()
    'trigger every 5 seconds, evict by older_than_a_minute'
    """
    require_callable(evict, "evict")
    if every is None:
        if offset != 0:
            raise fail("offset must come with every", offset, "only triggers in time lie on a grid")
        return Trigger(trigger, evict, columns, exclusive)  # type: ignore[arg-type]  # __post_init__ checks
    if flag(exclusive, "exclusive"):
        raise fail("exclusive must be left out with every", exclusive, "no record fires a trigger in time")
    return TimedTrigger(evict, every, offset, trigger, columns)  # type: ignore[arg-type]  # __post_init__ checks
