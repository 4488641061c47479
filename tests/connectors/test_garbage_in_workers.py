"""What a worker has imported is exempt from garbage collection; a program's own objects never are."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from muntin.connectors.spark import workers


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Objects are exempt neither before the test nor after it."""
    gc.unfreeze()
    monkeypatch.setattr(workers, "_exempt", 0)
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("collected")
def test_nothing_is_exempt_outside_a_task() -> None:
    workers.exempt_modules()
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("collected")
def test_modules_are_exempt_once_and_again_when_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_is_worker", lambda: True)
    workers.exempt_modules()
    first = gc.get_freeze_count()
    assert first > 10_000
    later = [[] for _ in range(100)]  # type: ignore[var-annotated]
    workers.exempt_modules()
    assert gc.get_freeze_count() <= first
    monkeypatch.setitem(sys.modules, "one_more", sys)
    workers.exempt_modules()
    assert gc.get_freeze_count() > first
    assert len(later) == 100
