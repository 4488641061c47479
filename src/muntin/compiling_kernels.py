"""A message to the user when compilation takes long, which happens once per machine."""

from __future__ import annotations

import sys
import time
from typing import Any

LONG = 1.0
"""Seconds of compilation before the message: shorter waits need no explanation."""

MESSAGE = "muntin: compiling, which takes a while once per machine; `muntin warmup` does it ahead of time\n"


class Announcer:
    """Adds up the compilation time of Muntin's functions, and prints the message once.

    Functions that are not cached on disk, such as those of a user's aggregate, do not count: every process
    compiles them. The time of a function includes that of the functions compiled for it.
    """

    def __init__(self) -> None:
        self.silent = False
        self.compiled = 0
        self._spent = 0.0
        self._open: list[float] = []

    def on_start(self, event: Any) -> None:
        """Called when Numba begins, also from other threads; only one of them compiles at a time."""
        if self._open or _is_cached(event):
            self._open.append(time.perf_counter())
            self._announce()

    def on_end(self, event: Any) -> None:
        """Called when Numba has compiled a function."""
        if not self._open:
            return
        started = self._open.pop()
        if not self._open:
            self.compiled += 1
            self._spent += time.perf_counter() - started
        self._announce()

    def _announce(self) -> None:
        running = time.perf_counter() - self._open[0] if self._open else 0.0
        if not self.silent and self._spent + running >= LONG:
            self.silent = True
            sys.stderr.write(MESSAGE)


def _is_cached(event: Any) -> bool:
    dispatcher = event.data["dispatcher"]
    module = dispatcher.py_func.__module__ or ""  # None for functions defined at a prompt
    return module.startswith("muntin.") and dispatcher.stats.cache_path is not None


ANNOUNCER = Announcer()


def announce_compiling() -> Announcer:
    """The announcer, which prints to stderr, once, when compilation takes long."""
    return ANNOUNCER
