"""`python -m benchmarks aggregates` measures all that there is, and does not let a wrong result pass."""

import pyarrow as pa
import pytest

from benchmarks.aggregate_results import EXPECTED, check, count_ranges
from benchmarks.aggregates import OWN, TEN, TEN_NAME, _stream, catalogue, measure
from muntin import aggregates as a
from muntin.dsl import windows
from muntin.windows import count


def test_every_aggregate_is_measured() -> None:
    names = ({name for name in a.__all__ if name.islower()} - {"aggregate", "col"}) | set(OWN)
    assert set(catalogue()) == set(EXPECTED) == names
    found = measure(tuples=5_000)
    assert {one.name for one in found} == names | {TEN_NAME}
    assert len(set(TEN)) == 10
    assert [(one.times_sum, one.count_times_sum) for one in found if one.name == "sum"] == [(1.0, 1.0)]


@pytest.mark.parametrize("name", ["sum", "median", "collect", "concat", "bloom", "naive_bayes", "theta"])
def test_a_wrong_result_is_found(name: str) -> None:
    stream, batches = _stream(5_000, in_order=False)
    query = windows(c=count(1_000)).aggregate(**{name: catalogue()[name]}).on("at")
    results = query.run(pa.Table.from_batches(batches)).to_arrow()
    ranges = {"c": count_ranges(stream, 1_000)}
    check(results, [name], ranges, stream)
    moved = results[name].slice(1).combine_chunks().to_pylist() + results[name].slice(0, 1).to_pylist()
    if name == "theta":
        moved[2] *= 2
    wrong = results.set_column(results.column_names.index(name), name, pa.array(moved, results[name].type))
    with pytest.raises(AssertionError, match=f"{name} of the tuples"):
        check(wrong, [name], ranges, stream)
    with pytest.raises(AssertionError, match="4 windows"):
        check(results.slice(1), [name], ranges, stream)
