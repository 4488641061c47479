"""Rows, transcripts and scenarios are compared strictly, and differences are readable."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError
from muntin.testing import MismatchError, Oracle, OracleEngine, Row, compare, load_transcripts, replay

ROW = Row(("x",), "w", 0, 5, {"n": 2, "mean": 0.5})


@pytest.mark.parametrize(
    "other",
    [
        ROW._replace(keys=("y",)),
        ROW._replace(keys=(None,)),
        ROW._replace(window_name="v"),
        ROW._replace(start=1),
        ROW._replace(end=6),
        ROW._replace(aggregates={"n": 3, "mean": 0.5}),
        ROW._replace(aggregates={"n": 2, "mean": 0.5 + 1e-6}),
        ROW._replace(aggregates={"n": 2, "mean": None}),
        ROW._replace(aggregates={"n": 2}),
        ROW._replace(aggregates={"n": True, "mean": 0.5}),
        ROW._replace(kind="early"),
        ROW._replace(revision=1),
        ROW._replace(low=0, high=5),
    ],
    ids=str,
)
def test_every_part_of_a_row_counts(other: Row) -> None:
    assert compare([ROW], [other])
    assert compare([other], [ROW])


def test_equal_rows() -> None:
    nan = ROW._replace(aggregates={"n": math.nan, "mean": 0.1 + 0.2})
    assert not compare([nan, ROW], [ROW, nan._replace(aggregates={"n": math.nan, "mean": 0.3})])
    assert not compare([], [])


def test_rows_are_counted() -> None:
    assert compare([ROW, ROW], [ROW]) == "unexpected  x w [0, 5) n=2 mean=0.5 final 0"
    assert compare([ROW], [ROW, ROW]) == "missing     x w [0, 5) n=2 mean=0.5 final 0"


TRANSCRIPT = """
columns: [t, v]
stream: {time: t}
aggregates: {n: {function: count}}
transcripts:
  - name: one
    windows: {ten: {type: tumbling, length: 10}}
    steps:
      - input: [[1, 1], [11, 1]]
      - watermark: 10
        expect: [{window: [0, 10], n: EXPECTED}]
"""


def test_a_mismatch_tells_the_step_and_the_difference(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(TRANSCRIPT.replace("EXPECTED", "1"))
    (transcript,) = load_transcripts(file)
    replay(transcript, OracleEngine)
    file.write_text(TRANSCRIPT.replace("EXPECTED", "2"))
    (transcript,) = load_transcripts(file)
    with pytest.raises(MismatchError) as caught:
        replay(transcript, OracleEngine)
    assert str(caught.value).splitlines() == [
        "one (as given), at watermark: 10",
        "different   ten [0, 10) n=1 final 0",
        "expected    ten [0, 10) n=2 final 0",
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("n: EXPECTED", "m: 1", 'transcript one: unknown column "m" in an expected row'),
        (", n: EXPECTED", "", 'an expected row must have "n"'),
        ("window: [0, 10]", "window: [0]", r"must be \[start, end\]: got \[0\]"),
        ("[11, 1]", "[11]", r"one: an input row must have a value for each of t, v: got \[11\]"),
        ("[11, 1]", "11", "one: an input row must have a value for each of t, v: got 11"),
        ("- watermark: 10\n        expect", "- expect", "a step must have one of input, watermark, "),
        ("columns: [t, v]\n", "", 'one: there is no "columns"; add it'),
        ("  - name: one", "  - one\n  - name: one", "one.yaml, transcript 1: "),
        (TRANSCRIPT, "", "one.yaml must be a mapping with a list under transcripts"),
        (TRANSCRIPT, "[]", "one.yaml must be a mapping with a list under transcripts"),
        (TRANSCRIPT, "transcripts: 5", "one.yaml must be a mapping with a list under transcripts"),
        ("- watermark", "- watermrk", "watermark"),
        ("    steps", "    shufle: false\n    steps", "shuffle"),
        ("windows: {ten: {type: tumbling", "windows: {ten: {type: !named nobody", "nobody"),
    ],
)
def test_a_transcript_with_a_typo_is_refused(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(TRANSCRIPT.replace(right, wrong).replace("EXPECTED", "1"))
    with pytest.raises(QueryError, match=message):
        load_transcripts(file)


def test_a_key_may_be_one_name(tmp_path: Path) -> None:
    text = TRANSCRIPT.replace("{time: t}", "{time: t, key: v}").replace("n: EXPECTED", "v: 1, n: 1")
    (tmp_path / "one.yaml").write_text(text)
    (transcript,) = load_transcripts(tmp_path)
    replay(transcript, OracleEngine)


def test_a_directory_must_have_transcripts(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"a directory must have files that end in \.yaml: got "):
        load_transcripts(tmp_path)


def test_names_must_differ(tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(TRANSCRIPT.replace("EXPECTED", "1"))
    with pytest.raises(QueryError, match="twice"):
        load_transcripts(tmp_path)


def test_bad_tuples_change_nothing() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    oracle = Oracle(query)
    for bad in (None, 2**62 + 1, -(2**62) - 1):
        with pytest.raises(DataError):
            oracle.process([{"t": 1}, {"t": bad}])
    with pytest.raises(DataError, match="no column"):
        oracle.process([{"time": 1}])
    assert oracle.finish() == []


def test_queries_have_names() -> None:
    oracle = Oracle(mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t"))
    with pytest.raises(QueryError, match="differ"):
        oracle.add("ten", w.tumbling(5), since=0)
    with pytest.raises(QueryError, match='Did you mean "ten"'):
        oracle.remove("tenn")
