"""What an operator holds and has done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from muntin.timeline import INF

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of counters; printing it shows them line by line."""

    tuples: int
    late: dict[str, int]
    pending: int
    bad: int
    errors: int
    """Errors that on_error="skip" skipped: values that are null, and records that a window ignored."""
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

    @classmethod
    def of(cls, operator: SlicingOperator) -> Stats:
        """What this operator holds and has done."""
        m, binding = operator.metrics, operator.binding
        done = (m.windows, m.updates, m.retractions, m.update_combines, m.merge_combines)
        late = {q.name: q.late for q in operator.live.queries}
        if binding is None:
            return cls(0, late, 0, m.bad, m.errors, 0, 0, 0, *done, 0, operator.watermark, {})
        slices, keys = operator.slices, operator.keys
        bound = zip(operator.spec.aggregates, binding.partials.bound, strict=True)
        return cls(
            m.tuples,
            late,
            slices.pending,
            m.bad,
            m.errors,
            len(keys),
            len(slices.table),
            0 if slices.kept is None else len(slices.kept.tuples),
            *done,
            slices.nbytes + operator.windows.nbytes + keys.nbytes,
            operator.watermark,
            {name: b.runs(False) for (name, _), b in bound},
        )

    def __str__(self) -> str:
        return "\n".join(f"{f.name.replace('_', ' '):>16}: {self._shown(f.name)}" for f in fields(self))

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        if name == "watermark" and abs(value) == INF:
            return "none yet" if value < 0 else "the end"
        if isinstance(value, dict):
            return ", ".join(f"{k} {v}" for k, v in value.items())
        return f"{value:,}"
