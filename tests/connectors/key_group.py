"""A key group of the Spark connector without Spark: what it is given, step by step, and its state store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.connectors.spark.group_state import Stored, read, write
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.query_changes import apply_texts
from muntin.connectors.spark.result_rows import outcome_schema
from muntin.connectors.spark.step import Given, Job, step
from muntin.query import QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.snapshot import current_spec
from muntin.windows import count, slide_by_tuple


class KeyGroup:
    """All keys in one group; every step goes through the state store.

    Warm, the operator stays in memory as in a worker that goes on, and its state is only written.
    """

    def __init__(self, query: QuerySpec, schema: pa.Schema, warm: bool = False) -> None:
        self.schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        self.head: bytes | None = None
        self.parts: dict[str, bytes] = {}
        self.written = self.trips = 0
        self.warm = Stored(SlicingOperator(query), query) if warm else None
        self.use(query)

    def use(self, query: QuerySpec, schema: pa.Schema | None = None) -> None:
        """Go on with this query, and input of these types, as after a restart."""
        self.query = query
        if schema is not None:
            self.schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        own = tuple(window for _, window in query.windows)
        results = Binding.of(query, dict(query.windows), self.schema).result_schema(
            (*own, count(1), slide_by_tuple(1, every=1))
        )
        self.job = Job(query, self.schema, outcome_schema(query, results, self.schema))

    def step(
        self, rows: Sequence[Sequence[Any]] = (), arrival: Sequence[int] = (), **given: Any
    ) -> list[dict[str, Any]]:
        """Rows of the outcome; `rows` are tuples in the order of the columns."""
        plain = self.schema.remove(len(self.schema) - 1)
        columns = list(zip(*rows, strict=True)) if rows else [[] for _ in plain]
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, plain, strict=True)], schema=plain)
        table = table.append_column(GROUP, pa.array(np.zeros(len(table)), pa.int32()))
        table = table.append_column(ARRIVAL, pa.array(arrival or range(len(table)), pa.int64()))
        packer = PartitionPacker(self._served(given.get("changes", ())), (0,), self.schema)
        newest, payloads = packer.pack(table.to_batches())
        found = tuple(payload for _, payload in payloads if payload is not None)
        stored = self.load()
        tables = step(stored, self.job, Given(found, newest, **given))
        self._save(stored)
        return [row for table in tables for row in table.to_pylist()]

    def _served(self, changes: tuple[str, ...]) -> QuerySpec:
        """The query with the windows after these changes, by which partitions cut their tuples."""
        stored = self.load()
        stored.operator.bind(self.schema)
        apply_texts(stored, changes, self.job.outcome)
        return current_spec(stored.operator)

    def load(self) -> Stored:
        """What the state store holds."""
        if self.warm is not None:
            return self.warm
        if self.head is None:
            return Stored(SlicingOperator(self.query), self.query)
        return read(self.head, self.parts, self.query, schema=self.schema)

    def _save(self, stored: Stored) -> None:
        written = write(stored)
        self.head, self.written = written.head, written.nbytes
        self.trips = 1 + len(written.changed) + len(written.gone)
        for path in written.gone:
            del self.parts[path]
        self.parts |= written.changed
        assert stored.nbytes == sum(map(len, self.parts.values()))
