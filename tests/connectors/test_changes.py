"""Changes of the windows of a stream: files and windows with any name, directories that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark.query_changes import named, read_change, to_toml
from muntin.errors import QueryError
from muntin.slicing.window_changes import Change

QUERY = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")


@pytest.mark.parametrize("name", ["plain", "with space", 'q"uo\\te', "zeile\n2", "größe", "\x7f", "[x]"])
def test_names_of_windows_come_back_as_they_are(name: str) -> None:
    change = Change({name: w.tumbling(5)}, {name: a.count().over("ten")}, ("ten", name))
    assert read_change(to_toml(change), "a file") == change


def test_windows_with_odd_names_come_and_go(tmp_path: Path) -> None:
    live = QUERY.control(tmp_path)
    live.add(**{'q"uo\\te': w.tumbling(5)})
    live.remove("ten")
    assert list(live.served()) == ['q"uo\\te']
    live.add(five=w.tumbling(5))
    live.remove('q"uo\\te')
    assert list(live.served()) == ["five"]


def test_spark_tells_names_of_files_as_parts_of_addresses() -> None:
    texts = ["my%20change.toml\nb", "100%25.toml\na", "a.toml\n"]
    assert named(texts) == [("100%.toml", "a"), ("a.toml", ""), ("my change.toml", "b")]


@pytest.mark.parametrize("name", ["ctl[1]", "all*", "{a,b}", "what?"])
def test_a_directory_that_spark_would_read_as_a_pattern(tmp_path: Path, name: str) -> None:
    with pytest.raises(QueryError, match=r"must have none of .*which Spark reads as a pattern: got .*choose"):
        QUERY.control(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
