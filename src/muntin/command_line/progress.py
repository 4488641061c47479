"""Progress of a run on stderr: throughput, watermark, late and bad tuples."""

from __future__ import annotations

import sys
import time as clocks

from muntin.slicing.stats import Stats
from muntin.timeline import INF, NEG_INF, format_instant

__all__ = ["Progress"]

PERIOD = 0.5
"""The seconds between two lines on a terminal."""


class Progress:
    """Counts tuples, and shows the count: on a terminal in one line that changes, else at the end alone."""

    def __init__(self, shown: bool = True) -> None:
        self.tuples = 0
        self._live = shown and sys.stderr.isatty()
        self._shown = shown
        self._start = self._last = clocks.monotonic()

    def add(self, tuples: int, watermark: int) -> None:
        """Count tuples that were taken in."""
        self.tuples += tuples
        now = clocks.monotonic()
        if self._live and now - self._last >= PERIOD:
            self._last = now
            sys.stderr.write(f"\r\x1b[2K{self._line(watermark)}")
            sys.stderr.flush()

    def finish(self, stats: Stats, rows: int) -> None:
        """Show the sums of the run."""
        if self._live:
            sys.stderr.write("\r\x1b[2K")
        if self._shown:
            late = ", ".join(f'{n:,} late for "{name}"' for name, n in stats.late.items() if n)
            line = f"{self._line(INF)}, {late or 'none late'}, {stats.bad:,} bad; {rows:,} result rows"
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def _line(self, watermark: int) -> str:
        seconds = max(clocks.monotonic() - self._start, 1e-6)
        line = f"{self.tuples:,} tuples in {seconds:.1f} s ({self.tuples / seconds:,.0f} per second)"
        if NEG_INF < watermark < INF:
            line += f", watermark {format_instant(watermark)}"
        return line
