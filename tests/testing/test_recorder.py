"""The fixture `muntin_recorder`: transcripts of what an operator took in and gave, and their comparison."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError
from muntin.testing import EmbeddedEngine, MismatchError, load_transcripts, record, replay, variants_of

pytest_plugins = ["pytester"]

TEST = """
import muntin as mt
from muntin import aggregates as a, windows as w

def test_sales(muntin_recorder):
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t", allowed_lateness=5)
    op = muntin_recorder(query)
    op.process({"t": [1, 12], "k": ["x", "y"], "v": [3, 4]})
    op.advance(13)
    op.process({"t": 8, "k": "x", "v": 5})
    op.process({"t": 2, "k": "x", "v": 6})
    assert op.advance(14)["total"].to_pylist() == [14]
    op.advance(16)
    op.process({"t": 3, "k": "x", "v": 7})
    op.advance(21)
    op.finish()
"""
RECORDING = """\
columns: [t, k, v]
types: {t: int64, k: string, v: int64}
stream:
  time: t
  key: [k]
  allowed_lateness: 5
windows:
  ten: {type: tumbling, length: 10}
aggregates:
  total: {function: sum, column: v}
transcripts:
- name: test_sales
  steps:
  - input:
    - [1, x, 3]
    - [12, y, 4]
  - watermark: 13
    expect:
    - window: [0, 10]
      k: x
      total: 3
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Any:
    """Runs pytest in a folder, in a process; the plugin is given by name where it is not installed."""
    from importlib.metadata import entry_points

    installed = [one.name for one in entry_points(group="pytest11") if one.name == "muntin"]
    plugin = [] if installed else ["-p", "muntin.testing.pytest_plugin"]
    return lambda *options: pytester.runpytest_subprocess("-p", "no:cacheprovider", *plugin, *options)


def test_the_first_run_records_and_a_later_one_compares(pytester: pytest.Pytester, run: Any) -> None:
    pytester.makepyfile(test_a=TEST)
    done = run()
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["muntin: recorded *recordings/test_a/test_sales.yaml"])
    path = pytester.path / "recordings" / "test_a" / "test_sales.yaml"
    written = path.read_text()
    assert "revision: 1" in written
    assert "expect_late" in written
    done = run()
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("muntin: recorded*")
    pytester.makepyfile(test_a=TEST.replace('a.sum("v")', 'a.max("v")').replace("== [14]", "== [6]"))
    done = run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*test_sales.yaml, step 4, watermark", "*different   x ten*total=6*"])
    assert path.read_text() == written
    run("--muntin-record").assert_outcomes(passed=1)
    assert "total: 6" in path.read_text()
    run().assert_outcomes(passed=1)


def test_another_input_is_a_difference(pytester: pytest.Pytester, run: Any) -> None:
    pytester.makepyfile(test_a=TEST)
    run().assert_outcomes(passed=1)
    pytester.makepyfile(test_a=TEST.replace('"v": [3, 4]', '"v": [3, 5]'))
    done = run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*step 1: the input is not as it was recorded*pytest --muntin-record*"])
    pytester.makepyfile(test_a=TEST.replace("    op.finish()\n", ""))
    done = run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*has 8 steps: got 7*"])


def test_a_test_that_fails_writes_nothing(pytester: pytest.Pytester, run: Any) -> None:
    pytester.makepyfile(test_a=TEST.replace("== [14]", "== [0]"))
    run().assert_outcomes(failed=1)
    assert not (pytester.path / "recordings").exists()


def test_several_recordings_of_one_test_need_names(pytester: pytest.Pytester, run: Any) -> None:
    code = TEST.replace("op = muntin_recorder(query)", "muntin_recorder(query); op = muntin_recorder(query)")
    pytester.makepyfile(test_a=code)
    done = run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*recordings of one test need names*"])


def test_the_plugin_starts_without_the_engine() -> None:
    code = "import sys, muntin.testing.pytest_plugin; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    packages = {name.partition(".")[0] for name in loaded.split()}
    assert {"pytest", "muntin"} <= packages
    assert packages.isdisjoint({"numba", "numpy", "pandas", "pyarrow", "pyspark", "yaml", "hypothesis"})


# `record` by itself. --------------------------------------------------------------------------------

QUERY = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t", allowed_lateness=20)


def recorded(path: Path, query: Any, play: Any, **options: Any) -> Any:
    with record(query.operator(**options), path) as op:
        play(op)
    [transcript] = load_transcripts(path)
    for variant in variants_of(transcript):
        replay(transcript, EmbeddedEngine, variant)
    with record(query.operator(**options), path) as op:
        play(op)
    return transcript


