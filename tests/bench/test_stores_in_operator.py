"""`python -m benchmarks stores --operator` counts the combines of the watermark that it times."""

from __future__ import annotations

import pytest

from benchmarks.stores_in_operator import measure
from muntin.planning.plan import STORES

SLICES, PARTIALS = 64, 2


@pytest.mark.parametrize("store", STORES)
def test_combines_are_those_of_the_watermark(store: str) -> None:
    found = measure("sum of integers", 4, store, SLICES)
    walked = PARTIALS * (SLICES - 1)
    assert found.combines_per_window == walked if store == "lazy" else 0 < found.combines_per_window < walked
    assert found.microseconds_per_window > 0
