"""Transcripts of the core through a streaming query, a micro-batch per step, beside the oracle."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.testing import load_transcripts

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts"))
from named import NAMED
from replay_on_spark import Stream, as_stream, differences

STREAMS = [
    stream
    for transcript in load_transcripts(Path(__file__).parents[1] / "transcripts", NAMED)
    if (stream := as_stream(transcript)) is not None
]
QUICK = {
    "update_with_the_next_revision",
    "fig_09_case_2_late",
    "count_shifted_by_a_late_tuple",
    "threshold_broken_by_a_late_tuple",
}
"""In `make test`; every micro-batch takes half a second or more."""


@pytest.mark.parametrize(
    "stream",
    [pytest.param(s, marks=[] if s.name in QUICK else pytest.mark.deep, id=s.name) for s in STREAMS],
)
def test_a_transcript_through_a_stream(spark: SparkSession, tmp_path: Path, stream: Stream) -> None:
    assert differences(spark, stream, tmp_path / "input") == ""


def test_there_are_enough() -> None:
    assert len(STREAMS) >= 50
    assert {stream.name for stream in STREAMS} >= QUICK
