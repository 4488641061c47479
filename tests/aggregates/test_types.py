"""The table in docs/aggregates.md of what each aggregate gives over each type: it is what `bind` says."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin import aggregates as a
from muntin.aggregates.arrays import plain_type
from muntin.aggregates.base import Aggregate
from muntin.errors import DataError

PAGE = Path(__file__).parents[2] / "docs" / "aggregates.md"

FAMILIES: dict[str, list[pa.DataType]] = {
    "integers": [
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    ],
    "floats": [pa.float32(), pa.float64()],
    "decimal(p, s)": [pa.decimal128(5, 0), pa.decimal128(10, 2), pa.decimal128(28, 6)],
    "bool": [pa.bool_()],
    "string": [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    "binary": [pa.binary(), pa.large_binary(), pa.binary(4)],
    "date, time, timestamp": [
        pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
    ],
    "duration": [pa.duration("s"), pa.duration("us")],
}  # fmt: skip

ARGUMENTS: dict[str, dict[str, Any]] = {
    "approx_quantile": {"q": 0.5},
    "count_min": {"items": ["a"]},
    "histogram": {"bins": 2},
    "naive_bayes": {"columns": ["x"]},
    "nth": {"n": 2},
    "percentiles": {"q": [0.5]},
    "quantile": {"q": 0.5},
    "top_k": {"k": 2},
}


def made(name: str, type_: pa.DataType) -> Aggregate:
    constructor = getattr(a, name)
    columns = getattr(constructor, "column_fields", ("column",))
    arguments = ARGUMENTS.get(name, {})
    if name == "count_min" and pa.types.is_integer(type_):
        arguments = {"items": [1]}
    aggregate: Aggregate = constructor(*columns[:1], **{n: n for n in columns[1:]}, **arguments)
    return aggregate


def told(type_: pa.DataType, of: pa.DataType) -> set[str]:
    """All ways in which the table may say a type."""
    if pa.types.is_list(type_):
        return {f"list of {words}" for words in told(type_.value_type, of)}
    found = {{"double": "float64"}.get(str(type_), str(type_).partition("<")[0])}
    if type_ == plain_type(of):
        found.add("same")
    if pa.types.is_decimal(of):
        if type_ == pa.decimal128(min(38, of.precision + 10), of.scale):
            found.add("decimal(p + 10, s)")
        if type_ == pa.decimal128(min(38, of.precision + 4), of.scale + 4):
            found.add("decimal(p + 4, s + 4)")
    return found


def cell(name: str, types: list[pa.DataType]) -> str:
    """What one aggregate gives over the types of one family; nothing where it refuses them."""
    said = []
    for type_ in types:
        aggregate = made(name, type_)
        try:
            said.append(told(aggregate.bind((type_,) * len(aggregate.inputs)).type, type_))
        except DataError:
            said.append({""})
    for_all = set.intersection(*said)
    assert for_all, f"{name} has no one result over {types}: {said}"
    return min(for_all, key=lambda words: (not words.endswith("same"), words))


def table() -> list[str]:
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in a.__all__:
        if name.islower() and name not in ("aggregate", "col"):
            rows.setdefault(tuple(cell(name, types) for types in FAMILIES.values()), []).append(f"`{name}`")
    lines = [["", *FAMILIES], ["---"] * (len(FAMILIES) + 1)]
    lines += [[", ".join(names), *cells] for cells, names in rows.items()]
    return ["|" + "|".join(f" {text} " if text != "---" else text for text in line) + "|" for line in lines]


def test_the_page_has_the_table() -> None:
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    start = next((i for i, line in enumerate(shown) if "decimal(p, s)" in line), None)
    assert start is not None, "docs/aggregates.md has no table of types"
    assert shown[start : start + len(table())] == table()
