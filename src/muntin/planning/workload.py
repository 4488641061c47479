"""The four characteristics of a workload that decide how it is served, as in [scotty §4]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from muntin.aggregates.base import Aggregate, Bound
from muntin.aggregates.partials.step_codes import FLOAT_SUM, NONE
from muntin.aggregates.udaf import UserDefined
from muntin.planning.progressions import edges_per_unit
from muntin.query import QuerySpec
from muntin.windows.base import Context, Window


@dataclass(frozen=True)
class Workload:
    """Stream order, aggregate properties, measures and window contexts of a query."""

    in_order: bool
    windows: tuple[tuple[str, Window], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    """Those that some window shows."""
    lateness: int
    bound: tuple[Bound, ...] | None = None
    """The aggregates over the types of the input, if those are known."""
    early: bool = False
    """Whether windows are emitted before they are complete."""
    routes_late: bool = False
    """Whether late tuples are routed to an output."""

    @classmethod
    def of(cls, query: QuerySpec, in_order: bool, bound: tuple[Bound, ...] | None = None) -> Workload:
        """The workload of a query over a stream that is in order, or not."""
        lateness, early = int(query.allowed_lateness), query.early is not None
        shown = query.shown_aggregates()
        return cls(in_order, query.windows, shown, lateness, bound, early, query.late == "route")

    @cached_property
    def non_commutative(self) -> tuple[str, ...]:
        """Aggregates whose combine depends on the order of tuples."""
        return tuple(name for name, a in self.aggregates if not a.commutative)

    @cached_property
    def holistic(self) -> tuple[str, ...]:
        """Aggregates whose partials grow with the tuples."""
        return tuple(name for name, a in self.aggregates if a.kind == "holistic")

    @cached_property
    def not_invertible(self) -> tuple[str, ...]:
        """Aggregates that cannot take tuples out again without loss, as far as the types are known."""
        exact = [True] * len(self.aggregates) if self.bound is None else [b.invertible for b in self.bound]
        return tuple(n for (n, a), e in zip(self.aggregates, exact, strict=True) if not (a.invertible and e))

    @cached_property
    def removable(self) -> bool:
        """Whether it is known that tuples can leave a slice, unless they matter to its value."""
        return self.bound is not None and all(b.removable for b in self.bound)

    @cached_property
    def user_defined(self) -> tuple[str, ...]:
        """Aggregates that are combined by the user's functions."""
        return tuple(name for name, a in self.aggregates if isinstance(a, UserDefined))

    @cached_property
    def exact(self) -> bool:
        """Whether it is known that every aggregate is one of ours that is inverted without loss."""
        return self.bound is not None and not self.not_invertible and not self.user_defined

    @cached_property
    def _codes(self) -> tuple[int, ...]:
        """The codes of the partials, as far as they are known."""
        return tuple(getattr(p, "step_code", NONE) for bound in self.bound or () for p in bound.partials)

    @cached_property
    def in_words(self) -> bool:
        """Whether it is known that all partials are numbers that compiled trees can combine."""
        return bool(self._codes) and NONE not in self._codes

    @cached_property
    def in_exact_words(self) -> bool:
        """Whether, in addition, the result is the same in any order of combining: no sum of floats."""
        return self.in_words and FLOAT_SUM not in self._codes

    @cached_property
    def forward_aware(self) -> tuple[str, ...]:
        """Windows that may begin before the tuples that reveal them."""
        return tuple(n for n, w in self.windows if w.context is Context.FORWARD_AWARE)

    @cached_property
    def context_aware(self) -> tuple[str, ...]:
        """Windows that are neither context free nor plain sessions."""
        return tuple(n for n, w in self.windows if w.context is not Context.FREE and w.session_gap is None)

    @cached_property
    def with_empty(self) -> tuple[str, ...]:
        """Windows that are also emitted without tuples."""
        return tuple(n for n, w in self.windows if w.emits_empty)

    @cached_property
    def counting(self) -> tuple[str, ...]:
        """Windows on the count measure."""
        return tuple(n for n, w in self.windows if w.counts_tuples)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Time, count, and the columns that serve as measures."""
        measures = {"count" if w.counts_tuples else w.measure or "time": None for _, w in self.windows}
        return tuple(measures)

    @cached_property
    def slices_per_window(self) -> float:
        """Slices that the window with the most is combined from, as far as the plan can know.

        Where it depends on the rate of tuples, one per millisecond is assumed, or one per unit of integers.
        """
        windows = [w for _, w in self.windows]
        rate = edges_per_unit([p for w in windows for p in w.progressions(self.in_order)])
        return max((w.slices_per_window(rate) for w in windows), default=0.0)

    def characteristics(self) -> list[tuple[str, str]]:
        """The characteristics in words."""
        classes = ", ".join(sorted({a.kind for _, a in self.aggregates}))
        order = "" if not self.non_commutative else f"; order matters to {', '.join(self.non_commutative)}"
        windows = [(f'window "{name}"', f"{w.describe()} ({w.context.value})") for name, w in self.windows]
        return [
            ("stream order", "in order" if self.in_order else "out of order"),
            ("aggregates", classes + order),
            ("measures", ", ".join(self.measures)),
            *windows,
        ]
