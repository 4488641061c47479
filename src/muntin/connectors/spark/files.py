"""Files as a bounded DataFrame, for `muntin run --engine spark`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.file_formats import Format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["errors_of_spark", "read_files"]

_INFERRED = "spark.sql.timestampType"
_ZONE = r":\d\d(\.\d+)? ?(Z|[A-Za-z/_]+|[+-]\d\d?(:?\d\d)?)\s*$"
"""The end of a time with a zone."""


@contextmanager
def errors_of_spark() -> Iterator[None]:
    """Report an error of Spark, or of Muntin in its workers, as a DataError with its message alone."""
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    before, logger.disabled = logger.disabled, True  # it prints whole tracebacks as JSON
    try:
        yield
    except PySparkException as error:
        text = str(error)
        own = re.search(r"^muntin[\w.]*Error: (.+)$", text, re.MULTILINE)
        told = own[1] if own else text.strip().partition("\n")[0]
        cure = "" if own else "; repair the input, or leave --engine spark out"
        raise DataError(f"{told}{cure}") from error
    finally:
        logger.disabled = before


def read_files(
    session: SparkSession,
    paths: Sequence[tuple[str, str]],
    delimiter: str,
    time: str,
    unit: str | None,
    types: Mapping[str, pa.DataType] = MappingProxyType({}),
    strict: bool = True,
) -> DataFrame:
    """The rows of files, given with their formats, and the time column as timestamps.

    Texts in the time column are read in ISO format, integers in the unit. As in the embedded engine, times
    have a zone where the texts have one. Files that end in .tsv have tabs where the delimiter is a comma.
    `types` are those that the user gives to columns. With `strict` a text that is no time is an error,
    otherwise a null, which is a bad tuple.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegralType, StringType

    read = session.read.options(header=True, inferSchema=True)

    def csv(path: str) -> DataFrame:
        mark = Format.of(path).delimiter if delimiter == "," else delimiter
        before = str(session.conf.get(_INFERRED))
        session.conf.set(_INFERRED, "TIMESTAMP_NTZ")  # for texts without a zone; others have one in any case
        try:
            return read.csv(path, sep=mark)
        finally:
            session.conf.set(_INFERRED, before)

    known: dict[str, Any] = {"csv": csv, "jsonl": read.json, "parquet": read.parquet}
    for path, form in paths:
        if form not in known or path == "-":
            raise DataError(
                f"Spark reads files of csv, jsonl and parquet: got {path}; leave --engine spark out for it"
            )
    frames = [known[form](path) for path, form in paths]
    for one, (path, form) in zip(frames, paths, strict=True):
        if form == "jsonl" and "watermark" in one.columns:
            others = [f.col(f"`{name}`").isNull() for name in one.columns if name != "watermark"]
            alone = reduce(lambda a, b: a & b, others, f.col("watermark").isNotNull())
            if not one.filter(alone).isEmpty():
                raise DataError(
                    f"Spark reads no lines with a watermark alone: got some in {path}; remove them, or leave "
                    "--engine spark out"
                )
    frame: DataFrame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    frame = _typed(frame, types)
    if time not in frame.columns:
        return frame
    kind, column = frame.schema[time].dataType, f.col(f"`{time}`")
    if isinstance(kind, StringType):
        zoned = not frame.filter(column.rlike(_ZONE)).isEmpty()
        wanted = "timestamp" if zoned else "timestamp_ntz"
        frame = frame.withColumn(time, column.cast(wanted) if strict else column.try_cast(wanted))
    if isinstance(kind, IntegralType) and unit is not None:
        makers = {"s": f.timestamp_seconds, "ms": f.timestamp_millis, "us": f.timestamp_micros}
        if unit not in makers:
            raise DataError('Spark has no timestamps in nanoseconds: got the unit "ns"; use s, ms or us')
        frame = frame.withColumn(time, makers[unit](column).cast("timestamp_ntz"))
    return frame


def _typed(frame: DataFrame, types: Mapping[str, pa.DataType]) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_type

    for name, kind in types.items():
        if name in frame.columns:
            frame = frame.withColumn(name, f.col(f"`{name}`").cast(from_arrow_type(kind)))
    return frame
