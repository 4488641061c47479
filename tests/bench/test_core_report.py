"""The table, JSON, Markdown and the plot of `python -m benchmarks core` show the same measurements."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparison import ENGINES, PEERS
from benchmarks.core_report import as_markdown, read_report
from benchmarks.core_tables import fewer_tuples

pytest.importorskip("polars")
pytest.importorskip("duckdb")


def bench(*arguments: str, width: int = 80) -> str:
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What --json writes, for three workloads."""
    path = tmp_path_factory.mktemp("core") / "core.json"
    path.write_text(
        bench("core", "--tuples", "5000", "--only", "W3", "--only", "W2 N=1", "--batch", "5000", "--json")
    )
    return path


def test_json_tells_of_muntin_and_of_the_others(written: Path) -> None:
    found = json.loads(written.read_text())
    assert list(found) == ["muntin", "others", "notes"]
    assert [m["workload"] for m in found["muntin"]] == ["W2 N=1", "W3 1 s", "W3 100 ms"]
    assert [m["goal"] for m in found["muntin"]] == [60, 250, 150]
    assert {c["engine"] for c in found["others"] if c["workload"] == "W3 1 s"} == set(ENGINES)
    assert {c["engine"] for c in found["others"] if c["combines"] is None} == set(PEERS)
    buckets = [c for c in found["others"] if c["engine"] == "aggregate buckets"]
    assert [round(c["combines"]) for c in buckets] == [2, 60, 600]


def test_markdown_has_all_columns_in_tables_that_fit_a_page(written: Path) -> None:
    lines = bench("core", "--read", str(written), "--markdown").splitlines()
    assert "\n".join(lines) == as_markdown(read_report(written))
    rates, counts, peers, techniques = (lines[at : at + 5] for at in (0, 6, 12, 18))
    for table in (rates, counts, peers, techniques):
        assert [line.split(" | ")[0] for line in table[2:]] == ["| W2 N=1", "| W3 1 s", "| W3 100 ms"]
        assert len({line.count("|") for line in table}) == 1
    assert rates[0] == "| workload | query | M/s | goal | Scotty | reduceat | copy |"
    assert counts[0] == "| workload | slices | windows | combines | MB |"
    assert peers[0] == f"| workload | Muntin | {' | '.join(PEERS)} |"
    assert techniques[0] == f"| workload | Muntin | {' | '.join(e for e in ENGINES if e not in PEERS)} |"
    assert techniques[2].endswith("|  |  |  |")  # Panes, Pairs and Cutty know no late tuples
    for table in (peers, techniques):
        assert [line.count("**") for line in table] == [0, 0, 2, 2, 2]


@pytest.mark.parametrize("width", [80, 130])
def test_the_tables_cut_no_number_off(written: Path, width: int) -> None:
    shown = bench("core", "--read", str(written), width=width)
    assert "…" not in shown
    assert max(len(line) for line in shown.splitlines()) <= width
    # Two tables, of which the second is in two parts where it would be too wide.
    assert shown.count("W3 100 ms") == (3 if width == 80 else 2)
    for c in read_report(written).others:
        rate = f"{c.cpu:.0f}" if c.cpu >= 999.5 else f"{c.cpu:.3g}"
        assert rate in shown


def test_the_plot_has_marks_for_the_others(written: Path, tmp_path: Path) -> None:
    bench("core", "--read", str(written), "--plot", str(tmp_path / "core.svg"))
    drawn = (tmp_path / "core.svg").read_text()
    assert drawn.count("<!-- W3 100 ms -->") == 1
    for label in ("Muntin", "polars", "DuckDB", "best technique of the papers", "np.add.reduceat"):
        assert drawn.count(f"<!-- {label} -->") == 1


def test_fewer_tuples_are_told(written: Path) -> None:
    report = read_report(written)
    assert fewer_tuples(report.muntin, report.others) == ""
    others = [
        replace(c, tuples=1_000 if c.engine in PEERS or c.workload == "W2 N=1" else 400)
        for c in report.others
        if c.workload != "W3 1 s"
    ]
    assert fewer_tuples(report.muntin, others) == (
        "Fewer tuples than Muntin were read in W2 N=1 1,000; W3 100 ms 1,000 in peers, 400 in techniques."
    )


def test_alone_measures_nothing_else() -> None:
    found = json.loads(bench("core", "--tuples", "1000", "--only", "P1", "--alone", "--json"))
    assert [m["workload"] for m in found["muntin"]] == ["P1"]
    assert found["others"] == found["notes"] == []


def test_a_file_that_is_no_report_is_told(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("[]")
    done = CliRunner().invoke(app, ["core", "--read", str(tmp_path / "old.json")])
    assert done.exit_code == 2
    assert "must hold what `python -m benchmarks core --json` wrote" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("gone", ["peers", "techniques"])
def test_there_is_one_command_for_all_of_them(gone: str) -> None:
    assert CliRunner().invoke(app, [gone]).exit_code == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--plot", "rates.txt"], "a plot must be a file with .svg, .png or .pdf: got rates.txt"),
        (["--plot", "no/such/folder/rates.svg"], "there is no folder no/such/folder for the plot"),
        (["--only", "X9"], "no workload begins with X9"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_measured(
    options: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.core_report.measure", None)
    found = CliRunner().invoke(app, ["core", *options])
    assert found.exit_code == 2
    assert told in " ".join(found.output.split())
