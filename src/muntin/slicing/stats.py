"""What an operator holds and has done."""

from __future__ import annotations

from dataclasses import dataclass, fields

from muntin.timeline import INF


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
    aggregates: dict[str, str]
    """Whether each aggregate is compiled, and why not."""

    def __str__(self) -> str:
        return "\n".join(f"{f.name.replace('_', ' '):>16}: {self._shown(f.name)}" for f in fields(self))

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        if name == "watermark" and abs(value) == INF:
            return "none yet" if value < 0 else "the end"
        if isinstance(value, dict):
            return ", ".join(f"{k} {v}" for k, v in value.items())
        return f"{value:,}"
