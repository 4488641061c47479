"""A streaming query over files, driven step by step: one file is one micro-batch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

PATIENCE = 120
"""Seconds after which a stream that does nothing is an error."""


class Files:
    """A folder of Parquet files that a stream reads, each as a micro-batch of its own."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str, delay: str) -> None:
        self.spark, self.folder, self.count = spark, folder, 0
        self.schema, self.delay = schema, delay
        folder.mkdir()

    def frame(self) -> DataFrame:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder)).withWatermark("ts", self.delay)

    def put(self, table: pa.Table) -> None:
        hidden = self.folder / f".{self.count}"
        pq.write_table(table, hidden)
        os.utime(hidden, (self.count, self.count))  # the order in which Spark reads them
        hidden.rename(self.folder / f"{self.count:04}.parquet")
        self.count += 1


class Running:
    """A streaming query whose rows stand in a list, micro-batch by micro-batch."""

    def __init__(self, results: DataFrame, checkpoint: Path, mode: str = "append") -> None:
        self.rows: dict[int, list[dict[str, Any]]] = {}
        writer = results.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
        self.query = writer.foreachBatch(self._take).start()

    def _take(self, frame: DataFrame, batch: int) -> None:
        # A repeated micro-batch replaces its rows, as in a sink that is transactional.
        self.rows[batch] = [row.asDict(recursive=True) for row in frame.collect()]

    def all(self) -> list[dict[str, Any]]:
        return [row for _, rows in sorted(self.rows.items()) for row in rows]

    def catch_up(self) -> list[dict[str, Any]]:
        """The rows since the last call, once all files are read and the watermark has moved."""
        before = set(self.rows)
        self.query.processAllAvailable()
        return [row for batch, rows in sorted(self.rows.items()) if batch not in before for row in rows]

    def wait(self, until: Callable[[Sequence[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """All rows, as soon as they are what is waited for."""
        begin = time.monotonic()
        while not until(self.all()):
            error = self.query.exception()
            if error is not None:
                raise error
            assert time.monotonic() - begin < PATIENCE, f"still waiting with {self.all()}"
            time.sleep(0.1)
        return self.all()

    def stop(self) -> None:
        self.query.stop()
