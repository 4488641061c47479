"""The plan of a query, and its explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from muntin.aggregates.base import Aggregate, Bound
from muntin.aggregates.filtering import bind
from muntin.aggregates.udaf import UserDefined
from muntin.display import html_folded, html_of_lines, named_lines
from muntin.errors import QueryError, nearest, value_text
from muntin.expressions import types as types_of
from muntin.planning.progressions import edges_per_unit
from muntin.planning.rules import SHUFFLE, TREES, Decision, Rule
from muntin.planning.summary import length_text, summary
from muntin.planning.workload import Workload
from muntin.query import MAX_AHEAD, MAX_WINDOWS, Every, OnChange, QuerySpec
from muntin.timeline import Micros
from muntin.windows.tuple_driven import BLOCK_BITS

HINT = "explain(verbose=True), or muntin explain --verbose, shows every decision and its reason"

STORES = ("lazy", "prefix", "two_stacks", "daba", "flatfat", "fiba")


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions that serve a workload."""

    workload: Workload
    decisions: tuple[Decision, ...]
    shuffle: Decision
    """What crosses a shuffle between partitions and key groups: slices or tuples."""
    forced: bool = False
    """Whether the user chose the store."""

    @property
    def keeps_tuples(self) -> bool:
        """Whether tuples are stored in addition to slices."""
        return self.decisions[0].answer == "yes"

    @property
    def splits_slices(self) -> bool:
        """Whether slices are cut again from their tuples."""
        return self.decisions[1].answer == "yes"

    @property
    def removes_tuples(self) -> str:
        """How a tuple leaves a slice: NO if none does, INVERT, CHECK or RECOMPUTE."""
        return self.decisions[2].answer

    @property
    def sends_slices(self) -> bool:
        """Whether slices cross a shuffle between partitions and key groups, and not tuples."""
        return self.shuffle.answer == "slices"

    @property
    def store(self) -> str:
        """How slices are combined into windows."""
        return self.decisions[-1].answer


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `explain()` returns: print it, or look at `plan`."""

    plan: Plan
    summary: tuple[tuple[str, str], ...]
    """What is computed, what is kept in memory, and when results are emitted; each with its name."""
    details: str
    """The settings, the characteristics of the workload, and each decision with its reason."""
    verbose: bool = False
    """Whether the text has the details."""

    @property
    def text(self) -> str:
        """What is printed."""
        return f"{named_lines(self.summary)}\n{self.details if self.verbose else HINT}"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html_of_lines(self.summary) + html_folded("every decision and its reason", self.details)


def make_plan(
    query: QuerySpec,
    in_order: bool = False,
    store: str | None = None,
    bound: tuple[Bound, ...] | None = None,
) -> Plan:
    """Decide how the query is served; `bound` are its aggregates once the types of the input are known."""
    if store is not None and (not isinstance(store, str) or store not in STORES):
        store_text = f'"{store}"' if isinstance(store, str) else value_text(store)
        raise QueryError(
            f"there is no store {store_text}; choose {' or '.join(STORES)}.{nearest(store, STORES)}"
        )
    workload = Workload.of(query, in_order, bound)
    if store == "prefix" and workload.not_invertible:
        name = workload.not_invertible[0]
        aggregate = dict(workload.aggregates)[name].describe()
        raise QueryError(
            'store="prefix" needs aggregates that can be subtracted without loss, as counts and sums of '
            f'integers or decimals: got "{name}", {aggregate}; use store="flatfat", or leave store= out'
        )
    decisions = [decide(question, table, workload) for question, table in TREES]
    if store is not None:
        decisions[-1] = Decision(decisions[-1].question, store, "forced by store=", "your choice")
    shuffle = decide("what crosses a shuffle?", SHUFFLE, workload)
    return Plan(workload, tuple(decisions), shuffle, store is not None)


def decide(question: str, table: tuple[Rule, ...], workload: Workload) -> Decision:
    """The first row of the table that applies; the last row always does."""
    applied = ((rule, rule.applies(workload)) for rule in table)
    rule, names = next((rule, names) for rule, names in applied if names)
    return Decision(
        question, rule.answer, rule.reason, rule.section, names if isinstance(names, tuple) else ()
    )


def explain(
    query: QuerySpec,
    *,
    in_order: bool = False,
    store: str | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    verbose: bool = False,
) -> Explanation:
    """What runs, what is kept and when results are emitted; `verbose` with each decision and its reason.

    With the types of the input, user-defined aggregates are compiled to see whether they can be.
    """
    schema = None if types is None else pa.schema(types)
    bound = None if schema is None else tuple(_bound(a, schema) for _, a in query.shown_aggregates())
    plan = make_plan(query, in_order, store, bound)
    lines = ["query"]
    lines += [f"  {name}: {value}" for name, value in settings(query)]
    lines.append(f"  tuples from the future: {_future(query, in_order, types)}")
    lines.append("workload")
    lines += [f"  {name}: {value}" for name, value in plan.workload.characteristics()]
    lines.append("decisions")
    lines += [f"  {decision}" for decision in plan.decisions]
    lines.append("slices")
    lines += [f"  {line}" for line in slice_rates(plan.workload)]
    lines.append("aggregates")
    lines += [f"  {name}: {runs_as(a, types)}" for name, a in plan.workload.aggregates]
    return Explanation(plan, summary(query, plan, in_order), "\n".join(lines), verbose)


def settings(query: QuerySpec) -> list[tuple[str, str]]:
    """The settings of the query other than windows and aggregates, defaults included."""
    early = "none"
    if isinstance(query.early, Every):
        early = f"whenever the watermark passes a multiple of {length_text(query.early.period)}"
    elif query.early is not None:
        early = "after each batch"
    idle = query.idle_after
    return [
        ("time", query.time),
        ("keys", ", ".join(query.keys) or "none"),
        ("allowed lateness", length_text(query.allowed_lateness)),
        ("early results", early),
        ("late tuples", {"drop": "counted and dropped", "route": "counted and routed"}[query.late]),
        (
            "bad tuples",
            {"fail": "an error", "skip": "counted and skipped"}.get(query.bad, "counted and routed"),
        ),
        (
            "a silent stream",
            "stays open" if idle is None else f"closes its windows after {length_text(idle)}",
        ),
        ("windows in a step", f"at most {_most(query.max_windows)}"),
        *([("silent keys", silent_keys(query))] if query.keys or query.forget_keys_after else []),
    ]


def _most(given: int | None) -> str:
    if given is None:
        return (
            f"{MAX_WINDOWS:,} of each name, or 1,000 for each slice or key; max_windows= sets another limit"
        )
    return f"{given:,} of each name, as max_windows says"


def _future(query: QuerySpec, in_order: bool, types: Mapping[str, pa.DataType] | None) -> str:
    """How far ahead of the clock a tuple may be, and why."""
    if query.max_ahead is not None:
        return f"bad if more than {length_text(query.max_ahead)} ahead of the clock, as max_ahead says"
    spans = [length for _, w in query.windows if w.measure is None for length in w.spans()]
    known = None if types is None else types.get(query.time)
    if any(length and not isinstance(length, Micros) for length in (*spans, query.allowed_lateness)) or (
        known is not None and pa.types.is_integer(known)
    ):
        return "no limit, since an integer time column has no clock"
    limit = f"bad if more than {length_text(MAX_AHEAD)} ahead of the clock"
    why = "a tuple further ahead would make all later ones late; max_ahead= sets another limit"
    if in_order:
        return f"{limit}, as the watermark follows the data and {why}"
    return f"{limit} if the watermark follows the data (watermark_lag), as {why}; otherwise no limit"


def silent_keys(query: QuerySpec) -> str:
    """What becomes of keys that have no more tuples."""
    landmarks = [name for name, window in query.windows if window.endless]
    holding = [name for name, window in query.windows if window.holds_keys and name not in landmarks]
    reasons = []
    if holding and query.forget_keys_after is None:
        reasons.append(
            f"held for ever by {', '.join(holding)}, so memory grows with the number of keys; "
            'forget_keys_after="7 days", for example, forgets them'
        )
    elif holding:
        after = length_text(query.forget_keys_after or 0)
        reasons.append(
            f"forgotten {after} after their last tuple, when open windows of {', '.join(holding)} close "
            "and empty ones end; a later tuple counts as one of a new key"
        )
    if landmarks:
        reasons.append(
            f"held for ever by {', '.join(landmarks)}, whose windows hold all tuples since their start, "
            "so memory grows with the number of keys"
        )
    if isinstance(query.emit, OnChange):
        duration_of_values = "held for ever" if query.forget_keys_after is None else "held as long"
        reasons.append(
            f"the values of their last windows are {duration_of_values}, as emit=mt.on_change() compares them"
        )
    return "; ".join(reasons) or "forgotten when the windows around their tuples are over"


def runs_as(aggregate: Aggregate, types: Mapping[str, pa.DataType] | None) -> str:
    """How an aggregate is computed."""
    if types is not None:
        how = _bound(aggregate, pa.schema(types)).runs(True)
    elif isinstance(aggregate, UserDefined):
        how = "Python functions; explain(schema=...) tells whether they are compiled"
    else:
        how = "compiled"
    return f"{aggregate.describe()}, {aggregate.kind}, {how}"


def _bound(aggregate: Aggregate, schema: pa.Schema) -> Bound:
    return bind(aggregate, tuple(types_of(aggregate.reads, schema)))


def slice_rates(workload: Workload) -> list[str]:
    """Slices per unit of event time and key that the fixed edges make, and what else cuts."""
    lines = []
    windows = [w for _, w in workload.windows]
    periods = [p for w in windows for p in w.progressions(workload.in_order)]
    if periods:
        timed = any(isinstance(p, Micros) for _, p in periods)
        rate = edges_per_unit(periods) * (1_000_000 if timed else 1)
        per = "second" if timed else "unit"
        where = "start" if workload.in_order else "start or end"
        lines.append(f"{rate:.4g} per {per} of event time and key, where periodic windows {where}")
    gaps = [w.session_gap for w in windows if w.session_gap is not None]
    if gaps:
        longer = length_text(min(gaps))
        lines.append(f"one more at each gap longer than {longer}, which serves the sessions of all gaps")
    if workload.context_aware:
        lines.append(f"one more where a window of {', '.join(workload.context_aware)} begins or ends")
    if workload.forward_aware:
        names = ", ".join(workload.forward_aware)
        lines.append(
            f"about {2**BLOCK_BITS} tuples in each, since a window of {names} may begin inside: "
            "a split aggregates one slice again [scotty §10.3.3]"
        )
    if not lines:
        lines.append("where windows start and end")
    lines.append(f"about {max(workload.slices_per_window, 1):,.0f} in the window that has the most")
    return lines
