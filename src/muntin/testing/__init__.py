"""For tests of queries and engines: the oracle, transcripts, recordings, scenarios, the laws of aggregates.

    from muntin.testing import Oracle, compare, laws, load_transcripts, record, replay

`muntin.testing.strategies` needs hypothesis and is not imported here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.testing import laws
    from muntin.testing.engines import EmbeddedEngine, Engine, OracleEngine, rows_of_table
    from muntin.testing.oracle import Oracle
    from muntin.testing.recording import RecordedOperator, record
    from muntin.testing.rows import Row, compare
    from muntin.testing.transcripts import (
        VARIANTS,
        MismatchError,
        Transcript,
        load_transcripts,
        replay,
        variants_of,
    )

__all__ = [
    "VARIANTS",
    "EmbeddedEngine",
    "Engine",
    "MismatchError",
    "Oracle",
    "OracleEngine",
    "RecordedOperator",
    "Row",
    "Transcript",
    "compare",
    "laws",
    "load_transcripts",
    "record",
    "replay",
    "rows_of_table",
    "variants_of",
]

_HOMES = {
    "engines": ("EmbeddedEngine", "Engine", "OracleEngine", "rows_of_table"),
    "oracle": ("Oracle",),
    "recording": ("RecordedOperator", "record"),
    "rows": ("Row", "compare"),
    "transcripts": (
        "VARIANTS", "MismatchError", "Transcript", "load_transcripts", "replay", "variants_of",
    ),
}  # fmt: skip


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The pytest plugin is in this package, and every run of pytest imports it.
        if name == "laws":
            return import_module("muntin.testing.laws")
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"muntin.testing.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
