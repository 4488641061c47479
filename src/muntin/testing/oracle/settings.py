"""What the oracle needs to know of a query, read from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Settings", "settings_of"]


@dataclass(frozen=True)
class Settings:
    """A query as plain values. Spans are int: microseconds, or units of an integer time column."""

    windows: Mapping[str, Any]
    aggregates: Mapping[str, Any]
    keys: tuple[str, ...]
    time: str
    lateness: int = 0
    early_each_batch: bool = False
    early_every: int | None = None
    bad: str = "fail"
    forget: int | None = None


def settings_of(query: Any) -> Settings:
    """The settings of a query as the user declared it.

    >>> import muntin as mt
    >>> from muntin import aggregates as a, windows as w
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t", allowed_lateness=5)
    >>> settings_of(query).lateness
    5
    """
    period = getattr(query.early, "period", None)
    return Settings(
        windows=dict(query.windows),
        aggregates=dict(query.aggregates),
        keys=tuple(query.keys),
        time=query.time,
        lateness=int(query.allowed_lateness),
        early_each_batch=query.early is not None and period is None,
        early_every=None if period is None else int(period),
        bad=query.bad,
        forget=None if query.forget_keys_after is None else int(query.forget_keys_after),
    )
