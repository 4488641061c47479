"""The decision trees of general stream slicing as first-match tables, as in [scotty §5.1, §5.2]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muntin.planning.workload import Workload


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: its answer, and the reason for it, if it applies."""

    applies: Callable[[Workload], object]
    answer: str
    reason: str
    section: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of the first row that applies, with the names that made it apply."""

    question: str
    answer: str
    reason: str
    section: str
    because_of: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = f" ({', '.join(self.because_of)})" if self.because_of else ""
        return f"{self.question} {self.answer}: {self.reason}{names} [{self.section}]"


NO, YES = "no", "yes"
INVERT, CHECK, RECOMPUTE = "invert", "invert or check", "recompute"

KEEP_TUPLES = (
    Rule(
        lambda w: w.in_order and w.forward_aware,
        YES,
        "a window may begin before the tuples that reveal it; those it can reach back to stay",
        "scotty §5.1, Fig. 4",
    ),
    Rule(
        lambda w: w.in_order and w.lateness and w.context_aware,
        YES,
        "a watermark set by hand may overtake the stream; tuples stay for the allowed lateness",
        "scotty §5.1, Fig. 4",
    ),
    Rule(
        lambda w: w.in_order,
        NO,
        "in order, a tuple never changes an edge that has passed",
        "scotty §5.1, Fig. 4",
    ),
    Rule(
        lambda w: w.counting,
        YES,
        "a tuple out of order shifts the rank of all later ones; tuples stay until their rank is final",
        "scotty §5.1 (3), Fig. 4",
    ),
    Rule(
        lambda w: w.context_aware,
        YES,
        "a tuple out of order may open or close a window; tuples stay until the edges are final",
        "scotty §5.1 (2), Fig. 4",
    ),
    Rule(
        lambda w: w.non_commutative,
        "in the partials",
        "the order of tuples matters, so each slice keeps its lifted tuples and folds them in order",
        "scotty §5.1 (1), Fig. 4",
    ),
    Rule(
        lambda w: True,
        NO,
        "all windows are context free or sessions, and order-sensitive aggregates carry (time, arrival)",
        "scotty §5.1, Fig. 4",
    ),
)

SPLIT_SLICES = (
    Rule(
        lambda w: w.forward_aware,
        YES,
        "a window may begin inside a slice; the slice is cut again from its tuples",
        "scotty §5.2, Fig. 5",
    ),
    Rule(
        lambda w: not w.context_aware or (w.in_order and not w.lateness and not w.early),
        NO,
        "edges are known before their tuples; a session gap splits without recomputing, since it is empty",
        "scotty §5.2, §6.2, Fig. 5",
    ),
    Rule(
        lambda w: w.lateness == 0 and not w.early,
        NO,
        "tuples are sliced when the watermark reaches them, so their order is known by then",
        "scotty §5.2, Fig. 5",
    ),
    Rule(
        lambda w: len(w.counting) == len(w.context_aware),
        NO,
        "a late tuple shifts ranks and no edge: it moves tuples from slice to slice",
        "scotty §5.2, Fig. 5",
    ),
    Rule(
        lambda w: w.lateness == 0,
        YES,
        "early results slice tuples beyond the watermark; those slices are cut again when more arrive",
        "scotty §5.2, Fig. 5",
    ),
    Rule(
        lambda w: True,
        YES,
        "a late tuple moves edges of its key; slices whose tuples change are cut again",
        "scotty §5.2, Fig. 5",
    ),
)

REMOVE_TUPLES = (
    Rule(
        lambda w: not w.counting or (w.in_order and not w.lateness and not w.early),
        NO,
        "tuples leave a slice only when ranks shift",
        "scotty §5.2, Fig. 6",
    ),
    Rule(
        lambda w: w.lateness == 0 and not w.early,
        NO,
        "ranks are final when tuples are sliced",
        "scotty §5.2, Fig. 6",
    ),
    Rule(
        lambda w: not w.not_invertible,
        INVERT,
        "a late tuple shifts the last tuple of each later slice of its key; it is inverted out of the slice",
        "scotty §5.2, Fig. 6",
    ),
    Rule(
        lambda w: w.removable,
        CHECK,
        "a late tuple shifts the last tuple of each later slice of its key, rarely an extreme: a slice is "
        "recomputed only where the shifted tuple matters to it",
        "scotty §10.3.2",
    ),
    Rule(
        lambda w: True,
        RECOMPUTE,
        "a late tuple shifts the last tuple of each later slice of its key; these slices are recomputed",
        "scotty §5.2, Fig. 6",
    ),
)

SHUFFLE = (
    Rule(
        lambda w: w.context_aware,
        "tuples",
        "edges depend on the order of tuples, which is known behind the shuffle",
        "scotty §5.3",
    ),
    Rule(
        lambda w: w.with_empty,
        "tuples",
        "empty windows lie between the first and the last tuple that is not late, as the watermark decides",
        "scotty §5.3",
    ),
    Rule(
        lambda w: w.routes_late,
        "tuples",
        "late tuples are routed as they arrived",
        "scotty §5.3",
    ),
    Rule(
        lambda w: True,
        "slices",
        "each partition combines its tuples into slices first",
        "scotty §5.3",
    ),
)

MANY_SLICES = 64
"""From this many slices per window, a tree costs less than a walk over the slices of each window."""

MANY_SLICES_OF_SUMS = 16
"""The same for prefix sums."""

STANDING_FROM = 32_768
"""From this many slices per window, times aggregates, trees of numbers that follow the slices cost less than
a walk, and than prefix sums where few windows end at a watermark (measured)."""

PERSISTENT_FROM = 131_072
"""From this many slices per window, times aggregates, to update any other store at each watermark costs
less than to build one."""

PERSISTENT_FROM_IN_PYTHON = 1_024
"""The same for slices times user-defined aggregates, whose functions combine."""


def _stands(w: Workload) -> bool:
    return w.in_words and w.slices_per_window * len(w.aggregates) >= STANDING_FROM


def _persists(w: Workload) -> bool:
    combines, in_python = (w.slices_per_window * len(names) for names in (w.aggregates, w.user_defined))
    return combines >= PERSISTENT_FROM or in_python >= PERSISTENT_FROM_IN_PYTHON


STORE = (
    Rule(
        lambda w: w.slices_per_window < (MANY_SLICES_OF_SUMS if w.exact else MANY_SLICES),
        "lazy",
        "few slices per window: they are combined when windows end, in one compiled pass; where a watermark "
        "needs very many combines (sessions, windows of your own), trees over the slices are used",
        "scotty §3.4",
    ),
    Rule(
        _stands,
        "flatfat",
        "windows of very many slices, whose aggregates are numbers: a tree for each key persists between "
        "watermarks and is updated with the slices that changed; all keys share its arrays",
        "reactive §4",
    ),
    Rule(
        lambda w: _persists(w) and w.in_order and len(w.windows) == 1,
        "two_stacks",
        "one window in order, instances of very many slices: a queue persists between watermarks",
        "two-stacks lite",
    ),
    Rule(
        _persists,
        "fiba",
        "windows of very many slices: a tree for each key persists between watermarks and takes changes in",
        "fiba §4",
    ),
    Rule(
        lambda w: w.exact,
        "prefix",
        "windows of many slices, and nothing is lost when one sum is subtracted from another",
        "scotty §5.2",
    ),
    Rule(
        lambda w: w.bound is None and not w.not_invertible and not w.user_defined,
        "flatfat",
        "windows of many slices: a tree over the slices is built once and shared by all windows; "
        "over integers and decimals prefix takes its place, which explain(schema=...) can tell",
        "reactive §4",
    ),
    Rule(
        lambda w: True,
        "flatfat",
        "windows of many slices: a tree over the slices is built once and shared by all windows",
        "reactive §4",
    ),
)

TREES: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("keep tuples?", KEEP_TUPLES),
    ("split slices?", SPLIT_SLICES),
    ("remove tuples from slices?", REMOVE_TUPLES),
    ("store?", STORE),
)
