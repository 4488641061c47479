"""Spark's Python workers: whether they can import Muntin, the values they share, and how errors look."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import shutil
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin.errors import MuntinError, QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OncePerWorker", "check_workers", "exempt_modules", "message_first"]

_able: set[tuple[str, str]] = set()
"""Pairs of application and interpreter that were checked and can import Muntin."""


def check_workers(session: SparkSession) -> None:
    """A QueryError if the Python of the workers cannot import Muntin.

    Workers that share this program's interpreter can. Another interpreter is checked once, by a job of one
    task; the query uses the worker that it starts.
    """
    context: Any = getattr(session, "_sc", None)
    if context is None:  # Spark Connect: the interpreter is the server's
        return
    python, known = str(context.pythonExec), (str(context.applicationId), str(context.pythonExec))
    if known in _able or _is_own(python):
        return
    _ask_a_worker(context, python)
    _able.add(known)


def _is_own(python: str) -> bool:
    """Whether this is an interpreter in the same folder as that of this program, under any name."""
    path = shutil.which(python)
    if path is None:
        return False
    # In the same folder, since the interpreters of two virtual environments are links to one file.
    own, its = Path(sys.executable), Path(path).absolute()
    return its.parent == own.parent and its.resolve() == own.resolve()


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


class OncePerWorker:
    """A frozen dataclass that travels with a job: a worker process unpickles it once, for all its tasks.

    Spark pickles a job once, and unpickles it in each task of each micro-batch. Objects that were derived
    from the fields stay in the worker, since the next task gets the same object.
    """

    def __reduce__(self) -> tuple[Callable[[bytes, bytes], Any], tuple[bytes, bytes]]:
        from pyspark.cloudpickle import dumps  # functions of the user may be lambdas

        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        pickled = dumps((type(self), given))  # type: ignore[no-untyped-call]
        return _unpickled, (hashlib.blake2b(pickled, digest_size=16).digest(), pickled)


_values: OrderedDict[bytes, Any] = OrderedDict()
"""Values of this worker process, by digests of their pickled forms."""
_MOST_VALUES = 64


def _unpickled(digest: bytes, pickled: bytes) -> Any:
    if digest not in _values:
        kind, given = pickle.loads(pickled)  # noqa: S301  # Spark unpickles the job itself, too
        _values[digest] = kind(**given)
    _values.move_to_end(digest)
    while len(_values) > _MOST_VALUES:
        _values.popitem(last=False)
    return _values[digest]


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


_exempt = 0
"""The number of imported modules when objects were exempted from garbage collection."""


def exempt_modules() -> None:
    """In a worker: exempt the modules in memory from garbage collection, at the end of a task.

    pyspark's daemon runs a garbage collection after each task, before the worker gets another one. With
    Arrow, pandas and Muntin it examines 96,000 objects, which takes longer than a small step; none of them
    is ever garbage. Modules that a later task imports are exempted, too.
    """
    global _exempt
    # In a test, or a program that calls the functions of a worker, objects are the program's own.
    if len(sys.modules) != _exempt and _is_worker():
        gc.collect()
        gc.freeze()
        _exempt = len(sys.modules)


def _is_worker() -> bool:
    """Whether this process is one of pyspark's Python workers."""
    from pyspark import TaskContext

    return TaskContext.get() is not None