def test_the_file_is_a_readable_transcript(tmp_path: Path) -> None:
    def play(op: Any) -> None:
        op.process({"t": [1, 12], "k": ["x", "y"], "v": [3, 4], "unread": [1, 2]})
        op.advance(13)

    recorded(tmp_path / "test_sales.yaml", QUERY.by("k").on("t", allowed_lateness=5), play)
    written = (tmp_path / "test_sales.yaml").read_text()
    assert sorted(written.split()) == sorted(RECORDING.split())


@pytest.mark.parametrize("options", [{"watermark_lag": 3}, {"in_order": True}])
def test_watermarks_that_follow_the_data_are_recorded(tmp_path: Path, options: dict[str, Any]) -> None:
    def play(op: Any) -> None:
        results = list(op.stream({"t": t, "v": t} for t in (1, 4, 14, 15, 31)))
        assert sum(map(len, results)) == 3

    transcript = recorded(tmp_path / "x.yaml", QUERY, play, **options)
    assert [step.action for step in transcript.steps][:2] == ["input", "watermark"]
    assert sum(len(step.expect) for step in transcript.steps) == 3


def test_times_keys_decimals_and_windows_that_come_and_go(tmp_path: Path) -> None:
    query = (
        mt.windows(minute=w.tumbling("1 minute"), three=w.count(3))
        .aggregate(total=a.sum("v"), at=a.max("ts"), all=a.collect("v"))
        .by("k", "day")
        .on("ts", allowed_lateness="1 hour")
    )
    noon = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)

    def play(op: Any) -> None:
        for minute in range(4):
            rows = [
                {
                    "ts": noon + dt.timedelta(minutes=minute, seconds=i),
                    "k": None if i else "x",
                    "day": noon.date(),
                    "v": Decimal("1.50"),
                }
                for i in range(4)
            ]
            op.process(pa.Table.from_pylist(rows))
            op.advance(noon + dt.timedelta(minutes=minute, seconds=30))
        op.add(half=w.tumbling("30 seconds"))
        op.process({"ts": noon + dt.timedelta(minutes=5), "k": "x", "day": noon.date(), "v": Decimal("2.00")})
        op.advance(noon + dt.timedelta(minutes=6))
        op.remove("minute")
        op.finish()

    transcript = recorded(tmp_path / "x.yaml", query, play)
    assert {"add", "remove", "finish"} <= {step.action for step in transcript.steps}


def test_code_in_a_query_is_named(tmp_path: Path) -> None:
    spread = a.aggregate("v", lift=lambda v: v, combine=max, type="int64")
    query = mt.windows(ten=w.tumbling(10)).aggregate(spread=spread, n=a.count()).on("t")
    for _ in range(2):
        with record(query, tmp_path / "x.yaml") as op:
            op.process({"t": [1, 5, 12], "v": [3, 9, 4]})
            op.advance(20)
    assert "spread: !named 'spread'" in (tmp_path / "x.yaml").read_text()
    with pytest.raises(QueryError, match='nothing is named "spread"'):
        load_transcripts(tmp_path / "x.yaml")


def test_results_that_depend_on_the_batches_are_marked(tmp_path: Path) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t", early=mt.each_batch())
    transcript = recorded(tmp_path / "x.yaml", query, lambda op: op.process({"t": [1, 2]}))
    assert not transcript.split


def test_what_a_recording_cannot_hold(tmp_path: Path) -> None:
    used = QUERY.operator()
    used.process({"t": 1, "v": 1})
    used.advance(5)
    with pytest.raises(QueryError, match="a recording begins before the first tuple"):
        record(used, tmp_path / "x.yaml")
    with pytest.raises(QueryError, match="a recording needs a call of the operator: got none"):
        record(QUERY, tmp_path / "x.yaml").complete()
    bad = QUERY.on("t", bad="skip")
    with pytest.raises(QueryError, match="a recording needs one type per column: "):
        record(bad, tmp_path / "x.yaml").process([{"t": 1, "v": 1}, {"t": "soon", "v": 1}])
    clock = iter(range(0, 1_000, 60))
    idle = mt.windows(m=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts", idle_after="30 seconds")
    op = record(idle.operator(clock=lambda: next(clock)), tmp_path / "x.yaml")
    op.process({"ts": dt.datetime(2024, 1, 31), "v": 1})
    assert len(op.poll()) == 1
    op.complete()
    [transcript] = load_transcripts(tmp_path / "x.yaml")
    assert [step.action for step in transcript.steps] == ["input", "watermark"]


def test_a_recording_that_differs_is_one_message(tmp_path: Path) -> None:
    for value, match in ((1, ""), (2, "step 1: the input is not as it was recorded")):
        op = record(QUERY, tmp_path / "x.yaml")
        op.process({"t": 1, "v": value})
        op.advance(20)
        if match:
            with pytest.raises(MismatchError, match=match):
                op.complete()
        else:
            op.complete()
