"""What `python -m benchmarks spark` compares: queries, and how one asks Spark itself for the same windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muntin import aggregates as a
from muntin.dsl import Query, windows
from muntin.errors import QueryError
from muntin.windows import session, sliding, tumbling
from muntin.windows.base import Window

__all__ = ["CASES", "SCHEMA", "Case", "chosen"]

SCHEMA = "ts timestamp, k long, v long"
TWENTY = range(1, 21)


@dataclass(frozen=True)
class Case:
    """A workload; `goal` is how many times faster than Spark's own windows Muntin shall be."""

    name: str
    told: str
    streaming: bool
    keys: int
    goal: float
    windows: Mapping[str, Window] = field(repr=False)
    own: tuple[str, ...]
    """Spark's own windows, a query for each."""
    plan: str = "auto"
    """Muntin's plan."""

    @property
    def query(self) -> Query:
        """The same in Muntin."""
        return windows(**self.windows).aggregate(total=a.sum("v"), n=a.count()).by("k").on("ts")

    def sql(self, view: str) -> list[str]:
        """The same in Spark's SQL."""
        return [
            f"select k, {window} as window, sum(v) as total, count(*) as n from {view} group by k, {window}"
            for window in self.own
        ]


_TEN = {"ten": tumbling("10 seconds")}
_SLIDE = {"slide": sliding("60 seconds", every="1 second")}
_TWENTY: dict[str, Window] = {f"s{i}": tumbling(f"{i} seconds") for i in TWENTY}
_OWN_TEN = ("window(ts, '10 seconds')",)
_OWN_SLIDE = ("window(ts, '60 seconds', '1 second')",)
_OWN_TWENTY = tuple(f"window(ts, '{i} seconds')" for i in TWENTY)

CASES = (
    Case("B1", "tumbling 10 s, 50 keys", False, 50, 1.0, _TEN, _OWN_TEN),
    Case("B2", "sliding 60 s by 1 s, 50 keys", False, 50, 20.0, _SLIDE, _OWN_SLIDE),
    Case("B3", "20 tumbling at once, 50 keys", False, 50, 8.0, _TWENTY, _OWN_TWENTY),
    Case("S1", "tumbling 10 s, 50 keys", True, 50, 0.9, _TEN, _OWN_TEN),
    Case("S2", "sliding 60 s by 1 s, 50 keys", True, 50, 5.0, _SLIDE, _OWN_SLIDE),
    Case("S3", "sliding 60 s by 1 s, 5,000 keys", True, 5_000, 10.0, _SLIDE, _OWN_SLIDE),
    Case("S4", "20 tumbling at once, 50 keys", True, 50, 8.0, _TWENTY, _OWN_TWENTY),
    Case(
        "S5",
        "session 1 s, 5,000 keys",
        True,
        5_000,
        2.0,
        {"visit": session("1 second")},
        ("session_window(ts, '1 second')",),
    ),
    Case("S6", "tumbling 10 s, 100,000 keys", True, 100_000, 1.0, _TEN, _OWN_TEN),
    Case("S6p", 'the same, plan="packed"', True, 100_000, 1.0, _TEN, _OWN_TEN, "packed"),
)
"""B: bounded. S: streams."""


def chosen(only: tuple[str, ...]) -> list[Case]:
    """The cases whose names begin so.

    >>> [case.name for case in chosen(("B",))]
    ['B1', 'B2', 'B3']
    """
    found = [case for case in CASES if not only or case.name.startswith(only)]
    if not found:
        raise QueryError(f"no workload begins with {', '.join(only)}; there are B1 to B3 and S1 to S6")
    return found
