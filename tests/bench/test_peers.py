"""`muntin bench peers` asks all engines the same, and lets no wrong result pass."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.bench import peers
from muntin.bench.peers import ENGINES, STREAMS, measure_peers, queries

pytest.importorskip("duckdb")


def test_all_engines_agree_with_numpy_on_all_queries() -> None:
    found = measure_peers(100_000, rounds=1)
    asked = {(m.query, m.stream, m.engine) for m in found}
    assert asked == {(q, s, e) for q in queries(keyed=False) for s in STREAMS for e in ENGINES}


def test_a_wrong_result_fails() -> None:
    right = pa.table({"total": [1, 2]})
    peers._time("peer P1", lambda: right, (2.0, 3.0), rounds=1)
    with pytest.raises(AssertionError, match="peer P1: windows and their sum are"):
        peers._time("peer P1", lambda: right, (2.0, 4.0), rounds=1)
    with pytest.raises(AssertionError, match="peer P1: windows and their sum are"):
        peers._time("peer P1", lambda: right, (3.0, 3.0), rounds=1)
