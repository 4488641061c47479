"""The aggregates that scenarios choose from, users' own among them."""

from __future__ import annotations

import operator
from importlib.util import find_spec

from muntin import aggregates as a

__all__ = ["AGGREGATES"]


def _longest(p: str, q: str) -> str:
    return q if len(q) > len(p) else p


def _chained(p: str, q: str) -> str:
    return p + q


def _lettered(i: int, b: bool) -> tuple[int, int]:
    return (i if b else -1, 7)


def _rolled(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """A rolling hash, which depends on the order."""
    return ((p[0] * q[1] + q[0]) % 1_000_003, p[1] * q[1] % 1_000_003)


SKETCHES = {
    "about_q": a.approx_quantile("f", 0.7),
    "about_n": a.approx_count_distinct("s"),
    "about_n_f": a.approx_count_distinct("f", filter="b"),
    "theta": a.theta("i"),
    "frequent": a.frequent_items("s"),
}
"""Those that need the package datasketches, which not every Python has."""

AGGREGATES = {
    "n": a.count(),
    "n_f": a.count("f"),
    "sum_i": a.sum("i"),
    "sum_f": a.sum("f"),
    "min_i": a.min("i"),
    "max_f": a.max("f"),
    "min_s": a.min("s"),
    "max_b": a.max("b"),
    "mean_i": a.mean("i"),
    "mean_f": a.mean("f"),
    "var_i": a.variance("i"),
    "dev_f": a.stddev("f", population=True),
    "first_s": a.first("s"),
    "first_i": a.first("i", ignore_nulls=True),
    "last_f": a.last("f"),
    "last_s": a.last("s", ignore_nulls=True),
    "top": a.arg_max("s", by="i"),
    "low": a.arg_min("id", by="f"),
    "all_i": a.collect("i"),
    "all_s": a.collect("s"),
    "ids": a.collect("id"),
    "median": a.median("f"),
    "p25": a.quantile("i", 0.25),
    "spread": a.percentiles("f", [0.9, 0.1, 0.5]),
    "second": a.nth("s", 2),
    "third": a.nth("i", 3, ignore_nulls=True),
    "m4_f": a.m4("f"),
    "m4_s": a.m4("s", filter="i > 0"),
    "joined": a.concat("s", separator=", "),
    "set_f": a.collect_set("f"),
    "set_s": a.collect_set("s", filter="not b"),
    "users": a.count_distinct("s"),
    "levels": a.count_distinct("i"),
    "pairs": a.count_distinct("s", "i"),
    "mode_i": a.mode("i"),
    "mode_s": a.mode("s"),
    "top_f": a.top_k("f", 2),
    "top_ids": a.top_k("id", 3, by="s"),
    "bins": a.histogram("f", bins=3),
    "edges": a.histogram("i", edges=[-3, 0, 1, 9]),
    **(SKETCHES if find_spec("datasketches") else {}),
    "counted": a.count_min("i", [2, 5, 7]),
    "bloom": a.bloom("s", size=100),
    "longest": a.aggregate("s", lift=str, combine=_longest, commutative=False, name="longest"),
    "n_if": a.count_if("i > 1"),
    "every": a.every("b"),
    "some": a.some("f < 1 or s == 'b'"),
    "bits_and": a.bit_and("i"),
    "bits_or": a.bit_or("i"),
    "bits_xor": a.bit_xor("id"),
    "min_n": a.min_count("i"),
    "max_n": a.max_count("f"),
    "max_n_s": a.max_count("s"),
    "growth": a.geometric_mean("f"),
    "growth_i": a.geometric_mean("i", filter="i > 0"),
    "weighed": a.weighted_mean("f", weight="i"),
    "cov": a.covariance("i", "id"),
    "cov_pop": a.covariance("f", "i", population=True),
    "corr": a.correlation("i", "id"),
    "skew_i": a.skewness("i"),
    "skew_f": a.skewness("f"),
    "kurt": a.kurtosis("id"),
    "bayes": a.naive_bayes("s", columns=["i", "f"]),
    "bayes_b": a.naive_bayes("b", columns=["id"]),
    "n_b": a.count(filter="b"),
    "n_f_b": a.count("f", filter="b"),
    "sum_i_b": a.sum("i", filter="b"),
    "product": a.sum(a.col("i") * a.col("f"), filter="i > 1"),
    "min_s_i": a.min("s", filter="i > 1"),
    "dev_i_b": a.stddev("i", filter="not b"),
    "first_s_b": a.first("s", filter="b"),
    "all_i_f": a.collect("i", filter="f < 1 or s == 'b'"),
    "median_b": a.median("i", filter="b"),
    "chained_b": a.aggregate(
        "s", lift=str, combine=_chained, commutative=False, name="chained", filter="not b"
    ),
    "chained": a.aggregate("s", lift=str, combine=_chained, commutative=False, name="chained"),
    "most": a.aggregate("i", lift=int, combine=max, name="most"),
    "squares": a.aggregate("i", lift=lambda v: v * v, combine=operator.add, compile=True, name="squares"),
    "rolled": a.aggregate(
        "i", "b", lift=_lettered, combine=_rolled, lower=lambda p: p[0], commutative=False, compile=True
    ),
}
"""The aggregates that random queries choose from, by the name of their result."""
