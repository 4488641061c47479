"""What can be computed over a window.

    from muntin import aggregates as a

    a.sum("amount"), a.quantile("amount", 0.95), a.arg_max("customer", by="amount")

Every name below makes a frozen description of an aggregate; each family is one file, and the
columns of numbers that it keeps per slice are under `partials`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.aggregates.bits import BitAnd, BitOr, BitXor
from muntin.aggregates.choices import M4, ArgMax, ArgMin, First, Last
from muntin.aggregates.classifiers import NaiveBayes
from muntin.aggregates.collecting import Collect, Concat
from muntin.aggregates.counts import Count, CountIf, Every, Some
from muntin.aggregates.dependence import Correlation, Covariance
from muntin.aggregates.distinct import CollectSet, Mode, count_distinct
from muntin.aggregates.extremes import Max, MaxCount, Min, MinCount
from muntin.aggregates.histograms import histogram
from muntin.aggregates.moments import Kurtosis, Skewness, Stddev, Variance
from muntin.aggregates.quantiles import Median, Percentiles, Quantile
from muntin.aggregates.ranking import Nth, TopK
from muntin.aggregates.sketches.bloom import Bloom
from muntin.aggregates.sketches.cardinality import ApproxCountDistinct, Theta
from muntin.aggregates.sketches.frequency import CountMin, FrequentItems
from muntin.aggregates.sketches.quantile import ApproxQuantile
from muntin.aggregates.sums import GeometricMean, Mean, Sum, WeightedMean
from muntin.aggregates.udaf import aggregate
from muntin.aggregates.user_aggregate import UserAggregate

if TYPE_CHECKING:
    from pyarrow.compute import field as col

__all__ = [
    "UserAggregate",
    "aggregate",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bloom",
    "col",
    "collect",
    "collect_set",
    "concat",
    "correlation",
    "count",
    "count_distinct",
    "count_if",
    "count_min",
    "covariance",
    "every",
    "first",
    "frequent_items",
    "geometric_mean",
    "histogram",
    "kurtosis",
    "last",
    "m4",
    "max",
    "max_count",
    "mean",
    "median",
    "min",
    "min_count",
    "mode",
    "naive_bayes",
    "nth",
    "percentiles",
    "quantile",
    "skewness",
    "some",
    "stddev",
    "sum",
    "theta",
    "top_k",
    "variance",
    "weighted_mean",
]

approx_count_distinct = ApproxCountDistinct
approx_quantile = ApproxQuantile
arg_max = ArgMax
arg_min = ArgMin
bit_and = BitAnd
bit_or = BitOr
bit_xor = BitXor
bloom = Bloom
collect = Collect
collect_set = CollectSet
concat = Concat
correlation = Correlation
count = Count
count_if = CountIf
count_min = CountMin
covariance = Covariance
every = Every
first = First
frequent_items = FrequentItems
geometric_mean = GeometricMean
kurtosis = Kurtosis
last = Last
m4 = M4
max = Max
max_count = MaxCount
mean = Mean
median = Median
min = Min
min_count = MinCount
mode = Mode
naive_bayes = NaiveBayes
nth = Nth
percentiles = Percentiles
quantile = Quantile
skewness = Skewness
some = Some
stddev = Stddev
sum = Sum
theta = Theta
top_k = TopK
variance = Variance
weighted_mean = WeightedMean


if not TYPE_CHECKING:  # which would take any name for one that exists

    def __getattr__(name: str) -> Any:
        if name == "col":  # pyarrow.compute takes its time to load, so only on demand
            from pyarrow.compute import field

            return field
        from muntin import foreign_names

        foreign_names.refuse_submodule(__name__, name)
        raise foreign_names.unknown("muntin.aggregates", name, __all__, foreign_names.AGGREGATES, "a.")


def __dir__() -> list[str]:
    return sorted(__all__)
