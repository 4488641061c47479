"""A Muntin query in a checkpoint of Spark: where its state is, and which micro-batches can be read.

Spark's own readers find both: `state-metadata` lists the stateful operators, `statestore` reads their state.
They read files that were committed, so the stream may run meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from muntin.connectors.spark.group_state import head_missing
from muntin.connectors.spark.packed_rows import GROUP
from muntin.errors import DataError, QueryError, value_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["BODY", "PATH", "Place", "find"]

STATE = "parts"
"""The state variable of a key group: a map from paths to bodies, in which the head has the path HEAD."""
HEAD = ""
HEAD_OF_VERSION_7 = "head"
"""The state variable of the head in version 7 of the format."""
PATH, BODY = "path", "body"
"""Columns of the parts of state."""

WINDOW_OPERATOR = "stateStoreSave"
"""Spark's name of the operator that keeps the state of `window()`."""
UNREADABLE = frozenset(' "#%<>?\\^`{|}')
"""Characters that Spark's readers of state replace in a path, so that they look in another folder."""


@dataclass(frozen=True)
class Place:
    """The state of one query after one micro-batch."""

    spark: SparkSession
    checkpoint: str
    operator: int
    batch: int
    batches: range
    """The micro-batches that can be read; Spark keeps `spark.sql.streaming.minBatchesToRetain` of them."""

    def heads(self) -> dict[int, bytes]:
        """The head of each key group."""
        rows = self._map().where(f.col(PATH) == HEAD).collect()
        return {int(row[GROUP]): bytes(row[BODY]) for row in rows}

    def parts(self) -> DataFrame:
        """The parts of all key groups, with the columns GROUP, PATH and BODY."""
        return self._map().where(f.col(PATH) != HEAD)

    def _map(self) -> DataFrame:
        """The entries of the map of all key groups."""
        options = {"path": self.checkpoint, "stateVarName": STATE}
        numbers = {"operatorId": self.operator, "batchId": self.batch}
        reader = self.spark.read.format("statestore").options(**options, **numbers)
        path, body = f.col("user_map_key.path").alias(PATH), f.col("user_map_value.body").alias(BODY)
        try:
            return reader.load().select(f.col(f"key.{GROUP}"), path, body)
        except Exception as error:  # Spark's of several classes, as the checkpoint is local or not
            if "FileNotFound" in str(error) and "_stateSchema" in str(error):
                raise DataError(
                    "a checkpoint can be read only in the folder in which the stream wrote it, since Spark "
                    f"notes that folder in it: {self.checkpoint} was moved or copied; move it back"
                ) from error
            raise


def find(
    spark: SparkSession, checkpoint: str, batch: int | None = None, operator: int | None = None
) -> Place:
    """The state of the Muntin query of a checkpoint, after this micro-batch or the last one."""
    if set(checkpoint) & UNREADABLE:
        raise DataError(
            "Spark can read the state only of a checkpoint whose path has no blank and none of "
            f"{' '.join(sorted(UNREADABLE)).strip()}: got {checkpoint!r}; make a link without them: "
            f"ln -s {quote(checkpoint)} /tmp/checkpoint"
        )
    stateful_operators = spark.read.format("state-metadata").load(checkpoint).collect()
    mine = {int(row["operatorId"]): row for row in stateful_operators if _variables(row) == {STATE}}
    if any(_variables(row) == {STATE, HEAD_OF_VERSION_7} for row in stateful_operators):
        raise head_missing()
    if not mine:
        raise _without_muntin(spark, checkpoint, stateful_operators)
    if operator is None and len(mine) > 1:
        raise QueryError(
            f"the stream of {checkpoint} has several Muntin queries, with the operators "
            f"{_listed(mine)}; name one of them: operator={min(mine)}"
        )
    row = mine.get(min(mine) if operator is None else operator)
    if row is None:
        raise QueryError(
            f"operator must be the number of a Muntin query of {checkpoint}, {_listed(mine)}: "
            f"got {value_text(operator)}; leave operator= out, or name one of them"
        )
    batches = range(max(int(row["minBatchId"]), 0), int(row["maxBatchId"]) + 1)  # -1 is none
    if not batches:
        raise DataError(f"{checkpoint} has no committed micro-batch yet; wait for the first one")
    if batch is not None and (isinstance(batch, bool) or batch not in batches):
        raise DataError(
            f"batch must be a micro-batch of which {checkpoint} still has the state, {batches[0]} to "
            f"{batches[-1]}: got {value_text(batch)}; choose one of them, or leave it out for the last one"
        )
    last = batches[-1] if batch is None else batch
    return Place(spark, checkpoint, int(row["operatorId"]), last, batches)


def _variables(row: Row) -> set[str]:
    """The names of the state variables of an operator, without the timers of Spark."""
    properties: dict[str, Any] = json.loads(row["operatorProperties"] or "{}")
    names = {str(variable["stateName"]) for variable in properties.get("stateVariables", ())}
    return {name for name in names if not name.startswith("$")}


def _without_muntin(spark: SparkSession, checkpoint: str, stateful_operators: list[Row]) -> DataError:
    """The error about a folder without the state of a Muntin query."""
    names = sorted({str(row["operatorName"]) for row in stateful_operators})
    if WINDOW_OPERATOR in names:
        return DataError(
            f"{checkpoint} has the state of Spark's own window(), which runs queries of a single plain "
            'tumbling window, and no slices; read it with spark.read.format("statestore"), or start the '
            'stream from a new checkpoint with events.transform(query, plan="packed")'
        )
    if names:
        return DataError(
            f"{checkpoint} must be the checkpoint of a stream with a Muntin query: its stateful operators "
            f"are {', '.join(names)}; give the checkpointLocation of a stream that transforms with a query"
        )
    if not _is_checkpoint(spark, checkpoint):
        return DataError(
            f"there is no checkpoint of a stream in {checkpoint}; give the folder that "
            '.option("checkpointLocation", ...) names'
        )
    return DataError(
        f"the stream of {checkpoint} has no state: it has not begun its first micro-batch, or has no "
        "windows; wait, or give the checkpoint of the stream that transforms with the query"
    )


def _is_checkpoint(spark: SparkSession, path: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        spark.read.text(f"{path}/metadata").schema  # noqa: B018  # Spark looks for the file here
    except AnalysisException:
        return False
    return True


def _listed(operators: dict[int, Row]) -> str:
    return " and ".join(map(str, sorted(operators)))
