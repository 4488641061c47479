"""The operator with each store beside the oracle: what a window holds does not depend on the store.

How many scenarios: 480 in the profile "default", 24,000 in "deep".
"""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from muntin.planning.plan import STORES
from muntin.slicing.combining import standing_trees
from muntin.testing.engines import EmbeddedEngine
from muntin.testing.scenarios import Scenario, check
from muntin.testing.strategies import scenarios
from muntin.testing.strategy_aggregates import AGGREGATES

EXACT = ("n", "n_f", "sum_i", "mean_i")
"""Those that prefix sums can serve."""

WORDS = ("n", "n_f", "sum_i", "sum_f", "min_i", "max_f", "max_b", "mean_i", "mean_f", "n_if")
"""Those whose partials trees in shared arrays can combine."""

SOME = settings(
    max_examples=settings.default.max_examples * 6 // 10,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("store", STORES)
@SOME
@given(data=st.data())
def test_any_store_gives_what_the_oracle_gives(store: str, data: st.DataObject) -> None:
    aggregates = EXACT if store == "prefix" else tuple(AGGREGATES)
    early, wide = data.draw(st.booleans()), data.draw(st.booleans())
    scenario: Scenario = data.draw(
        scenarios(early=early, live=True, snapshots=True, wide=wide, aggregates=aggregates)
    )
    note(repr(scenario))
    check(scenario, partial(EmbeddedEngine, store=store))


@pytest.mark.parametrize("planned", [False, True])
@SOME
@given(data=st.data())
def test_trees_in_shared_arrays_give_what_the_oracle_gives(planned: bool, data: st.DataObject) -> None:
    """Forced; and where the plan walks, at every watermark, as if walks cost too much."""
    early, wide = data.draw(st.booleans()), data.draw(st.booleans())
    scenario: Scenario = data.draw(
        scenarios(early=early, live=True, snapshots=True, wide=wide, aggregates=WORDS)
    )
    note(repr(scenario))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FIXED_COST", "WINDOW_COST", "ROW_COST"):
            patch.setattr(standing_trees, name, 0)
        check(scenario, EmbeddedEngine if planned else partial(EmbeddedEngine, store="flatfat"))
