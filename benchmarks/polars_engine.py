"""The workloads as an expert writes them in polars.

Each window by itself is as fast as we could write it; what several windows have in common is left to polars
to find (`collect_all`), but for one sort. Tumbling windows are groups of truncated times, which are
declared to be in order where they are. Sliding windows are dynamic groups over groups as long as their
slide: over the tuples themselves they took twice as long, with keys fifteen times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.case import Ask, Case
from benchmarks.expected import Sums
from muntin.windows.base import Window
from muntin.windows.count import Count
from muntin.windows.periodic import Periodic
from muntin.windows.session import Session

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ask_polars"]


def ask_polars(case: Case) -> Ask:
    """How polars answers the queries of a case."""
    import polars as pl

    query, shape = case.workload.query, case.workload.shape
    frame: Any = pl.from_arrow(pa.Table.from_batches(case.arrivals.batches(len(case.arrivals))))
    if not shape.late:  # Muntin knows it, too
        frame = frame.with_columns(pl.col("at").set_sorted())
    keys, asked = list(query.keys), {name: one.constructor for name, one in query.aggregates}
    by_tuple = any(isinstance(window, Session | Count) for _, window in query.windows)

    def run() -> list[pl.DataFrame]:
        ordered = frame.sort(*keys, "at", maintain_order=True) if by_tuple else frame
        plans = []
        for _, window in query.windows:
            if isinstance(window, Periodic):
                sorted_times = not keys and not shape.late
                plans.append(_by_time(frame.lazy(), window, keys, asked, sorted_times))
            else:
                plans.append(_by_tuple(ordered.lazy(), window, keys, asked))
        return pl.collect_all(plans)

    def sums(frames: list[pl.DataFrame]) -> Sums:
        found = zip(query.windows, frames, strict=True)
        return {
            name: (float(one.height), *(float(one[column].sum()) for column in asked))
            for (name, _), one in found
        }

    return Ask(run, sums)


def _results(asked: dict[str, str]) -> list[pl.Expr]:
    import polars as pl

    return [getattr(pl.col("value"), how)().alias(name) for name, how in asked.items()]


def _by_time(
    frame: pl.LazyFrame, window: Periodic, keys: list[str], asked: dict[str, str], sorted_times: bool
) -> pl.LazyFrame:
    """Tumbling and sliding windows, over tuples as they come."""
    import polars as pl

    length, slide = f"{window.length}us", f"{window.slide}us"
    start = pl.col("at").dt.truncate(slide)
    groups = frame.group_by(*keys, start.set_sorted() if sorted_times else start)
    if window.length == window.slide:
        return groups.agg(_results(asked))
    if window.length % window.slide or not {"sum", "mean"}.issuperset(asked.values()):
        raise NotImplementedError(f"{window.describe()} with {', '.join(asked.values())}")
    total, n = pl.col("value").sum().alias("_total"), pl.col("value").count().alias("_n")
    slices = groups.agg([total, n] if "mean" in asked.values() else [total]).sort("at")
    before = f"-{window.length - window.slide}us"
    held = slices.group_by_dynamic("at", every=slide, period=length, offset=before, group_by=keys or None)
    whole = {"sum": pl.col("_total").sum(), "mean": pl.col("_total").sum() / pl.col("_n").sum()}
    return held.agg(whole[how].alias(name) for name, how in asked.items())


def _by_tuple(frame: pl.LazyFrame, window: Window, keys: list[str], asked: dict[str, str]) -> pl.LazyFrame:
    """Sessions and counts, over tuples in order."""
    import polars as pl

    match window:
        case Session(gap=gap):
            opens = pl.col("at").diff() > pl.duration(microseconds=gap)
            for key in keys:
                opens |= pl.col(key).diff() != 0
            visit = opens.fill_null(True).cum_sum()
            return frame.with_columns(visit.alias("_visit")).group_by("_visit").agg(_results(asked))
        case Count(n=n, every=every) if every == n and not keys:
            number = (pl.int_range(pl.len()) // n).set_sorted()
            groups = frame.with_columns(number.alias("_number")).group_by("_number")
            return groups.agg(*_results(asked), pl.len().alias("_n")).filter(pl.col("_n") == n)
        case _:
            raise NotImplementedError(window.describe())
