"""Windows and aggregates in Python that the transcripts name."""

from __future__ import annotations

from typing import Any

from muntin import aggregates as a
from muntin import windows as w


def _begins_and_ends(record: Any) -> tuple[int, int]:
    return record["begins"], record["ends"]


def _surplus(buffer: Any) -> int:
    return max(0, len(buffer) - 3)


def _full(buffer: Any) -> bool:
    return len(buffer) == 3


class Doubling(w.ContextFree):
    """[1, 2), [2, 4), [4, 8) and so on; nothing before 1."""

    def next_edge(self, time: int) -> int:
        return 1 if time < 1 else 1 << time.bit_length()

    def containing(self, time: int) -> list[tuple[int, int]]:
        return [] if time < 1 else [(1 << (time.bit_length() - 1), 1 << time.bit_length())]


class DoublingAndEmpty(Doubling):
    """Windows without a tuple come out as well."""

    emit_empty = True


class Pairs(w.ForwardContextFree):
    """Two records each."""

    def initial_state(self) -> int:
        return 0

    def observe(self, state: int, record: Any) -> tuple[int, int, int]:
        even = int(state % 2 == 0)
        return state + 1, even, even


class BeforeZero(w.ForwardContextAware):
    """The two records before one with the value 0."""

    columns = ("v",)

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        complete = record["v"] == 0 and record.rank >= 2
        return state, [(record.rank - 2, record.rank)] if complete else []

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


class Visits(w.ForwardContextFree):
    """Sessions with a gap of 5, which the watermark ends."""

    def observe(self, state: Any, record: Any) -> tuple[Any, int, int]:
        return record.time, int(state is None), 0

    def next_moment(self, state: Any) -> int | None:
        return None if state is None else state + 6

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, int, list[int]]:
        return None, 0, [state + 5]


class LastTwo(w.ForwardContextAware):
    """The last two records at every multiple of 10."""

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state or record.time // 10 * 10 + 10, []

    def next_moment(self, state: Any) -> int | None:
        return None if state is None else int(state)

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state + 10, [(max(0, moment.rank - 2), moment.rank)]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


class Earlier(w.ForwardContextAware):
    """With each fourth record on, the first two of the last four."""

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state, [(record.rank - 3, record.rank - 1)] if record.rank >= 3 else []


class Days(w.ForwardContextFree):
    """Every 10, whatever the records are: windows that know their edges in time."""

    def observe(self, state: Any, record: Any) -> tuple[Any, Any, int]:
        day = record.time // 10
        return (day, 0, 0) if state is not None else (day, [10 * day], 0)

    def next_moment(self, state: Any) -> int | None:
        return None if state is None else 10 * state + 10

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, int, int]:
        return state + 1, 1, 1


NAMED = {
    "discretized": w.discretize(_begins_and_ends, columns=["begins", "ends"]),
    "full_buffer": w.trigger(_full, _surplus),
    "full_buffer_before_the_record": w.trigger(_full, _surplus, exclusive=True),
    "buffer_every_ten": w.trigger(evict=_surplus, every=10),
    "full_buffer_every_ten": w.trigger(_full, _surplus, every=10, offset=2),
    "doubling": Doubling(),
    "doubling_and_empty": DoublingAndEmpty(),
    "pairs": Pairs(),
    "before_zero": BeforeZero(),
    "visits": Visits(),
    "last_two": LastTwo(),
    "earlier": Earlier(),
    "days": Days(),
    "product": a.aggregate("v", lift=int, combine=lambda p, q: p * q, name="product"),
    "joined": a.aggregate("v", lift=str, combine=lambda p, q: p + q, commutative=False, name="joined"),
}
