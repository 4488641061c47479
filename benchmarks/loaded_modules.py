"""What the Python workers of a Spark session have loaded. Workers import this module: it imports little."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any

__all__ = ["Loaded", "loaded_modules"]

HEAVY = ("numba", "llvmlite", "rich", "typer")
"""Modules that no worker needs."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A Python worker that has run Muntin."""

    process: int
    heavy: tuple[str, ...]
    """Modules of HEAVY that it has imported."""
    compiled: int
    """Functions that Numba compiled there."""
    megabytes: float
    """Its resident memory."""


def loaded_modules(session: Any) -> tuple[Loaded, ...]:
    """The workers of a session that have run Muntin, as they are now."""
    found = session.sparkContext.parallelize(range(16), 8).map(_look).collect()
    return tuple({one.process: one for one in found if one is not None}.values())


def _look(_: int) -> Loaded | None:
    """In a worker: what it has loaded."""
    import psutil

    if "muntin.slicing.step" not in sys.modules:
        return None
    time.sleep(0.05)  # so that the next task goes to another worker
    announcer = sys.modules.get("muntin.compiling_kernels")
    compiled = announcer.ANNOUNCER.compiled if announcer is not None else 0
    heavy = tuple(name for name in HEAVY if name in sys.modules)
    return Loaded(os.getpid(), heavy, compiled, psutil.Process().memory_info().rss / 1e6)
