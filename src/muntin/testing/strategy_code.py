"""Windows that a user might write: functions, and the three classes."""

from __future__ import annotations

from typing import Any

from muntin.windows import ContextFree, ForwardContextAware, ForwardContextFree


def begin_at_b(record: Any) -> tuple[int, int]:
    """A window begins where b is true, and the oldest one ends where b is false."""
    return (1, 0) if record["b"] else (0, 1 if record["b"] is False else 0)


def turnover(record: Any) -> tuple[int, int]:
    """Some windows end and some begin, overlapping."""
    value = record["i"] or 0
    return int(value > 0), abs(value) % 3


def three_or_more(buffer: Any) -> bool:
    """Fires with three tuples."""
    return len(buffer) >= 3


def last_is_b(buffer: Any) -> bool:
    """Fires with a tuple that has b."""
    return buffer[-1]["b"] is True


def keep_four(buffer: Any) -> int:
    """Leaves the last four."""
    return max(0, len(buffer) - 4)


def keep_since_b(buffer: Any) -> int:
    """All before the last record where b is false leave."""
    marks = [number for number, record in enumerate(buffer) if record["b"] is False]
    return marks[-1] if marks else 0


class Uneven(ContextFree):
    """Shifts of 3 and 4 units, and weeks of 7 over them."""

    def __init__(self, hours: int, emit_empty: bool) -> None:
        self.unit = hours
        self.emit_empty = emit_empty

    def __repr__(self) -> str:
        return f"Uneven({self.unit}, {self.emit_empty})"

    def next_edge(self, time: int) -> int:
        week, rest = divmod(time, 7 * self.unit)
        return 7 * self.unit * week + (3 * self.unit if rest < 3 * self.unit else 7 * self.unit)

    def containing(self, time: int) -> list[tuple[int, int]]:
        start = time // (7 * self.unit) * 7 * self.unit
        middle, end = start + 3 * self.unit, start + 7 * self.unit
        return [(start, end), (start, middle) if time < middle else (middle, end)]


class EveryThird(ForwardContextFree):
    """Every third record begins a window that takes five records."""

    def __repr__(self) -> str:
        return "EveryThird()"

    def initial_state(self) -> int:
        return 0

    def observe(self, state: int, record: Any) -> tuple[int, int, int]:
        return state + 1, int(state % 3 == 0), int(state >= 5 and state % 3 == 2)


class AroundB(ForwardContextAware):
    """Where b is true: the two records before it, and itself."""

    columns = ("b",)

    def __repr__(self) -> str:
        return "AroundB()"

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state, [(max(0, record.rank - 2), record.rank + 1)] if record["b"] else []

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


class Visits(ForwardContextFree):
    """Sessions that end 4 units after their last record, or start one unit before each record with b."""

    columns = ("b",)

    def __init__(self, unit: int) -> None:
        self.unit = unit

    def __repr__(self) -> str:
        return f"Visits({self.unit})"

    def observe(self, state: Any, record: Any) -> tuple[Any, Any, Any]:
        begins = [record.time - self.unit] if record["b"] else int(state is None)
        return record.time, begins, 0

    def next_moment(self, state: Any) -> int | None:
        return None if state is None else state + 4 * self.unit + 1

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, Any, Any]:
        return None, 0, [moment.time - 1] * 50


class Ticks(ForwardContextFree):
    """At every multiple of 5 units a window ends and another begins, with records or without."""

    def __init__(self, unit: int) -> None:
        self.length = 5 * unit

    def __repr__(self) -> str:
        return f"Ticks({self.length // 5})"

    def observe(self, state: Any, record: Any) -> tuple[Any, Any, Any]:
        if state is None:
            return record.time // self.length, [record.time // self.length * self.length], 0
        return state, 0, 0

    def next_moment(self, state: Any) -> int | None:
        return None if state is None else (state + 1) * self.length

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, Any, Any]:
        return state + 1, 1, 1


class Glances(ForwardContextAware):
    """At every multiple of 6 units the last three records; the two before the last at each record with b."""

    columns = ("b",)

    def __init__(self, unit: int) -> None:
        self.length = 6 * unit

    def __repr__(self) -> str:
        return f"Glances({self.length // 6})"

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, ...]]]:
        after = max(state or 0, record.time // self.length * self.length + self.length)
        before = record.rank - 3
        return after, [(before, before + 2)] if record["b"] and before >= 0 else []

    def next_moment(self, state: Any) -> int | None:
        return None if state is None else int(state)

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, list[tuple[int, ...]]]:
        return state + self.length, [(max(0, moment.rank - 3), moment.rank)]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 3)
