"""What an operator holds and has done."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of counters; printing it shows them line by line."""

    tuples: int
    late: dict[str, int]
    pending: int
    bad: int
    keys: int
    slices: int
    kept_tuples: int
    windows: int
    updates: int
    retractions: int
    update_combines: int
    merge_combines: int
    state_bytes: int
    watermark: int

    def __str__(self) -> str:
        return "\n".join(f"{f.name.replace('_', ' '):>16}: {getattr(self, f.name)}" for f in fields(self))
