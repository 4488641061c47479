"""The micro-batches of a stream, as Spark's logs in its checkpoint tell them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def micro_batches(checkpoint: Path) -> Iterator[tuple[list[pa.Table], int]]:
    """For each micro-batch its input, by Spark's logs, and its watermark in microseconds."""
    done = -1
    for log in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)):
        _, metadata, offset = log.read_text().splitlines()[:3]
        upto = json.loads(offset)["logOffset"]
        tables = []
        for number in range(done + 1, upto + 1):
            _, *entries = (checkpoint / "sources" / "0" / str(number)).read_text().splitlines()
            tables += [pq.read_table(json.loads(entry)["path"].removeprefix("file://")) for entry in entries]
        done = upto
        yield tables, json.loads(metadata)["batchWatermarkMs"] * 1000
