"""The embedded operator beside the oracle, on random queries and streams.

How many scenarios: 2,500 in the profile "default", 110,000 in "deep" (`--hypothesis-profile
deep`), or about as many as MUNTIN_EXAMPLES says. They are the same in every run; MUNTIN_SEED
(a number, or "random") tries others. Those of "deep" take an hour on two cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, note, seed, settings

from muntin.testing.scenarios import Scenario, check
from muntin.testing.strategies import scenarios

PARTS = 33  # the sum of all shares below
SEED = os.environ.get("MUNTIN_SEED", "")
IN_PROFILE = {"default": 100 * PARTS, "deep": 4_400 * PARTS}[settings.get_current_profile_name()]
EXAMPLES = int(os.environ.get("MUNTIN_EXAMPLES", IN_PROFILE))

Test = Callable[[Scenario], None]


def on_random(share: int, *families: str, **options: Any) -> Callable[[Test], Test]:
    """Run a test on its share of the scenarios, over windows of these families."""

    def decorate(test: Test) -> Test:
        def noted(scenario: Scenario) -> None:
            note(repr(scenario))  # readable, unlike the integers that hypothesis drew
            test(scenario)

        noted.__name__, noted.__qualname__ = test.__name__, test.__qualname__
        arguments = (families,) if families else ()
        decorated = given(scenarios(*arguments, **options))(noted)
        if SEED not in ("", "random"):
            decorated = seed(int(SEED))(decorated)
        return settings(
            max_examples=max(1, share * EXAMPLES // PARTS),
            derandomize=not SEED,
            deadline=None,
            report_multiple_bugs=False,  # shrinking one is enough to begin with
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )(decorated)

    return decorate


@on_random(3, "time")
def test_windows_on_time(scenario: Scenario) -> None:
    check(scenario)


@on_random(3, "session", "session", "time")
def test_sessions_beside_windows_on_time(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, "ranks", "ranks", "time")
def test_windows_on_ranks(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, "frames", "frames", "session")
def test_frames(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, "measures", "user")
def test_other_measures_and_user_code(scenario: Scenario) -> None:
    check(scenario)


@on_random(3)
def test_everything_together(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, snapshots=True)
def test_through_snapshots(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, live=True, live_aggregates=True, snapshots=True)
def test_queries_that_come_and_go(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, early=True)
def test_early_results(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, early=True, live=True, live_aggregates=True, snapshots=True, wide=True)
def test_early_results_of_queries_that_come_and_go(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, "ranks", "frames", "measures", "user", "time", forget=True)
def test_keys_that_are_forgotten(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, early=True, live=True, snapshots=True, forget=True)
def test_forgotten_keys_under_early_results_of_queries_that_come_and_go(scenario: Scenario) -> None:
    check(scenario)


# Few different values, and no sums of floats, whose last digits depend on the order of additions.
STEADY = ("n_b", "n_if", "every", "some", "bits_or", "min_n", "users", "most", "min_s_i", "set_s")


@on_random(2, changes=True, aggregates=STEADY, snapshots=True)
def test_changes_only(scenario: Scenario) -> None:
    check(scenario)


@on_random(1, changes=True, aggregates=STEADY, early=True, live=True, live_aggregates=True, snapshots=True)
def test_changes_under_early_results_of_queries_that_come_and_go(scenario: Scenario) -> None:
    check(scenario)


@on_random(1, changes=True, aggregates=STEADY, forget=True)
def test_changes_of_keys_that_are_forgotten(scenario: Scenario) -> None:
    check(scenario)


@on_random(2, "calendar", "time", "session", "ranks", "frames", stamps=True)
def test_timestamps(scenario: Scenario) -> None:
    check(scenario)
