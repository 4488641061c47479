"""The peak of resident memory while something runs.

Linux keeps the peak of a process (VmHWM) and starts it anew on request; `ru_maxrss` is the peak since
the process began and would show the largest workload for all that follow it. tracemalloc makes
everything slower. Elsewhere than on Linux nothing is measured.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

__all__ = ["Peak", "peak_memory"]

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class Peak:
    """How many bytes more than before were resident at the peak; None where that is not known."""

    bytes: int | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the block.

    >>> with peak_memory() as peak:
    ...     _ = bytearray(50_000_000)
    >>> peak.bytes is None or peak.bytes > 40_000_000
    True
    """
    peak = Peak()
    _give_back()
    try:
        _RESET.write_text("5")
        before = _resident("VmRSS")
    except OSError:
        yield peak
        return
    yield peak
    peak.bytes = max(0, _resident("VmHWM") - before)


def _give_back() -> None:
    """What earlier work freed goes back to the system: else new work would hide in it."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _resident(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1]) * 1024
