"""The plan of a query in three lines: what is computed, what is kept, and when results are emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.planning.progressions import edges_per_unit
from muntin.query import Every, OnChange, QuerySpec
from muntin.timeline import Micros, format_span

if TYPE_CHECKING:
    from muntin.planning.plan import Plan

Pairs = tuple[tuple[str, str], ...]

_UNITS = (("second", 1_000_000), ("minute", 60_000_000), ("hour", 3_600_000_000), ("day", 86_400_000_000))
MOST_NAMES = 6
"""The most names of windows that the summary lists."""


def summary(query: QuerySpec, plan: Plan, in_order: bool = False) -> Pairs:
    """What is computed from which slices, what is kept in memory, and when results are emitted."""
    return (
        ("computes", _computes(query, plan)),
        ("keeps", f"{_keeps(plan)}{_keys(query)}"),
        ("emits", _emits(query, in_order)),
    )


def _computes(query: QuerySpec, plan: Plan) -> str:
    names = [name for name, _ in query.windows]
    listed = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        listed += f" and {len(names) - MOST_NAMES} more"
    limited = [(name, one.only) for name, one in query.aggregates if one.only is not None]
    for name, windows in limited[:MOST_NAMES]:
        listed += f"; {name} only over {', '.join(windows)}"
    what = f"{_number(len(query.aggregates), 'aggregate')} over {_number(len(names), 'window')} ({listed})"
    slices = "from slices" if len(names) == 1 else "from shared slices"
    each = f" per {', '.join(query.keys)}" if query.keys else ""
    return f"{what} {slices}{each}: {', '.join(_cuts(plan))}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _cuts(plan: Plan) -> list[str]:
    """How many slices there are, and where."""
    workload, cuts = plan.workload, []
    windows = [window for _, window in workload.windows]
    periods = [period for window in windows for period in window.progressions(workload.in_order)]
    if periods:
        timed = any(isinstance(period, Micros) for _, period in periods)
        cuts.append(_rate(edges_per_unit(periods), timed))
    more = "one more" if periods else "one"
    gaps = [window.session_gap for window in windows if window.session_gap is not None]
    if gaps:
        cuts.append(f"{more} after each silence above {length_text(min(gaps))}")
    if workload.context_aware:
        cuts.append(f"{more} at each edge of {', '.join(workload.context_aware)}")
    return cuts or ["one between two edges of windows"]


def _rate(edges: float, timed: bool) -> str:
    """Edges per microsecond as a rate per second, minute, hour or day; of integer times per unit of time."""
    if not timed:
        return f"{edges:.3g} a unit of time"
    unit, per = next(((unit, per) for unit, per in _UNITS if edges * per > 0.9999), _UNITS[-1])
    return f"{edges * per:.3g} a {unit}"


def _keeps(plan: Plan) -> str:
    workload = plan.workload
    stored = "slices, no tuples"
    if plan.keeps_tuples:
        stored = f"slices; tuples while they can change windows of {', '.join(workload.context_aware)}"
    elif workload.non_commutative and not workload.in_order:
        stored = f"slices, with every lifted tuple for {', '.join(workload.non_commutative)}"
    growing = [name for name in workload.holistic if name not in workload.non_commutative]
    return stored + (f"; values of tuples for {', '.join(growing)}" if growing else "")


def _keys(query: QuerySpec) -> str:
    if not query.keys:
        return ""
    forever = [name for name, window in query.windows if window.endless]
    if query.forget_keys_after is not None:
        stored = f"; silent keys for {length_text(query.forget_keys_after)}"
        return stored + (f", but with {', '.join(forever)} for ever" if forever else "")
    forever = [name for name, window in query.windows if window.holds_keys or window.endless]
    if isinstance(query.emit, OnChange):
        return "; every key for ever, with the values of its last windows (forget_keys_after= limits it)"
    if forever:
        return f"; every key for ever, for {', '.join(forever)} (forget_keys_after= limits it)"
    return "; keys until the windows around their tuples are over"


def _emits(query: QuerySpec, in_order: bool) -> str:
    when = f"a window when {'a tuple' if in_order else 'the watermark'} reaches its end"
    if isinstance(query.emit, OnChange):
        when += ", if its values differ from the window before"
    if isinstance(query.early, Every):
        when += f", and early results every {length_text(query.early.period)}"
    elif query.early is not None:
        when += ", and early results after each batch"
    late = "counted and routed" if query.late == "route" else "counted and dropped"
    if query.allowed_lateness:
        lateness = length_text(query.allowed_lateness)
        late = f"late tuples change it for {lateness} more, then they are {late}"
    else:
        late = "a tuple out of order is an error" if in_order else f"late tuples are {late}"
    return f"{when}; {late}"


def length_text(length: int) -> str:
    """A length of time, or a number of units of an integer time column."""
    return format_span(length) if isinstance(length, Micros) else str(length)
