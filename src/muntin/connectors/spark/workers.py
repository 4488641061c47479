"""Spark's Python workers: whether they can import Muntin, and how Spark shows their errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin.errors import MuntinError, QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_workers", "message_first"]

_LOOK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('muntin') is None)"

_able: set[tuple[str, str]] = set()
"""Pairs of application and interpreter that were checked and can import Muntin."""


def check_workers(session: SparkSession) -> None:
    """A QueryError if the Python of the workers cannot import Muntin.

    Workers that share this program's interpreter can. Another interpreter is checked once: by starting it
    where workers run on this machine (about 50 ms), otherwise by a job of one task.
    """
    context: Any = getattr(session, "_sc", None)
    if context is None:  # Spark Connect: the interpreter is the server's
        return
    python, known = str(context.pythonExec), (str(context.applicationId), str(context.pythonExec))
    if known in _able or _is_own(python):
        return
    if not (context.master.startswith("local") and _has_muntin(python)):
        _ask_a_worker(context, python)
    _able.add(known)


def _is_own(python: str) -> bool:
    """Whether this is an interpreter in the same folder as that of this program, under any name."""
    found = shutil.which(python)
    if found is None:
        return False
    # In its folder too: the interpreters of two virtual environments are links to the same one.
    own, its = Path(sys.executable), Path(found).absolute()
    return its.parent == own.parent and its.resolve() == own.resolve()


def _has_muntin(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", _LOOK], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _ask_a_worker(context: Any, python: str) -> None:
    """Run a task that needs Muntin; this includes packages shipped by `addPyFile` and archives."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        context.parallelize([0], 1).map(_present).collect()
    except (Py4JError, PySparkException) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        causes = [
            line for line in lines if "No module named" in line or "Error: " in line or "[PYTHON" in line
        ]
        raise QueryError(
            f"the Python of Spark's workers must have Muntin: {python} cannot run it "
            f"({(causes or lines)[0]}); before the session starts write "
            'os.environ["PYSPARK_PYTHON"] = sys.executable, or pip install "muntin[spark]" for that Python'
        ) from None


def _present(item: int) -> int:
    """The task: a worker can unpickle this function only if it can import Muntin."""
    return item


@contextmanager
def message_first() -> Iterator[None]:
    """In a worker: let Spark show the message of a Muntin error without its traceback.

    Errors with a cause, such as those in functions of the user, keep their traceback.
    """
    try:
        yield
    except MuntinError as error:
        if error.__cause__ is None:
            # pyspark reads the variable when it reports the error; the worker process then ends.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
