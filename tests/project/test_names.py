"""Names in the code say what a thing is to a reader who does not know its history."""

from __future__ import annotations

import tokenize
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "muntin"
SAY_NOTHING = frozenset(
    "alike closed crowded divides driven due filling found held judging kept pieces portions routed uneven ways".split()
)
"""Participles and plurals that do not say of what; `complete_at`, `closed_windows`, `input_files` do."""


@pytest.mark.parametrize(
    "path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES))
)
def test_names_say_what_a_thing_is(path: Path) -> None:
    with path.open("rb") as source:
        names = {
            (t.string, t.start[0]) for t in tokenize.tokenize(source.readline) if t.type == tokenize.NAME
        }
    assert not sorted((line, name) for name, line in names if name in SAY_NOTHING)
