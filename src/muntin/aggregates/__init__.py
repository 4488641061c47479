"""What can be computed over a window.

    from muntin import aggregates as a

    a.sum("amount"), a.quantile("amount", 0.95), a.arg_max("customer", by="amount")

Every name below makes a frozen description of an aggregate; each family is one file, and the
columns of numbers that it keeps per slice are under `partials`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.aggregates.choices import ArgMax, ArgMin, First, Last
from muntin.aggregates.collecting import Collect
from muntin.aggregates.counts import Count
from muntin.aggregates.extremes import Max, Min
from muntin.aggregates.means import Mean
from muntin.aggregates.quantiles import Median, Quantile
from muntin.aggregates.spread import Stddev, Variance
from muntin.aggregates.sums import Sum
from muntin.aggregates.udaf import aggregate

if TYPE_CHECKING:
    from pyarrow.compute import field as col

__all__ = [
    "aggregate",
    "arg_max",
    "arg_min",
    "col",
    "collect",
    "count",
    "first",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "stddev",
    "sum",
    "variance",
]

arg_max = ArgMax
arg_min = ArgMin
collect = Collect
count = Count
first = First
last = Last
max = Max
mean = Mean
median = Median
min = Min
quantile = Quantile
stddev = Stddev
sum = Sum
variance = Variance


def __getattr__(name: str) -> Any:
    if name == "col":  # pyarrow.compute takes its time to load, so only on demand
        from pyarrow.compute import field

        return field
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
