"""A Spark session with the settings that streaming queries need."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from muntin.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_state_store", "quiet_session", "session"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"

LOCAL = {
    PROVIDER: ROCKSDB,
    # A micro-batch writes its changes; the whole store is copied from time to time, in the background.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # No limit in bytes: otherwise Spark computes the size of a batch anew for each tuple that it sends to a
    # worker, which is a quarter of the CPU time of a large micro-batch. A batch holds at most 2 GB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    # Tasks with and without state then share their Python workers: two processes on two cores, not four.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # The stage before the shuffle takes 37 ms instead of the 70 with TCP, where there are few tuples.
    "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
}


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark session with good defaults for local work; `settings` are added, or replace them.

    >>> spark = session({"spark.app.name": "windows"})  # doctest: +SKIP
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise QueryError('Spark is not installed: pip install "muntin[spark]"') from None
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder.master("local[2]").appName("muntin")
    for name, value in (LOCAL | {FILE_MANAGER: _file_manager()} | dict(settings or {})).items():
        builder = builder.config(name, value)
    started: SparkSession = builder.getOrCreate()
    return started


def quiet_session() -> SparkSession:
    """A session for a command: times are in UTC, and the log lines of Spark's start are not printed."""
    with TemporaryFile() as log:
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)  # Spark's process inherits it as its standard error
        try:
            return session({"spark.sql.session.timeZone": "UTC"})
        except RuntimeError as error:
            log.seek(0)
            lines = [line.decode("utf-8", "replace").strip() for line in log]
            raise QueryError(
                f"Spark did not start: {error}; the last line of its log: "
                f"{next(filter(None, lines[::-1]), '')}; "
                "`muntin doctor` checks Java and Spark"
            ) from error
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _file_manager() -> str:
    """The class that writes the files of checkpoints; Spark 4.1 moved it to another package.

    Spark's own choice starts processes (readlink, chmod) for each file of a checkpoint on a local disk:
    a small micro-batch takes 313 ms with it and 212 without (decision 101).
    """
    from pyspark import __version__

    package = "streaming" if __version__.startswith("4.0.") else "streaming.checkpointing"
    return f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"


def _require_java() -> None:
    """A QueryError where Spark's own would say that a gateway exited, but not why."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"not in JAVA_HOME, {home}" if home else "not on the PATH"
        raise QueryError(
            f"Spark needs Java 17 or newer, and there is none: {where}; "
            "on Debian: sudo apt-get install default-jre-headless"
        )


def check_state_store(session: SparkSession) -> None:
    """A QueryError with the line to add, where a streaming query would fail later."""
    provider = session.conf.get(PROVIDER, "")
    if not str(provider).endswith("RocksDBStateStoreProvider"):
        raise QueryError(
            f"a streaming query needs the RocksDB state store: {PROVIDER} is {provider or 'not set'}; "
            f'add spark.conf.set("{PROVIDER}", "{ROCKSDB}")'
        )
