"""How many random scenarios the property tests try.

A property test sets no `max_examples` of its own. One that covers more ground than others
takes a multiple, and so grows with the profile too:

    @settings(max_examples=10 * settings.default.max_examples)

`make test` runs the profile "default", `make test-deep` the profile "deep".
"""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from muntin.errors import MuntinError

settings.register_profile(
    "default",
    max_examples=100,
    # The first example of a test may compile kernels: its time says nothing.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    # The same examples in every run: what fails here fails everywhere.
    derandomize=True,
)
# Other examples in every run, and some more of them. The bulk of a deep run are the scenarios of
# tests/properties/test_against_oracle.py, which sets their number itself.
settings.register_profile("deep", settings.get_profile("default"), max_examples=300, derandomize=False)
settings.load_profile("default")

if sys.version_info >= (3, 14) and find_spec("datasketches") is None:

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call() -> Iterator[None]:
        """Skip the tests of sketches, whose package has no wheels for this Python."""
        try:
            return (yield)  # type: ignore[return-value]
        except MuntinError as error:
            if "needs the package datasketches" in str(error):
                pytest.skip(str(error))
            raise
