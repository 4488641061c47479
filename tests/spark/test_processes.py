"""Processes that die, tasks that fail, workers that vanish: the output is that of an undisturbed run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))
import troubled_stream as program  # beside this file, not installed

PATIENCE = 600

Process = subprocess.Popen[bytes]


@contextmanager
def process(log: Path, *command: object, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """A process group that is gone afterwards, whatever happened."""
    with log.open("ab") as output:
        started = subprocess.Popen(
            list(map(str, command)),
            start_new_session=True,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {})},
        )
    try:
        yield started
    finally:
        kill(started.pid)
        started.wait()


def kill(leader: int) -> None:
    """The process and all that it started: a driver is Python, a JVM and Python workers."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def stream(folder: Path, *arguments: object) -> AbstractContextManager[Process]:
    return process(folder / "log", sys.executable, program.__file__, folder, *arguments)


def wait_for(condition: Callable[[], bool], folder: Path, driver: Process) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert driver.poll() is None, (folder / "log").read_text()[-3_000:]
        assert time.monotonic() < until
        time.sleep(0.05)


def finish(folder: Path, driver: Process) -> None:
    assert driver.wait(PATIENCE) == 0, (folder / "log").read_text()[-3_000:]


SOME_STEPS = pytest.mark.parametrize(
    "step", [pytest.param(step, marks=[] if step == 3 else pytest.mark.deep) for step in (0, 1, 2, 3)]
)


def held_at(tmp_path: Path, step: int) -> Path:
    """A folder for a stream whose task waits at this step."""
    folder = program.lay_out(tmp_path / "run")
    (folder / "hold").write_text(str(step))
    return folder


def test_an_undisturbed_run_gives_what_the_embedded_engine_gives(spark: SparkSession, tmp_path: Path) -> None:
    folder = program.lay_out(tmp_path / "run")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    program.start(spark, folder, troubled=False).awaitTermination()
    assert program.written(folder) == program.expected()
    assert {row["kind"] for row in program.expected()} >= {"final", "update"}


@SOME_STEPS
def test_a_killed_driver_a_failed_task_and_a_stop_leave_no_trace(tmp_path: Path, step: int) -> None:
    folder = held_at(tmp_path, step)
    with stream(folder) as driver:
        wait_for((folder / "reached").exists, folder, driver)
        kill(driver.pid)  # in the middle of a micro-batch
    committed = {int(path.name) for path in (folder / "checkpoint of results" / "commits").glob("[0-9]*")}
    begun = {int(path.name) for path in (folder / "checkpoint of results" / "offsets").glob("[0-9]*")}
    assert begun - committed == {step}
    (folder / "hold").unlink()
    (folder / "fail").touch()
    # From the checkpoint, with a task that fails once and is tried again; stopped and started once more.
    with stream(folder, "local[2,3]", step) as driver:
        finish(folder, driver)
    assert {path.name for path in folder.glob("failed *")} == {"failed before", "failed behind"}
    assert program.written(folder) == program.replayed(folder)


LOOPBACK = "127.0.0.1"
DAEMONS = {
    "SPARK_LOCAL_IP": LOOPBACK,
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def daemon(folder: Path, name: str, *arguments: object) -> AbstractContextManager[Process]:
    """A part of a standalone cluster, from the installed pyspark."""
    home = Path(pyspark.__file__).parent
    command = (home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", LOOPBACK)
    environment = {**DAEMONS, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    return process(folder / "daemons", *command, "--webui-port", 0, *arguments, env=environment)


@SOME_STEPS
def test_a_cluster_that_loses_a_worker_gives_the_same(tmp_path: Path, step: int) -> None:
    folder = held_at(tmp_path, step)
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        port = found.getsockname()[1]
    url = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as cluster:
        cluster.enter_context(daemon(folder, "master.Master", "--port", port))
        workers = {
            cluster.enter_context(
                daemon(folder, "worker.Worker", "--cores", 1, "--memory", "1g", "--work-dir", tmp_path, url)
            ).pid
            for _ in range(2)
        }
        driver = cluster.enter_context(stream(folder, url))
        wait_for(lambda: held_by(folder) in workers, folder, driver)
        kill(held_by(folder))  # the one whose task is held: it loses that task, its shuffle files and states
        (folder / "hold").unlink()
        finish(folder, driver)
    assert program.written(folder) == program.expected()


def held_by(folder: Path) -> int:
    """The leader of the session in which the task runs that is held, 0 if there is none."""
    try:
        return int((folder / "reached").read_text() or 0)
    except FileNotFoundError:
        return 0
