"""`muntin replay`: transcripts through the embedded operator, in all their variants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from muntin.errors import QueryError

__all__ = ["replayed"]


def replayed(path: Path) -> Iterator[tuple[str, str]]:
    """The name of each transcript in a file or directory, with what differs; empty where nothing does."""
    try:
        from yaml import YAMLError

        from muntin.testing import EmbeddedEngine, load_transcripts, replay, variants_of
        from muntin.testing.transcripts import MismatchError
    except ImportError as error:
        raise QueryError(f'{error.name} is not installed: pip install "muntin[testing]"') from None
    try:
        transcripts = load_transcripts(path)
    except YAMLError as error:
        raise QueryError(f"{path} is not valid YAML: {error}") from None
    for transcript in transcripts:
        problem = ""
        for variant in variants_of(transcript):
            try:
                replay(transcript, EmbeddedEngine, variant)
            except MismatchError as error:
                problem = f"{variant}: {error}"
                break
        yield transcript.name, problem
