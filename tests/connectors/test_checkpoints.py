"""The state variables of a checkpoint say which version of Muntin wrote it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from muntin.connectors.spark.checkpoints import find
from muntin.errors import SnapshotError
from muntin.slicing.snapshots.archive import VERSION


def session(*variables: str) -> Any:
    """A session whose reader of metadata finds one operator with these state variables."""
    names = [{"stateName": name} for name in (*variables, "$eventTimers_keyToTimestamp")]
    row = {
        "operatorId": 0,
        "operatorName": "transformWithStateInPandasExec",
        "minBatchId": 0,
        "maxBatchId": 3,
        "operatorProperties": json.dumps({"stateVariables": names}),
    }
    loaded = SimpleNamespace(collect=lambda: [row])
    return SimpleNamespace(read=SimpleNamespace(format=lambda _: SimpleNamespace(load=lambda _: loaded)))


def test_a_state_of_one_map_is_read() -> None:
    assert find(session("parts"), "/checkpoint").batches == range(4)


def test_a_head_of_version_7_is_refused_before_it_is_read() -> None:
    with pytest.raises(
        SnapshotError, match=f"format version 7 or older, this version of Muntin reads {VERSION}"
    ):
        find(session("parts", "head"), "/checkpoint")
