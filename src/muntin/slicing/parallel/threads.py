"""Pools of threads, which are reused from one table to the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

__all__ = ["Threads"]

Result = TypeVar("Result")

MOST_IDLE = 2
"""The most idle sets of threads: those used last."""


@dataclass(frozen=True, slots=True)
class Threads:
    """The caller's thread and a pool of others, which the next caller with the same number reuses.

    Starting threads takes longer than a small table does, and threads reuse the memory that they have cached.

    >>> with Threads.borrowed(2) as threads:
    ...     threads.map(len, ["a", "bc"])
    [1, 2]
    """

    number: int
    pool: ThreadPoolExecutor
    """All threads but the caller's."""
    process: int = field(default_factory=os.getpid)
    """The process that has the threads; a process forked from it has none of them."""

    @classmethod
    def started(cls, number: int) -> Threads:
        """Threads of one owner, which end with it."""
        return cls(number, ThreadPoolExecutor(number - 1, thread_name_prefix="muntin"))

    @classmethod
    @contextmanager
    def borrowed(cls, number: int) -> Iterator[Threads]:
        """Threads for exclusive use; after an error they end, since some may still be running."""
        with _LENDING:
            # Those used last: their memory may still be cached.
            idle = next((threads for threads in reversed(_IDLE) if threads.number == number), None)
            if idle is not None:
                _IDLE.remove(idle)
        threads = idle or cls.started(number)
        try:
            yield threads
        except BaseException:
            threads.pool.shutdown(wait=False, cancel_futures=True)
            raise
        with _LENDING:
            _IDLE.append(threads)
            ending = _IDLE[:-MOST_IDLE]
            del _IDLE[:-MOST_IDLE]
        for others in ending:
            others.pool.shutdown(wait=False)

    def map(self, function: Callable[..., Result], *columns: Iterable[Any]) -> list[Result]:
        """The result of each call, once all have ended; the error of the first that failed is raised.

        Each thread takes the next call. The caller's thread is one of them, since waking another takes time.
        """
        calls = list(zip(*columns, strict=True))
        if self.process != os.getpid():
            return [function(*call) for call in calls]
        results, errors = dict[int, Result](), dict[int, Exception]()
        left, taking = iter(range(len(calls))), Lock()

        def work() -> None:
            while True:
                with taking:
                    number = next(left, None)
                if number is None:
                    return
                try:
                    results[number] = function(*calls[number])
                except Exception as error:  # noqa: BLE001  # raised below
                    errors[number] = error

        futures = [self.pool.submit(work) for _ in range(min(self.number, len(calls)) - 1)]
        try:
            work()
        finally:
            wait(futures)
        if errors:
            raise errors[min(errors)]
        return [results[number] for number in range(len(calls))]


_IDLE: list[Threads] = []
_LENDING = Lock()


def _forget_threads() -> None:
    """Drop all threads after a fork: the child has none of them, and the lock may be locked."""
    global _LENDING  # another process cannot release it
    _IDLE.clear()
    _LENDING = Lock()


os.register_at_fork(after_in_child=_forget_threads)
