"""What an operator shows of itself is exact after every step of random streams, and changes no result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note

from muntin.testing.scenarios import Scenario, check
from muntin.testing.strategies import scenarios

sys.path.insert(0, str(Path(__file__).parent))
from inspected import InspectedEngine  # beside this file, not installed

KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "time": (("time",), {}),
    "session": (("session", "time"), {}),
    "ranks": (("ranks", "time"), {}),
    "frames": (("frames", "session"), {}),
    "measures": (("measures", "user"), {}),
    "live": (("time", "session", "ranks", "frames"), {"live": True, "snapshots": True}),
    "early": (("time", "session", "ranks", "frames", "measures"), {"early": True}),
    "forget": (("ranks", "frames", "measures", "user", "time"), {"forget": True}),
    "stamps": (("calendar", "time", "session", "ranks"), {"stamps": True}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_open_windows_and_slices_are_exact(kind: str) -> None:
    families, options = KINDS[kind]

    @given(scenarios(families, items=25, **options))
    def inspect(scenario: Scenario) -> None:
        note(repr(scenario))
        check(scenario, InspectedEngine)

    inspect()
