"""For tests of queries and engines: the oracle, transcripts, random scenarios, the laws of aggregates.

    from muntin.testing import Oracle, compare, laws, load_transcripts, replay

`muntin.testing.strategies` needs hypothesis and is not imported here.
"""

from __future__ import annotations

from muntin.testing import laws
from muntin.testing.engines import EmbeddedEngine, Engine, OracleEngine, rows_of_table
from muntin.testing.oracle import Oracle
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
    "Row",
    "Transcript",
    "compare",
    "laws",
    "load_transcripts",
    "replay",
    "rows_of_table",
    "variants_of",
]
