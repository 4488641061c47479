"""Sessions in the JVM: runs of slices with no longer silence between them, as in [scotty §6.1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window as Frames
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FIRST", "LAST", "session_start", "with_sessions"]

FIRST, LAST = "first", "last"
"""The columns of a slice that hold the times of its first and of its last tuple."""


def session_start(gap: int) -> Column:
    """The column that `with_sessions` adds for this gap."""
    return f.col(f"session_{int(gap)}")


def with_sessions(slices: DataFrame, keys: list[str], gaps: list[int]) -> DataFrame:
    """The slices, each with the start of the session that it belongs to, for each of the gaps.

    The slices are sorted once; all gaps are served from them.
    """
    in_order = Frames.partitionBy(*keys).orderBy(FIRST)
    so_far = in_order.rowsBetween(Frames.unboundedPreceding, Frames.currentRow)
    silence = f.col(FIRST) - f.lag(LAST).over(in_order)
    found = slices.withColumn("silence", silence)
    for gap in sorted(set(gaps)):
        opens = f.col("silence").isNull() | (f.col("silence") > int(gap))
        # Starts grow along the slices, so the last one so far is the largest one.
        started = f.max(f.when(opens, f.col(FIRST))).over(so_far)
        found = found.withColumn(f"session_{int(gap)}", started)
    return found
