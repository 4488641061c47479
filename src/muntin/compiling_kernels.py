"""A word to the user when compiling takes long: it happens once per machine, and can be done beforehand."""

from __future__ import annotations

import sys
import time
from typing import Any

from numba.core import event

__all__ = ["Announcer", "announce_compiling"]

LONG = 1.0
"""So many seconds of compiling pass without a word."""

MESSAGE = "muntin: compiling, which takes a while once per machine; `muntin warmup` does it ahead of time\n"


class Announcer(event.Listener):
    """Adds up the time that functions of Muntin take to compile, and speaks up once.

    Functions that are not kept on disk, as those of a user's aggregate, do not count: they are
    compiled by each process. One that is compiled for another is part of that one's time.
    """

    def __init__(self) -> None:
        self.silent = False
        self.compiled = 0
        self._spent = 0.0
        self._open: list[float] = []

    def on_start(self, event: Any) -> None:
        """Called by Numba, also from other threads; only one of them compiles at a time."""
        if self._open or _is_kept(event):
            self._open.append(time.perf_counter())
            self._speak()

    def on_end(self, event: Any) -> None:
        """Called by Numba."""
        if not self._open:
            return
        started = self._open.pop()
        if not self._open:
            self.compiled += 1
            self._spent += time.perf_counter() - started
        self._speak()

    def _speak(self) -> None:
        running = time.perf_counter() - self._open[0] if self._open else 0.0
        if not self.silent and self._spent + running >= LONG:
            self.silent = True
            sys.stderr.write(MESSAGE)


def _is_kept(event: Any) -> bool:
    dispatcher = event.data["dispatcher"]
    # What was typed at a prompt may have no module.
    module = dispatcher.py_func.__module__ or ""
    return module.startswith("muntin.") and dispatcher.stats.cache_path is not None


ANNOUNCER = Announcer()
event.register("numba:compile", ANNOUNCER)


def announce_compiling() -> Announcer:
    """From now on a compilation that takes long is told once on stderr; the one who tells it."""
    return ANNOUNCER
