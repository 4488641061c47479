"""Every transcript on every engine, in every variant."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from muntin.testing import EmbeddedEngine, OracleEngine, Transcript, load_transcripts, replay, variants_of

sys.path.insert(0, str(Path(__file__).parent))
from named import NAMED  # beside this file, not installed

TRANSCRIPTS = load_transcripts(Path(__file__).parent, NAMED)
CASES = [
    pytest.param(transcript, variant, id=f"{transcript.name}-{variant.replace(' ', '_')}")
    for transcript in TRANSCRIPTS
    for variant in variants_of(transcript)
]


@pytest.mark.parametrize(("transcript", "variant"), CASES)
def test_oracle(transcript: Transcript, variant: str) -> None:
    replay(transcript, OracleEngine, variant)


@pytest.mark.parametrize(("transcript", "variant"), CASES)
def test_embedded(transcript: Transcript, variant: str) -> None:
    replay(transcript, EmbeddedEngine, variant)


def test_there_are_enough() -> None:
    passing = [transcript for transcript in TRANSCRIPTS if not transcript.must_fail]
    assert len(passing) >= 70
    assert len(TRANSCRIPTS) - len(passing) >= 10
    for trap in range(1, 12):
        assert any(transcript.name.startswith(f"trap_{trap:02d}_") for transcript in passing)
