"""A snapshot with a right checksum and wrong contents is refused, or gives an operator that works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from forged_worker import Worker  # beside this file, not installed
from forging import SHAPES


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(Path(__file__).parent / "forging.py")
    yield worker
    worker.close()


@pytest.mark.parametrize("name", SHAPES)
def test_a_forged_snapshot_is_refused_or_works(worker: Worker, name: str) -> None:
    assert worker.wrong(name, range(40)) == []


@pytest.mark.deep
@pytest.mark.parametrize("name", SHAPES)
def test_any_forged_snapshot_is_refused_or_works(worker: Worker, name: str) -> None:
    assert worker.wrong(name, range(40, 2_040)) == []
