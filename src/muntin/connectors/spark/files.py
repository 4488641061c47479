"""Files as a bounded DataFrame, for `muntin run --engine spark`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from muntin.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["read_files"]


def read_files(paths: Sequence[tuple[str, str]], delimiter: str, time: str, unit: str | None) -> DataFrame:
    """The rows of files, given with their formats, and the time column as timestamps.

    Texts in the time column are read in ISO format, integers in the unit.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegralType, StringType

    from muntin.connectors.spark.spark_session import session

    read = session().read.options(header=True, inferSchema=True, delimiter=delimiter)
    known: dict[str, Any] = {"csv": read.csv, "jsonl": read.json, "parquet": read.parquet}
    for path, form in paths:
        if form not in known or path == "-":
            raise DataError(
                f"Spark reads files of csv, jsonl and parquet: got {path}; leave --engine spark out for it"
            )
    frames = [known[form](path) for path, form in paths]
    frame: DataFrame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    if time not in frame.columns:
        return frame
    kind, column = frame.schema[time].dataType, f.col(f"`{time}`")
    if isinstance(kind, StringType):
        frame = frame.withColumn(time, f.to_timestamp(column))
    if isinstance(kind, IntegralType) and unit is not None:
        makers = {"s": f.timestamp_seconds, "ms": f.timestamp_millis, "us": f.timestamp_micros}
        if unit not in makers:
            raise DataError('Spark has no timestamps in nanoseconds: got the unit "ns"; use s, ms or us')
        frame = frame.withColumn(time, makers[unit](column))
    return frame
