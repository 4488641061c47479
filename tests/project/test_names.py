"""Names in the code say what a thing is to a reader who does not know its history."""

from __future__ import annotations

import tokenize
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "muntin"
SAY_NOTHING = {
    "alike", "closed", "crowded", "divides", "driven", "due", "filling", "found", "held", "judging", "kept",
    "pieces", "portions", "routed", "uneven", "ways",
}  # fmt: skip
"""Participles and plurals that do not say of what; `complete_at`, `closed_windows`, `input_files` do."""


def test_names_say_what_a_thing_is() -> None:
    assert not [place for path in sorted(SOURCES.rglob("*.py")) for place in _names_that_say_nothing(path)]


def _names_that_say_nothing(path: Path) -> Iterator[str]:
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.NAME and token.string in SAY_NOTHING:
                yield f"{path.relative_to(SOURCES)}:{token.start[0]} {token.string}"
