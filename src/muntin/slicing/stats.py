"""What an operator holds and has done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from muntin.display import html_of_lines
from muntin.timeline import INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.served import ServedWindows
    from muntin.slicing.state import Header, State


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
    lifts: int
    update_combines: int
    merge_combines: int
    inverts: int
    recomputed_tuples: int
    splits: int
    merges: int
    state_bytes: int
    watermark: int
    aggregates: dict[str, str]
    """Whether each aggregate is compiled, and why not."""

    @classmethod
    def unbound(cls, header: Header, served: ServedWindows) -> Stats:
        """The counters of an operator that has seen no input."""
        m = header.metrics
        late = {window.name: 0 for window in served.all}
        zeros: dict[str, Any] = dict.fromkeys((f.name for f in fields(cls)), 0)
        known = {"late": late, "bad": m.bad, "errors": m.errors, "watermark": header.watermark}
        return cls(**(zeros | known | {"aggregates": {}}))

    @classmethod
    def of(cls, plan: BoundPlan, state: State) -> Stats:
        """The counters of a state."""
        m = state.metrics
        bound = zip(plan.spec.aggregates, plan.binding.results, strict=True)
        return cls(
            m.tuples,
            {window.name: state.late_counts.get(window.name, 0) for window in plan.served.all},
            sum(int(late.rows.n.sum()) for late in state.late_tuples),
            m.bad,
            m.errors,
            len(state.keys),
            len(state.slices),
            0 if state.tuples is None else len(state.tuples),
            m.windows,
            m.updates,
            m.retractions,
            m.lifts,
            m.update_combines,
            m.merge_combines,
            m.inverts,
            m.recomputed_tuples,
            m.splits,
            m.merges,
            state.nbytes(plan),
            state.watermark,
            {name: b.runs(False) for (name, _), b in bound},
        )

    def __str__(self) -> str:
        return "\n".join(f"{f.name.replace('_', ' '):>16}: {self._shown(f.name)}" for f in fields(self))

    def _repr_html_(self) -> str:
        return html_of_lines([(f.name.replace("_", " "), self._shown(f.name)) for f in fields(self)])

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        if name == "watermark" and abs(value) == INF:
            return "none yet" if value < 0 else "the end"
        if isinstance(value, dict):
            return ", ".join(f"{k} {v}" for k, v in value.items())
        return f"{value:,}"
