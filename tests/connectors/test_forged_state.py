"""State parts and payloads on Spark with wrong contents are refused, or the key group goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
from forged_worker import Worker  # in tests/core, not installed
from forging_state import NAMES  # beside this file, not installed


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(Path(__file__).parent / "forging_state.py")
    yield worker
    worker.close()


@pytest.mark.parametrize("what", ["state", "payload"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_forged_is_refused_or_works(worker: Worker, what: str, name: str) -> None:
    assert worker.wrong(f"{what} {name}", range(20)) == []


@pytest.mark.deep
@pytest.mark.parametrize("what", ["state", "payload"])
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_forged_is_refused_or_works(worker: Worker, what: str, name: str) -> None:
    assert worker.wrong(f"{what} {name}", range(20, 1_020)) == []
