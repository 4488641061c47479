"""`filter=`: tuples for which it is false or null do not count, for that aggregate alone."""

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates.filtering import bind
from muntin.errors import DataError, QueryError
from muntin.query_file import loads
from muntin.slicing.partials import PartialSet

TABLE = pa.table(
    {
        "at": [1, 2, 3, 4, 11, 12],
        "side": ["buy", "sell", None, "buy", "sell", None],
        "amount": [1, 2, 4, None, 16, 32],
    }
)


def run(**aggregates: a.sum) -> dict[str, list[object]]:
    found = mt.windows(ten=w.tumbling(10)).aggregate(**aggregates).on("at").run(TABLE)
    return {name: found.column(name).to_pylist() for name in aggregates}


def test_false_and_null_do_not_count() -> None:
    assert run(
        bought=a.sum("amount", filter=mt.col("side") == "buy"),
        text=a.sum("amount", filter='side == "buy"'),
        tuples=a.count(filter="side == 'buy'"),
        values=a.count("amount", filter="side == 'buy'"),
        everything=a.sum("amount"),
    ) == {
        "bought": [1, None],
        "text": [1, None],
        "tuples": [2, 0],
        "values": [1, 0],
        "everything": [7, 48],
    }


def test_filters_beside_one_another() -> None:
    assert run(
        sold=a.collect("amount", filter="side == 'sell'"),
        unknown=a.max("amount", filter="side is None"),
        null=a.first("amount", filter="side == 'buy' and at > 1"),
        all=a.last("amount", filter="at > 0"),
    ) == {"sold": [[2], [16]], "unknown": [4, 32], "null": [None, None], "all": [None, 32]}


def test_a_column_of_nulls_keeps_nothing() -> None:
    table = TABLE.set_column(1, "side", pa.nulls(6))
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count(filter="side")).on("at")
    assert query.run(table).column("n").to_pylist() == [0, 0]


def test_equal_columns_and_filters_share_partials() -> None:
    aggregates = [
        a.sum("amount", filter="side == 'buy'"),
        a.mean("amount", filter=mt.col("side") == "buy"),
        a.count("amount", filter='side=="buy"'),
    ]
    bound = tuple(bind(aggregate, (pa.int64(), pa.bool_())) for aggregate in aggregates)
    assert len(PartialSet.of(bound, ()).partials) == 2
    other = (*bound, bind(a.sum("amount", filter="side == 'sell'"), (pa.int64(), pa.bool_())))
    assert len(PartialSet.of(other, ()).partials) == 4


def test_a_filter_is_a_condition() -> None:
    with pytest.raises(DataError, match='filter needs a condition: "amount" is int64; compare it'):
        run(total=a.sum("amount", filter="amount"))
    with pytest.raises(QueryError, match=r"filter must be the name of a column or an expression.*got 3"):
        a.sum("amount", filter=3)


def test_in_a_file_and_in_words() -> None:
    total = a.sum("amount", filter=mt.col("side") == "buy")
    assert str(total) == "sum(amount, filter=side == 'buy')"
    assert total.parameters() == {"column": "amount", "filter": "side == 'buy'"}
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=total).on("at")
    assert loads(query.to_toml()) == query
    text = query.to_toml().replace("\"side == 'buy'\"", "'side == \"buy\"'")
    assert loads(text) == query
