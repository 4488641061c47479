"""What can be computed over a window.

    from muntin import aggregates as a

    a.sum("amount"), a.quantile("amount", 0.95), a.arg_max("customer", by="amount")

Every name below makes a frozen description of an aggregate; each family is one file, and the
columns of numbers that it keeps per slice are under `partials`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.aggregates.choices import ArgMax, ArgMin, First, Last
from muntin.aggregates.collecting import Collect, Concat
from muntin.aggregates.counts import Count
from muntin.aggregates.distinct import CollectSet, Mode, count_distinct
from muntin.aggregates.extremes import Max, Min
from muntin.aggregates.histograms import histogram
from muntin.aggregates.m4 import M4
from muntin.aggregates.means import Mean
from muntin.aggregates.quantiles import Median, Percentiles, Quantile
from muntin.aggregates.ranking import Nth, TopK
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
    "collect_set",
    "concat",
    "count",
    "count_distinct",
    "first",
    "histogram",
    "last",
    "m4",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "nth",
    "percentiles",
    "quantile",
    "stddev",
    "sum",
    "top_k",
    "variance",
]

arg_max = ArgMax
arg_min = ArgMin
collect = Collect
collect_set = CollectSet
concat = Concat
count = Count
first = First
last = Last
m4 = M4
max = Max
mean = Mean
median = Median
min = Min
mode = Mode
nth = Nth
percentiles = Percentiles
quantile = Quantile
stddev = Stddev
sum = Sum
top_k = TopK
variance = Variance


def __getattr__(name: str) -> Any:
    if name == "col":  # pyarrow.compute takes its time to load, so only on demand
        from pyarrow.compute import field

        return field
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
