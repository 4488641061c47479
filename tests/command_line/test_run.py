"""`muntin run`: its inputs, its outputs, and its answers to mistakes."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from muntin.cli import app
from muntin.file_formats import COMPRESSIONS, compression_of

QUERY = """
[stream]
time = "ts"
key = "shop"

[windows.minute]
type = "tumbling"
length = "1 minute"

[aggregates.total]
function = "sum"
column = "amount"
"""
ROWS = [
    {"ts": "2024-01-31T12:00:00", "shop": "a", "amount": 1},
    {"ts": "2024-01-31T12:00:30", "shop": "b", "amount": 2},
    {"ts": "2024-01-31T12:01:00", "shop": "a", "amount": 4},
    {"ts": "2024-01-31T12:02:00", "shop": "a", "amount": 8},
]
TOTALS = [("a", "12:00", 1), ("b", "12:00", 2), ("a", "12:01", 4), ("a", "12:02", 8)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.toml").write_text(QUERY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def muntin(*arguments: str, given: str = "", code: int = 0) -> Any:
    done = CliRunner().invoke(app, list(arguments), input=given)
    assert done.exit_code == code, done.output + repr(done.exception)
    return done


def table() -> pa.Table:
    rows = pa.Table.from_pylist(ROWS)
    return rows.set_column(0, "ts", rows["ts"].cast(pa.timestamp("us")))


def totals(text: str) -> list[tuple[str, str, int]]:
    rows = [json.loads(line) for line in text.splitlines()]
    return sorted(
        ((row["shop"], row["window_start"][11:16], row["total"]) for row in rows), key=lambda row: row[1::-1]
    )


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path) -> None:
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind in ("jsonl", "ndjson"):
        data = lines(ROWS).encode()
    elif kind in ("csv", "tsv"):
        mark = "\t" if kind == "tsv" else ","
        data = "".join(
            mark.join(map(str, row)) + "\n" for row in [list(ROWS[0]), *map(dict.values, ROWS)]
        ).encode()
    else:
        sink = pa.BufferOutputStream()
        if kind == "parquet":
            parquet.write_table(table(), sink)
        else:
            with pa.ipc.new_file(sink, table().schema) as writer:
                writer.write_table(table())
        data = sink.getvalue().to_pybytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


# Inputs. --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.ndjson", "x.parquet", "x.arrow"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_every_format(folder: Path, name: str, packed: str) -> None:
    write(folder / f"{name}{packed}")
    assert totals(muntin("run", "q.toml", f"{name}{packed}", "--format", "jsonl").stdout) == TOTALS


@pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl.gz", "x.parquet.gz", "x.csv", "x.jsonl"])
def test_the_standard_input_may_be_compressed(folder: Path, name: str) -> None:
    write(folder / name)
    form = name.split(".")[1]
    command = f"cat {name} | {sys.executable} -m muntin run q.toml - --input-format {form} --format jsonl"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert totals(done.stdout) == TOTALS


@pytest.mark.parametrize("compression", COMPRESSIONS.values())
def test_the_first_bytes_tell_a_compression(compression: str) -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression) as packed:
        packed.write(b"ts,shop")
    assert compression_of(sink.getvalue().to_pybytes()) == compression
    assert compression_of(b"ts,shop") is None


def test_directories_patterns_and_several_files(folder: Path) -> None:
    (folder / "days").mkdir()
    for i, row in enumerate(ROWS):
        (folder / "days" / f"{i}.jsonl").write_text(lines([row]))
    (folder / "days" / "notes.md").write_text("not read")
    for inputs in (["days"], ["days/*.jsonl"], [f"days/{i}.jsonl" for i in (3, 1, 0, 2)]):
        assert totals(muntin("run", "q.toml", *inputs, "--format", "jsonl").stdout) == TOTALS


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl.gz", "x.parquet", "x.arrow"])
def test_a_named_pipe_is_read(folder: Path, name: str) -> None:
    write(folder / name)
    os.mkfifo(folder / f"pipe_{name}")
    with subprocess.Popen(["sh", "-c", f"cat {name} > pipe_{name}"], cwd=folder):
        found = muntin("run", "q.toml", f"pipe_{name}", "--format", "jsonl").stdout
    assert totals(found) == TOTALS


def test_watermark_lines_close_windows(folder: Path) -> None:
    stream = lines([*ROWS[:3], {"watermark": "2024-01-31T12:02:00"}, ROWS[0], ROWS[3]])
    done = muntin("run", "q.toml", "-", "--format", "jsonl", given=stream)
    assert totals(done.stdout) == TOTALS
    assert '1 late for "minute"' in done.stderr


@pytest.mark.parametrize("where", ["options", "file"])
def test_csv_with_a_delimiter_a_time_format_and_types(folder: Path, where: str) -> None:
    text = "ts;shop;amount\n01/31/2024 12:00;a;1\n01/31/2024 12:01;a;4\n"
    (folder / "us.csv").write_text(text)
    options = ["--delimiter", ";", "--time-format", "%m/%d/%Y %H:%M", "--type", "amount=float64"]
    if where == "file":
        settings = 'delimiter = ";"\ntime_format = "%m/%d/%Y %H:%M"\ntypes = {amount = "float64"}\n'
        (folder / "q.toml").write_text(f"{QUERY}\n[input]\n{settings}")
        options = []
    done = muntin("run", "q.toml", "us.csv", "--format", "jsonl", *options)
    assert [(row[1], row[2]) for row in totals(done.stdout)] == [("12:00", 1.0), ("12:01", 4.0)]
    assert '"total": 1.0' in done.stdout


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1_000), ("us", 10**6), ("ns", 10**9)])
def test_integers_since_1970(folder: Path, unit: str, factor: int) -> None:
    rows = [{"ts": 1_706_702_400 * factor, "shop": "a", "amount": 1}]
    csv.write_csv(pa.Table.from_pylist(rows), folder / "x.csv")
    parquet.write_table(pa.Table.from_pylist(rows), folder / "x.parquet")
    (folder / "x.jsonl").write_text(lines(rows))
    for name in ("x.csv", "x.parquet", "x.jsonl"):
        done = muntin("run", "q.toml", name, "--time-unit", unit, "--format", "jsonl")
        assert totals(done.stdout) == [("a", "12:00", 1)]
        told = muntin("run", "q.toml", name, code=2).stderr
        assert f"if it counts since 1970, give its unit: --time-unit {unit}" in told


def test_an_integer_time_column_of_a_csv_file(folder: Path) -> None:
    (folder / "q.toml").write_text(QUERY.replace('"1 minute"', "10"))
    (folder / "x.csv").write_text("ts,shop,amount\n1,a,1\n12,a,2\n")
    done = muntin("run", "q.toml", "x.csv", "--format", "jsonl")
    assert [json.loads(line)["window_start"] for line in done.stdout.splitlines()] == [0, 10]


# Outputs. -------------------------------------------------------------------------------------------


def test_all_rows_where_the_output_is_no_terminal(folder: Path) -> None:
    rows = [{"ts": f"2024-01-31T{i // 60:02}:{i % 60:02}:00", "shop": "a", "amount": i} for i in range(300)]
    (folder / "x.jsonl").write_text(lines(rows))
    header, *found = muntin("run", "q.toml", "x.jsonl").stdout.splitlines()
    assert header.endswith('"window_start","window_end","total","kind","revision"')
    assert len(found) == 300


@pytest.mark.parametrize(
    "name", ["out.csv", "out.csv.gz", "out.jsonl", "out.jsonl.gz", "out.parquet", "out.arrow"]
)
def test_an_output_in_the_format_of_its_ending(folder: Path, name: str) -> None:
    write(folder / "x.csv")
    muntin("run", "q.toml", "x.csv", "--output", name)
    data = (folder / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    if "csv" in name:
        found = csv.read_csv(pa.py_buffer(data))
    elif "jsonl" in name:
        found = pa.Table.from_pylist([json.loads(line) for line in data.splitlines()])
    else:
        found = (
            parquet.read_table(pa.py_buffer(data)) if "parquet" in name else pa.ipc.open_file(data).read_all()
        )
    assert found["total"].to_pylist() == [1, 2, 4, 8]
    assert {"window_start", "window_end"} <= set(found.column_names)


def test_values_that_json_has_no_number_for(folder: Path) -> None:
    (folder / "x.csv").write_text("ts,shop,amount\n2024-01-31T12:00:00,a,inf\n")
    assert '"total": "inf"' in muntin("run", "q.toml", "x.csv", "--format", "jsonl").stdout


@pytest.mark.parametrize("given", ["empty.jsonl", "header.csv"])
def test_an_output_without_rows_can_be_read(folder: Path, given: str) -> None:
    (folder / given).write_text("ts,shop,amount\n" if "csv" in given else "")
    for name in ("out.csv", "out.parquet", "out.arrow"):
        muntin("run", "q.toml", given, "--output", name)
    assert (
        csv.read_csv("out.csv").column_names
        == parquet.read_table("out.parquet").column_names
        == pa.ipc.open_file("out.arrow").read_all().column_names
        == ["shop", "window_name", "window_start", "window_end", "total", "kind", "revision"]
    )


def test_lists_in_csv_are_json(folder: Path) -> None:
    (folder / "q.toml").write_text(QUERY.replace('"sum"', '"collect"'))
    write(folder / "x.csv")
    assert "[1]" in muntin("run", "q.toml", "x.csv", "--format", "csv").stdout


def test_a_table_shows_dates_and_what_differs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    write(folder / "x.csv")
    shown = muntin("run", "q.toml", "x.csv", "--format", "table").stdout
    assert "2024-01-31 12:00:00  2024-01-31 12:01:00" in shown
    assert "revision" not in shown
    (folder / "q.toml").write_text(QUERY.replace('key = "shop"', 'key = "shop"\nallowed_lateness = "1 hour"'))
    stream = lines([*ROWS, {"watermark": "2024-01-31T12:02:00"}, ROWS[0]])
    shown = muntin("run", "q.toml", "-", "--format", "table", given=stream).stdout
    assert "revision" in shown
    assert "update" in shown


@pytest.mark.parametrize("width", [100, 80, 68])
def test_a_table_with_several_aggregates_fits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = ("total", "average", "maximum", "number_of_sales")
    more = [
        f'[aggregates.{name}]\nfunction = "{kind}"\ncolumn = "amount"'
        for name, kind in zip(names, ("sum", "mean", "max", "count"), strict=True)
    ]
    head = QUERY.partition("[aggregates")[0]
    (folder / "q.toml").write_text("\n".join([head, *more]))
    write(folder / "x.csv")
    shown = muntin("run", "q.toml", "x.csv", "--format", "table", "--quiet").stdout.splitlines()
    assert max(map(len, shown)) <= width
    assert "…" not in "".join(shown)
    headings = [line.split() for line in shown if line.startswith("shop ")]
    assert [name for line in headings for name in line if name in names] == list(names)
    assert all(line[:4] == ["shop", "window_name", "window_start", "window_end"] for line in headings)
    assert shown[4].startswith("a     minute       2024-01-31 12:02:00  12:03:00        8")
    assert shown[-1] == "4 rows"


def test_a_terminal_gets_a_table_that_fits(folder: Path) -> None:
    write(folder / "x.csv")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "muntin", "run", "q.toml", "x.csv", "--quiet"]
    with subprocess.Popen(
        command, stdout=follower, env={**os.environ, "COLUMNS": "60", "TERM": "dumb"}
    ) as process:
        assert process.wait(60) == 0
    os.close(follower)
    shown = os.read(leader, 65_536).decode().replace("\r", "")
    os.close(leader)
    assert "2024-01-31 12:00:00" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_a_reader_that_stops_early_is_no_traceback(folder: Path) -> None:
    rows = [
        {"ts": f"2024-01-{1 + i // 1440:02}T{i // 60 % 24:02}:{i % 60:02}:00", "shop": "a", "amount": i}
        for i in range(20_000)
    ]
    (folder / "x.jsonl").write_text(lines(rows))
    command = f"{sys.executable} -m muntin run q.toml x.jsonl --format jsonl | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr


BEFORE = '{"from": "an earlier run"}\n'


@pytest.mark.parametrize("name", ["out.jsonl", "link.jsonl", "out.csv.gz", "out.parquet"])
@pytest.mark.parametrize("mistake", ["the query", "a column", "a later row", "following"])
def test_a_mistake_leaves_an_earlier_output_as_it_was(folder: Path, name: str, mistake: str) -> None:
    write(folder / "x.jsonl")
    (folder / "link.jsonl").symlink_to("target.jsonl")
    (folder / name).write_text(BEFORE)
    options = ["--watermark-lag", "0 seconds"]
    if mistake == "the query":
        (folder / "q.toml").write_text(QUERY.replace("tumbling", "hopping"))
    elif mistake == "a later row":
        (folder / "x.jsonl").write_text(f'{lines(ROWS)}{{"watermark": "2024-01-31T12:02:00"}}\n[1]\n')
    else:
        (folder / "q.toml").write_text(QUERY.replace('"amount"', '"price"'))
        options += ["--follow"] * (mistake == "following")
    before = {path.name for path in folder.iterdir()}
    assert muntin("run", "q.toml", "x.jsonl", "--output", name, *options, code=2).stderr.startswith("error: ")
    assert (folder / name).read_text() == BEFORE
    assert {path.name for path in folder.iterdir()} == before


def test_an_output_replaces_the_target_of_a_link(folder: Path) -> None:
    write(folder / "x.csv")
    (folder / "link.jsonl").symlink_to("target.jsonl")
    muntin("run", "q.toml", "x.csv", "--output", "link.jsonl")
    assert (folder / "link.jsonl").is_symlink()
    assert totals((folder / "target.jsonl").read_text()) == TOTALS


def test_an_output_can_be_a_pipe(folder: Path) -> None:
    write(folder / "x.csv")
    os.mkfifo(folder / "pipe.jsonl")
    with subprocess.Popen(["cat", "pipe.jsonl"], cwd=folder, stdout=subprocess.PIPE, text=True) as reader:
        muntin("run", "q.toml", "x.csv", "--output", "pipe.jsonl")
        found, _ = reader.communicate(timeout=60)
    assert totals(found) == TOTALS
    assert (folder / "pipe.jsonl").is_fifo()


# Late and bad tuples. -------------------------------------------------------------------------------

LATE = [*ROWS[:3], {"watermark": "2024-01-31T12:02:00"}, ROWS[0], ROWS[3], {"ts": "soon", "shop": "b"}]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_late_and_bad_tuples_go_to_files(folder: Path, ending: str) -> None:
    (folder / "x.jsonl").write_text(lines(LATE))
    options = ["--late", f"late.{ending}", "--bad", f"bad.{ending}", "--format", "jsonl"]
    done = muntin("run", "q.toml", "x.jsonl", *options)
    assert totals(done.stdout) == TOTALS
    assert '1 late for "minute", 1 bad; ' in done.stderr
    late, bad = (read_rows(folder / f"{name}.{ending}") for name in ("late", "bad"))
    assert [(row["shop"], row["amount"], row["window_name"]) for row in late] == [("a", 1, "minute")]
    assert [(row["ts"], row["shop"]) for row in bad] == [("soon", "b")]
    assert bad[0]["reason"].startswith('the column "ts" must be of type timestamp')


def read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    table = csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)
    return table.to_pylist()  # type: ignore[no-any-return]


def test_bad_times_of_a_csv_file_keep_their_texts(folder: Path) -> None:
    write(folder / "x.csv")
    (folder / "bad.csv").write_text((folder / "x.csv").read_text().replace("2024-01-31T12:01:00", "n/a"))
    muntin("run", "q.toml", "bad.csv", "--bad", "bad.jsonl")
    [row] = read_rows(folder / "bad.jsonl")
    assert (row["ts"], row["shop"], row["amount"]) == ("n/a", "a", 4)
    assert "got 'n/a'" in row["reason"]


def test_files_without_late_and_bad_tuples_have_a_header(folder: Path) -> None:
    write(folder / "x.csv")
    muntin("run", "q.toml", "x.csv", "--late", "late.csv", "--bad", "bad.parquet")
    assert csv.read_csv(folder / "late.csv").column_names == ["ts", "shop", "amount", "window_name"]
    assert parquet.read_table(folder / "bad.parquet").column_names == ["ts", "shop", "amount", "reason"]


def test_late_tuples_of_a_resumed_run_follow_the_earlier_ones(folder: Path) -> None:
    first = [*LATE[:5], {"watermark": "2024-01-31T12:02:01"}]  # late tuples are judged when it moves
    (folder / "x.jsonl").write_text(lines(first))
    options = ("--output", "out.jsonl", "--late", "late.jsonl")
    with started(folder, "x.jsonl", "--follow", *options) as process:
        waited(lambda: (folder / "late.jsonl").exists() and (folder / "late.jsonl").stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    more = [ROWS[3], {"watermark": "2024-01-31T13:00:00"}, ROWS[1]]
    (folder / "x.jsonl").write_text(lines([*first, *more]))
    assert "the query has changed" in muntin("run", "q.toml", "x.jsonl", "--resume", code=2).stderr
    muntin("run", "q.toml", "x.jsonl", "--resume", *options)
    assert [row["shop"] for row in read_rows(folder / "late.jsonl")] == ["a", "b"]
    assert totals((folder / "out.jsonl").read_text()) == TOTALS


@pytest.mark.parametrize(("name", "other"), [("late", "drop"), ("bad", "skip")])
def test_a_query_that_routes_needs_a_file(folder: Path, name: str, other: str) -> None:
    write(folder / "x.csv")
    (folder / "q.toml").write_text(QUERY.replace('"ts"', f'"ts"\n{name} = "route"'))
    told = muntin("run", "q.toml", "x.csv", code=2).stderr
    assert f'{name} = "route" needs a file for these tuples: give --{name} {name}.jsonl, or write' in told
    assert f'{name} = "{other}" under [stream]' in " ".join(told.split())
    muntin("run", "q.toml", "x.csv", f"--{name}", "side.csv")


# Mistakes. ------------------------------------------------------------------------------------------

MISTAKES = {
    "nix.toml x.csv": "there is no file /.*nix.toml; give the path of a query file",
    "q.toml y.csv": r'there is no file y.csv; check the path. Did you mean "x.csv"\?',
    "q.toml z*.csv": r"a pattern must match a file: got z\*.csv",
    "q.toml empty": "a directory must have files that end in .*: got empty",
    "q.toml q.toml": "files must end in .*: got q.toml; say what it is with --input-format",
    "q.toml x.csv -o no/dir/x.csv": "cannot write no/dir/x.csv: there is no directory no/dir; create it",
    "q.toml x.csv -o empty": "results are written to files that end in .*: got empty; .* or give --format",
    "q.toml x.csv -o ./x.csv": "an output must not be one of the inputs: got ./x.csv; choose another",
    "q.toml x.csv -o a.csv --late ./a.csv": "the outputs must be different files: got a.csv, ./a.csv",
    "q.toml x.csv -o a.csv --bad x.csv": "an output must not be one of the inputs: got x.csv; choose another",
    "q.toml x.csv --late -": "--late must be a file: got -; give --late late.jsonl",
    "q.toml x.csv -o a.csv --format table": "a table is for the terminal: got --output a.csv; choose another",
    "q.toml x.csv --snapshot x.csv": "x.csv is not a snapshot of `muntin run`, and would be replaced by one",
    "q.toml x.csv --snapshot no/x": "a snapshot needs a directory: there is no no; create it",
    "q.toml x.csv *.csv": 'a file can be read once: got "x.csv" twice; leave one out',
    "q.toml x.csv --time-unit min": "time_unit must be s, ms, us, ns: got 'min'",
    "q.toml x.csv --delimiter ::": "delimiter must be one character: got '::'",
    "q.toml x.csv --type amount": "--type takes COLUMN=TYPE, like amount=float64",
    "q.toml x.csv --watermark-lag PT5M": 'watermark_lag .*got .PT5M.; write "5 minutes"',
    "q.toml bad.csv": 'bad.csv, line 4: the time column "ts" must hold times in ISO format: got .n/a.; ',
    "q.toml us.csv": 'us.csv, line 2: .*; give the format: --time-format "%m/%d/%Y %H:%M:%S"',
    "q.toml other.csv": 'other.csv: there is no column "amount".*; .*Did you mean "amounts"',
    "q.toml bad.jsonl": "bad.jsonl, line 2: must be a JSON object: got '{\"ts\":'",
    "q.toml list.jsonl": r"list.jsonl, line 1: must be a JSON object: got \[1\]",
    "q.toml value.jsonl": (
        'value.jsonl, row 2: the column "amount" must be of type int64: got .many. in {.*}'
        ' .1 of 3 tuples are bad.; repair it, or write bad = "skip" under .stream., or give --bad bad.jsonl'
    ),
    "q.toml float.jsonl": (
        "float.jsonl, row 3: .*: got 2.5 .*; repair it, give its type: --type amount=float64, or"
    ),
    "q.toml x.csv --time-unit s": (
        "x.csv, line 2: .* must hold integers: .*--bad bad.jsonl; or leave --time-unit out, if"
    ),
    "units.toml x.csv": "x.csv, line 2: .* must hold integers: got .*; or give the windows lengths like",
    "q.toml x.csv --delimiter ;": 'x.csv: there is no column "ts" .*give --delimiter .,.',
    ". x.csv": r"cannot read '\.': Is a directory; give the path of a query file",
    "q.toml x.csv -o /dev/full --format csv": "cannot write /dev/full: .*No space left on device",
    "q.toml x.csv --resume": "there is no snapshot q.snapshot to go on from",
    "q.toml fake.csv.gz": "cannot read fake.csv.gz: .*; rename it if it is not in the format of gzip",
    "q.toml fake.parquet": "cannot read fake.parquet: ",
    "q.toml - -": 'the standard input can be read once: got "-" twice',
    "q.toml x.csv --engine spark --follow": "--engine spark reads files to their end",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_and_status_2(folder: Path, mistake: str) -> None:
    write(folder / "x.csv")
    (folder / "empty").mkdir()
    (folder / "units.toml").write_text(QUERY.replace('"1 minute"', "10"))
    good = (folder / "x.csv").read_text()
    (folder / "bad.csv").write_text(good.replace("2024-01-31T12:01:00", "n/a"))
    (folder / "us.csv").write_text(good.replace("2024-01-31T", "01/31/2024 "))
    (folder / "other.csv").write_text(good.replace("amount", "amounts"))
    (folder / "bad.jsonl").write_text(lines(ROWS[:1]) + '{"ts":\n')
    (folder / "list.jsonl").write_text("[1]\n")
    (folder / "value.jsonl").write_text(lines([ROWS[0], {**ROWS[1], "amount": "many"}, ROWS[2]]))
    more = [{**ROWS[0], "amount": 2.5}, *ROWS]
    (folder / "float.jsonl").write_text(f'{lines(ROWS[:1])}{{"watermark": "2024-01-31"}}\n{lines(more)}')
    (folder / "fake.csv.gz").write_text(good)
    (folder / "fake.parquet").write_text(good)
    done = muntin("run", *mistake.split(), code=2)
    assert re.search(f"^error: {MISTAKES[mistake]}", done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
    assert (folder / "x.csv").read_text() == good


def test_csv_on_the_standard_input_is_advised_to_say_so(folder: Path) -> None:
    told = muntin("run", "q.toml", "-", given="ts,shop,amount\n", code=2).stderr
    assert "standard input, line 1: must be a JSON object: " in told
    assert "if it is CSV, give --input-format csv" in " ".join(told.split())


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_standard_output_that_is_full_is_no_traceback(folder: Path, form: str) -> None:
    write(folder / "x.csv")
    command = f"{sys.executable} -m muntin run q.toml x.csv --format {form} > /dev/full"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=buffered)
    assert done.returncode == 2
    assert "error: cannot write to the standard output: " in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_times_are_skipped_where_the_query_says_so(folder: Path) -> None:
    write(folder / "x.csv")
    (folder / "q.toml").write_text(QUERY.replace('key = "shop"', 'key = "shop"\nbad = "skip"'))
    (folder / "bad.csv").write_text((folder / "x.csv").read_text().replace("2024-01-31T12:01:00", "n/a"))
    done = muntin("run", "q.toml", "bad.csv", "--format", "jsonl")
    assert totals(done.stdout) == [TOTALS[0], TOTALS[1], TOTALS[3]]
    assert "1 bad" in done.stderr


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('delimeter = ";"', r'\[input\]: unknown key "delimeter"; .*Did you mean "delimiter"\?'),
        ("time_format = 5", r"\[input\]: time_format must be a text: got 5"),
    ],
)
def test_mistakes_in_the_table_of_inputs(folder: Path, settings: str, told: str) -> None:
    write(folder / "x.csv")
    (folder / "q.toml").write_text(f"{QUERY}\n[input]\n{settings}\n")
    assert re.search(told, muntin("run", "q.toml", "x.csv", code=2).stderr)


# Long runs. -----------------------------------------------------------------------------------------


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "muntin", "run", "q.toml", *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def waited(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


@pytest.mark.parametrize("again", ["live.jsonl", "{}/live.jsonl"], ids=["the same name", "the whole path"])
def test_a_file_is_followed_stopped_and_resumed(folder: Path, again: str) -> None:
    source, output = folder / "live.jsonl", folder / "out.jsonl"
    source.write_text(lines(ROWS[:3]))
    arguments = ("live.jsonl", "--follow", "--watermark-lag", "0 seconds", "--output", "out.jsonl")
    with started(folder, *arguments) as process:
        waited(lambda: output.exists() and len(output.read_text().splitlines()) == 2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; the state is in q.snapshot: go on with --resume" in told
    assert "Traceback" not in told
    with source.open("a") as more:
        more.write(lines(ROWS[3:]))
    with started(folder, again.format(folder), "--resume", "--output", "out.jsonl") as process:
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert totals(output.read_text()) == TOTALS
    assert not (folder / "q.snapshot").exists()


@pytest.mark.parametrize("output", ["out.csv", "out.csv.gz"])
def test_a_csv_file_is_followed_stopped_and_resumed(folder: Path, output: str) -> None:
    write(folder / "live.csv")
    *first, last = (folder / "live.csv").read_text().splitlines(keepends=True)
    (folder / "live.csv").write_text("".join(first[:2]))
    arguments = ("live.csv", "--follow", "--watermark-lag", "0 seconds", "--output", output)
    with started(folder, *arguments) as process:
        waited((folder / output).exists)
        with (folder / "live.csv").open("a") as more:
            more.write("".join(first[2:]) + last[:9])  # a line that is not complete yet
        waited(lambda: (folder / output).stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    with (folder / "live.csv").open("a") as more:
        more.write(last[9:])
    muntin("run", "q.toml", "live.csv", "--resume", "--output", output)
    data = (folder / output).read_bytes()
    found = csv.read_csv(pa.py_buffer(gzip.decompress(data) if output.endswith(".gz") else data))
    assert found["total"].to_pylist() == [1, 2, 4, 8]


def test_ctrl_c_while_the_standard_input_is_silent(folder: Path) -> None:
    with started(folder, "-", "--output", "out.csv", "--watermark-lag", "0 seconds") as process:
        assert process.stdin is not None
        process.stdin.write(lines(ROWS[:3]))
        process.stdin.flush()
        waited(lambda: (folder / "out.csv").exists() and "final" in (folder / "out.csv").read_text())
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert process.stderr is not None
        assert "go on with --resume" in process.stderr.read()
    assert process.returncode == 130


def test_another_query_does_not_resume(folder: Path) -> None:
    write(folder / "x.csv")
    (folder / "q.snapshot").write_bytes(b'muntin run 1\n{"query": "other", "positions": {}}\n')
    assert (
        "the query has changed since q.snapshot"
        in muntin("run", "q.toml", "x.csv", "--resume", code=2).stderr
    )
    (folder / "q.snapshot").write_bytes(b"nonsense")
    assert "is not a snapshot of `muntin run`" in muntin("run", "q.toml", "x.csv", "--resume", code=2).stderr


def test_a_complete_run_leaves_no_state_to_go_on_from(folder: Path) -> None:
    write(folder / "x.csv")
    write(folder / "y.csv")
    head = {"query": "other", "positions": {str(folder / "x.csv"): 2}}
    (folder / "q.snapshot").write_bytes(b"muntin run 1\n" + json.dumps(head).encode() + b"\n")
    muntin("run", "q.toml", "y.csv")
    assert (folder / "q.snapshot").exists()  # of a run over another file
    muntin("run", "q.toml", "x.csv")
    assert not (folder / "q.snapshot").exists()


def test_a_mistake_in_a_resumed_run_leaves_the_output_as_it_was(folder: Path) -> None:
    source, output = folder / "live.jsonl", folder / "out.jsonl"
    source.write_text(lines(ROWS[:3]))
    arguments = ("live.jsonl", "--follow", "--watermark-lag", "0 seconds", "--output", "out.jsonl")
    with started(folder, *arguments) as process:
        waited(lambda: output.exists() and len(output.read_text().splitlines()) == 2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    before = output.read_bytes()
    source.write_text(lines([*ROWS, {"watermark": "2024-01-31T12:09:00"}]) + "nonsense\n")
    muntin("run", "q.toml", "live.jsonl", "--resume", "--output", "out.jsonl", code=2)
    assert output.read_bytes() == before
    source.write_text(lines(ROWS))
    muntin("run", "q.toml", "live.jsonl", "--resume", "--output", "out.jsonl")
    assert totals(output.read_text()) == TOTALS


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_memory_does_not_grow_with_the_file(folder: Path, ending: str) -> None:
    peaks = []
    for n in (400_000, 4_000_000):
        times = pa.array(1_706_700_000_000_000 + np.arange(n) * 1_000, pa.timestamp("us"))
        rows = pa.table({"ts": times, "shop": pa.array(["a"] * n), "amount": np.arange(n)})
        path = folder / f"{n}.{ending}"
        parquet.write_table(rows, path, row_group_size=100_000) if ending == "parquet" else csv.write_csv(
            rows, path
        )
        code = (
            "import resource, sys\nfrom muntin.cli import app\n"
            f"app(['run', 'q.toml', {path.name!r}, '--format', 'csv', '--quiet'], standalone_mode=False)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) == 1 + -(-n // 60_000)
        peaks.append(int(done.stderr.splitlines()[-1]) / 1_000)
    assert peaks[1] < peaks[0] + 120  # of 4 million rows, which are 100 MB in Arrow and 140 MB of text
