"""Where a window that is added to a running query begins at the latest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muntin.testing.oracle.time_windows import first_start, is_context_free
from muntin.testing.oracle.windows import is_plain_session
from muntin.timeline import INF, NEG_INF

__all__ = ["Storage"]


@dataclass
class Storage:
    """From when on an engine has each tuple by itself, because some window depends on their order."""

    since: int = INF

    def serve(self, windows: Iterable[Any], newest: int) -> None:
        """These windows run from now on; `newest` is the time of the newest tuple so far."""
        if all(is_context_free(window) or is_plain_session(window) for window in windows):
            self.since = INF
        elif self.since == INF:
            self.since = _behind(newest)

    def latest_start(self, window: Any, newest: int, watermark: int, lateness: int) -> int:
        """The latest start of the first instance of a window that is added now.

        Stored tuples serve it from the watermark minus the lateness on. Without lateness only those behind
        the watermark do, which are not in slices yet.
        """
        begin = _behind(newest)
        if begin == NEG_INF or not is_context_free(window):
            return begin
        if not window.emit_empty:
            final = watermark - lateness if lateness else watermark + 1
            begin = min(begin, max(self.since, final))
        return first_start(window, begin, watermark)


def _behind(newest: int) -> int:
    return NEG_INF if newest == NEG_INF else newest + 1
