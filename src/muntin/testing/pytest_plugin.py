"""The pytest plugin: `muntin_recorder` records what an operator takes in and gives, and compares later runs.

It is imported at the start of every run of pytest, so it imports Muntin only where a test uses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from muntin.connectors.embedded import Operator
    from muntin.dsl import Query
    from muntin.testing.recording import RecordedOperator

__all__ = ["muntin_recorder", "pytest_addoption", "pytest_runtest_call", "pytest_terminal_summary"]

_RECORDED = pytest.StashKey[list["RecordedOperator"]]()
_WRITTEN = pytest.StashKey[list[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews recordings."""
    parser.getgroup("muntin").addoption(
        "--muntin-record", action="store_true", help="Write the recordings of muntin_recorder again."
    )


@pytest.fixture
def muntin_recorder(request: pytest.FixtureRequest) -> Callable[..., RecordedOperator]:
    """Record an operator: the fixture is a function, to be called with an operator or a query.

    The first run writes a transcript of the batches, the watermarks and the results to
    `recordings/<module>/<test>.yaml` beside the test. A later run compares with it, after the test, and
    replays it in all its variants. `name` tells several recordings of one test apart.
    """

    def recorder(operator: Operator | Query, name: str = "") -> RecordedOperator:
        from muntin.testing.recording import record

        test = re.sub(r"[^\w-]+", "_", request.node.name).strip("_")
        path = request.path.parent / "recordings" / request.path.stem
        path /= f"{test}-{name}.yaml" if name else f"{test}.yaml"
        recorded = request.node.stash.setdefault(_RECORDED, [])
        if any(other.path == path for other in recorded):
            raise pytest.UsageError(
                f'recordings of one test need names: got two without, or with "{name}"; '
                'write muntin_recorder(query, "orders")'
            )
        recording = record(operator, path, renew=request.config.getoption("--muntin-record"))
        recorded.append(recording)
        return recording

    return recorder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Complete the recordings of a test that has passed."""
    yield
    for recorded in item.stash.get(_RECORDED, []):
        recorded.complete()
        if recorded.renews:
            item.config.stash.setdefault(_WRITTEN, []).append(recorded.path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the recordings that were written."""
    for path in config.stash.get(_WRITTEN, []):
        terminalreporter.write_line(f"muntin: recorded {path}")
