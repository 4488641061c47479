"""`muntin bench aggregates` measures all that there is."""

from muntin import aggregates as a
from muntin.bench.aggregates import OWN, TEN, TEN_NAME, catalogue, measure


def test_every_aggregate_is_measured() -> None:
    names = ({name for name in a.__all__ if name.islower()} - {"aggregate", "col"}) | set(OWN)
    assert set(catalogue()) == names
    found = measure(tuples=3_000)
    assert {one.name for one in found} == names | {TEN_NAME}
    assert len(set(TEN)) == 10
    assert [one.times_sum for one in found if one.name == "sum"] == [1.0]
