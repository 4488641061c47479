"""Threads that work on one table, beside the one that asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

__all__ = ["Threads"]

Found = TypeVar("Found")

KEPT = 2
"""So many sets of threads stay, the last that were used."""


@dataclass(frozen=True, slots=True)
class Threads:
    """So many threads, of which all but the caller's stay for the next one who needs as many.

    To start threads takes longer than many a table does, and the memory that they have used is theirs.

    >>> with Threads.borrowed(2) as threads:
    ...     threads.map(len, ["a", "bc"])
    [1, 2]
    """

    number: int
    pool: ThreadPoolExecutor
    """All but the caller's."""

    @classmethod
    def started(cls, number: int) -> Threads:
        """Threads of one owner; they end with it."""
        return cls(number, ThreadPoolExecutor(number - 1, thread_name_prefix="muntin"))

    @classmethod
    @contextmanager
    def borrowed(cls, number: int) -> Iterator[Threads]:
        """Threads that nobody else has meanwhile; after an error they end, since some may still work."""
        with _LENDING:
            # The last that were used: what they had in memory may still be there.
            found = next((threads for threads in reversed(_IDLE) if threads.number == number), None)
            if found is not None:
                _IDLE.remove(found)
        threads = found or cls.started(number)
        try:
            yield threads
        except BaseException:
            threads.pool.shutdown(wait=False, cancel_futures=True)
            raise
        with _LENDING:
            _IDLE.append(threads)
            ending = _IDLE[:-KEPT]
            del _IDLE[:-KEPT]
        for others in ending:
            others.pool.shutdown(wait=False)

    def map(self, function: Callable[..., Found], *columns: Iterable[Any]) -> list[Found]:
        """What the function gives for each call. All of them are over then; the first one's error is raised.

        Each thread makes the next call that none has made. The caller's thread is one of them: to wake
        another one up takes its time.
        """
        calls = list(zip(*columns, strict=True))
        found, errors = dict[int, Found](), dict[int, Exception]()
        left, taking = iter(range(len(calls))), Lock()

        def work() -> None:
            while True:
                with taking:
                    number = next(left, None)
                if number is None:
                    return
                try:
                    found[number] = function(*calls[number])
                except Exception as error:  # noqa: BLE001  # raised below
                    errors[number] = error

        futures = [self.pool.submit(work) for _ in range(min(self.number, len(calls)) - 1)]
        try:
            work()
        finally:
            wait(futures)
        if errors:
            raise errors[min(errors)]
        return [found[number] for number in range(len(calls))]


_IDLE: list[Threads] = []
_LENDING = Lock()


def _forget_threads() -> None:
    """A process that was forked has none of the threads, and the lock may have been taken."""
    global _LENDING  # it cannot be set free by another process
    _IDLE.clear()
    _LENDING = Lock()


os.register_at_fork(after_in_child=_forget_threads)
