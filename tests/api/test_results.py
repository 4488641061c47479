"""`mt.Results`: tables for other tools, rows, texts, files, the newest revisions, pictures."""

from __future__ import annotations

import builtins
import datetime as dt
import gzip
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, MuntinError, QueryError
from muntin.results.writing import ResultFile, format_of

NINE = dt.datetime(2026, 5, 4, 9)
SALES = pa.table(
    {
        "ts": pa.array([NINE + dt.timedelta(seconds=s) for s in (5, 20, 30, 95)], pa.timestamp("ms")),
        "shop": ["north", "north", "south", "north"],
        "amount": [3, 4, 8, 5],
    }
)
QUERY = (
    mt.windows(minute=w.tumbling("1 minute"), visit=w.session("30 seconds"))
    .aggregate(total=a.sum("amount"), mean=a.mean("amount"))
    .by("shop")
    .on("ts")
)
COLUMNS = ["shop", "window_name", "window_start", "window_end", "total", "mean", "kind", "revision"]
RANKED = (
    mt.windows(ten=w.tumbling(10), two=w.count(2), p=w.punctuation("v > 2")).aggregate(n=a.count()).on("t")
)


def revisions(key: Any = "a", kind: pa.DataType | None = None) -> mt.Results:
    """Sessions that grow and fuse, and a tumbling window that changes twice."""
    query = mt.windows(visit=w.session(5), ten=w.tumbling(10)).aggregate(n=a.count()).by("k")
    op = query.on("t", allowed_lateness=1_000).operator(schema=None if kind is None else {"k": kind})
    parts = []
    for times, watermark in (([1, 20], 15), ([4], 16), ([12, 2], 17), ([50], 40)):
        parts += [op.process([{"t": t, "k": key} for t in times]), op.advance(watermark)]
    return mt.Results.concat([*parts, op.finish()])


# Other tools. ------------------------------------------------------------------------------------


def test_edges_are_plain_columns_of_the_type_of_the_time_column() -> None:
    table = QUERY.run(SALES).to_arrow()
    assert table.column_names == COLUMNS
    assert table["window_start"].type == table["window_end"].type == pa.timestamp("ms")
    assert table["window_start"][0].as_py() == NINE + dt.timedelta(seconds=5)


def test_ranks_and_measures_and_ordinals_have_columns_where_a_window_has_them() -> None:
    results = RANKED.run({"t": [1, 2, 13], "v": [1, 3, 4]})
    edges = ["start", "end", "start_rank", "end_rank", "ordinal"]
    assert results.column_names == ["window_name", *(f"window_{e}" for e in edges), "n", "kind", "revision"]
    rows = results.to_arrow().filter(pc.equal(results["window_name"], "two")).to_pylist()
    assert [(row["window_start_rank"], row["window_end_rank"], row["window_ordinal"]) for row in rows] == [
        (0, 2, None)
    ]


def test_whatever_takes_arrow_takes_results() -> None:
    results = QUERY.run(SALES)
    plain = results.to_arrow()
    assert pa.table(results).equals(plain)
    assert pa.schema(results) == results.schema == plain.schema
    assert pa.RecordBatchReader.from_stream(results).read_all().equals(plain)
    assert pl.DataFrame(results).equals(results.to_polars())
    found = duckdb.sql("select sum(total) from results where window_name = 'minute'").fetchall()
    assert found == [(20,)]
    other = pa.schema([f if f.name != "total" else pa.field("total", pa.float64()) for f in plain.schema])
    assert pa.table(results, schema=other)["total"].type == pa.float64()


def test_data_frames_have_times_that_can_be_computed_with() -> None:
    results = QUERY.run(SALES)
    frame = results.to_pandas()
    assert list(frame.columns) == COLUMNS
    assert (frame["window_end"] - frame["window_start"]).max() == pd.Timedelta("1 minute")
    assert frame.pivot(index="window_start", columns=["window_name", "shop"], values="total").shape == (5, 4)
    assert results.to_polars().schema["window_start"] == pl.Datetime("ms")
    assert results.to_polars()["total"].to_list() == results["total"].to_pylist()


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_a_missing_package_is_named(package: str, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = QUERY.run(SALES)
    _hide(monkeypatch, package)
    with pytest.raises(MuntinError, match=rf"{call}\(\) needs {package}.*pip install {package}"):
        getattr(results, call)()


def test_before_the_first_tuple_there_are_columns_without_types() -> None:
    results = QUERY.operator().advance(NINE)
    assert results.column_names == COLUMNS
    assert results.to_arrow().num_rows == len(results.to_pandas()) == results.to_polars().height == 0
    assert repr(results).splitlines()[-1] == "0 rows"


@pytest.mark.parametrize(
    ("windows", "name"),
    [
        ({"x": w.tumbling(10)}, "window_start"),
        ({"x": w.tumbling(10)}, "window_end"),
        ({"x": w.count(10)}, "window_start_rank"),
        ({"x": w.tumbling(10, measure="km")}, "window_end_km"),
        ({"x": w.punctuation("v > 2")}, "window_ordinal"),
    ],
)
def test_names_of_edges_are_taken(windows: dict[str, Any], name: str) -> None:
    with pytest.raises(QueryError, match=f'"{name}" has the name of a result column .*{name}.* rename it'):
        mt.windows(**windows).aggregate(**{name: a.count()})


@pytest.mark.parametrize("name", ["window_start_rank", "window_ordinal", "window_start_km", "window_x"])
def test_names_of_edges_that_no_window_has_are_free(name: str) -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(**{name: a.count()}).on("t").operator()
    op.process({"t": [1], "v": [1], "km": [1]})
    if name == "window_start_rank":
        with pytest.raises(QueryError, match=f'"{name}" has the name of a result column'):
            op.add(c=w.count(2))
    assert op.finish()[name].to_pylist() == [1]


# Rows and columns. -------------------------------------------------------------------------------


def test_rows_have_the_edges_in_their_window() -> None:
    results = QUERY.run(SALES)
    first = {
        "shop": "north",
        "window_name": "visit",
        "window": {"start": NINE + dt.timedelta(seconds=5), "end": NINE + dt.timedelta(seconds=50)},
        "total": 7,
        "mean": 3.5,
        "kind": "final",
        "revision": 0,
    }
    assert results[0] == results.to_pylist()[0] == next(iter(results)) == first
    assert list(results) == results.to_pylist()
    assert len(results) == results.num_rows == len(results.to_pylist()) == 6
    assert results["window"].to_pylist() == [row["window"] for row in results]
    assert results.column("total").to_pylist() == [row["total"] for row in results]


def test_parts_of_results() -> None:
    results = QUERY.run(SALES)
    rows = results.to_pylist()
    assert results[-1] == rows[-1]
    for part in (slice(1, 3), slice(None, None, 2), slice(-2, None), slice(4, 2), slice(None, None, -1)):
        assert results[part].to_pylist() == rows[part]
    for beyond in (6, -7):
        with pytest.raises(IndexError, match=f"there are 6 rows: got row {beyond}"):
            results[beyond]
    with pytest.raises(DataError, match=r'no column "totl" in the results .*Did you mean "total"'):
        results["totl"]


def test_results_are_true_where_there_are_some() -> None:
    op = QUERY.operator()
    assert not op.process(SALES)
    assert op.finish()


def test_equality_and_pickle() -> None:
    results = QUERY.run(SALES)
    assert results == QUERY.run(SALES) == pickle.loads(pickle.dumps(results))  # noqa: S301  # our own bytes
    assert results != results[1:]
    assert results != results.to_arrow()
    with pytest.raises(TypeError, match="unhashable"):
        hash(results)


def test_the_table_is_made_once_by_the_first_look() -> None:
    made = []

    def make() -> pa.Table:
        made.append(True)
        return QUERY.run(SALES).to_arrow(nested=True)

    results = mt.Results(make, rows=6)
    assert (len(results), bool(results), made) == (6, True, [])
    assert results == QUERY.run(SALES)
    assert results["total"].to_pylist() == [7, 7, 8, 8, 5, 5]
    assert made == [True]


def test_results_of_one_query_are_joined_whatever_was_known_of_types() -> None:
    op = QUERY.operator()
    parts = [op.advance(NINE), op.process(SALES), op.finish()]
    assert mt.Results.concat(parts) == QUERY.run(SALES)
    assert len(mt.Results.concat(parts[:1])) == 0
    with pytest.raises(DataError, match="no results to join"):
        mt.Results.concat([])


# Texts. ------------------------------------------------------------------------------------------


def test_a_table_in_text() -> None:
    assert repr(QUERY.run(SALES)[:2]) == (
        "shop   window_name  window_start         window_end           total  mean\n"
        "north  visit        2026-05-04 09:00:05  2026-05-04 09:00:50      7   3.5\n"
        "north  minute       2026-05-04 09:00:00  2026-05-04 09:01:00      7   3.5\n"
        "2 rows"
    )


def test_kind_and_revision_are_shown_where_they_differ() -> None:
    shown = repr(revisions())
    assert "kind" in shown
    assert "retract" in shown
    assert not {"kind", "revision"} & set(repr(QUERY.run(SALES)).split())


def test_fractions_of_seconds_zones_and_odd_values() -> None:
    times = pa.array([0, 1_500_000], pa.timestamp("us", "Europe/Berlin"))
    query = mt.windows(x=w.tumbling("500 ms")).aggregate(v=a.first("v"), f=a.mean("f")).on("t")
    shown = repr(query.run({"t": times, "v": ["line\nbreak", "x" * 99], "f": [None, 1 / 3]}))
    assert shown.splitlines()[1:] == [
        "x            1970-01-01 01:00:00+0100         1970-01-01 01:00:00.500000+0100  line break"
        + " " * 39
        + "-",
        "x            1970-01-01 01:00:01.500000+0100  1970-01-01 01:00:02+0100         "
        + "x" * 37
        + "...  0.333333",
        "2 rows",
    ]


def test_edges_that_no_row_has_are_left_out() -> None:
    assert repr(RANKED.run({"t": [1], "v": [1]})).splitlines()[0].split("  ") == [
        "window_name", "window_start", "window_end", "n",
    ]  # fmt: skip
    shown = repr(RANKED.run({"t": [1, 2, 2, 2], "v": [1, 3, 3, 3]})).splitlines()
    assert shown[0].split("  ")[3:] == ["window rank", "window ordinal", "n"]
    assert [line.split()[3:5] for line in shown if line.startswith("two")] == [["[0,", "2)"], ["[2,", "4)"]]


def test_long_results_are_cut_and_counted() -> None:
    results = mt.windows(x=w.tumbling(1)).aggregate(n=a.count()).on("t").run({"t": list(range(1_234))})
    lines = repr(results).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "1,234 rows, the first 20 shown"


def test_a_notebook_shows_a_table_with_nothing_to_run_in_it() -> None:
    query = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    shown = query.run({"t": [1], "k": ["<script>"]})._repr_html_()
    assert '<td style="text-align: left">&lt;script&gt;</td>' in shown
    assert "<script>" not in shown
    assert "1 row" in shown


# The newest revisions. ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("a", None),
        (None, pa.string()),
        (float("nan"), pa.float64()),
        (Decimal("1.5"), pa.decimal128(5, 2)),
        (b"\x00", pa.binary()),
    ],
    ids=str,
)
def test_latest_has_each_window_once(key: Any, kind: Any) -> None:
    results = revisions(key, kind)
    assert {"retract", "update"} <= set(results["kind"].to_pylist())
    latest = results.latest()
    found = sorted((r["window_name"], r["window"]["start"], r["window"]["end"], r["n"]) for r in latest)
    assert found == [
        ("ten", 0, 10, 3),
        ("ten", 10, 20, 1),
        ("ten", 20, 30, 1),
        ("ten", 50, 60, 1),
        ("visit", 1, 9, 3),
        ("visit", 12, 17, 1),
        ("visit", 20, 25, 1),
        ("visit", 50, 55, 1),
    ]
    assert repr(latest.latest().to_pylist()) == repr(latest.to_pylist())  # in which NaN equals NaN


def test_latest_of_nothing_and_of_what_never_changed() -> None:
    results = QUERY.run(SALES)
    assert results.latest() == results
    assert results[:0].latest() == results[:0]


# Files. ------------------------------------------------------------------------------------------


def test_results_come_back_from_files(tmp_path: Path) -> None:
    results = QUERY.run(SALES)
    plain = results.to_arrow()
    for name in ("x.parquet", "x.arrow", "x.csv", "x.csv.gz", "x.jsonl", "x.jsonl.gz", "X.CSV"):
        results.write(tmp_path / name)
    assert parquet.read_table(tmp_path / "x.parquet").equals(plain)
    with pa.OSFile(str(tmp_path / "x.arrow")) as source:
        assert pa.ipc.open_file(source).read_all().equals(plain)
    for name in ("x.csv", "x.csv.gz", "X.CSV"):
        assert csv.read_csv(tmp_path / name).cast(plain.schema).equals(plain)
    results.write(tmp_path / "x.tsv.bz2")
    tabs = csv.read_csv(tmp_path / "x.tsv.bz2", parse_options=csv.ParseOptions(delimiter="\t"))
    assert tabs.cast(plain.schema).equals(plain)
    text = (tmp_path / "x.jsonl").read_text()
    assert gzip.decompress((tmp_path / "x.jsonl.gz").read_bytes()).decode() == text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["total"] for line in lines] == results["total"].to_pylist()
    assert lines[0]["window_start"] == "2026-05-04T09:00:05"


def test_values_that_json_and_csv_have_no_type_for(tmp_path: Path) -> None:
    query = mt.windows(x=w.tumbling(10)).aggregate(
        all=a.collect("v"), d=a.first("d"), f=a.first("f"), b=a.first("b"), day=a.first("day")
    )
    data = {
        "t": [1], "v": ["é"], "d": [Decimal("1.50")], "f": [float("nan")], "b": [b"\xff"],
        "day": [dt.date(2026, 5, 4)],
    }  # fmt: skip
    results = query.on("t").run(data)
    results.write(tmp_path / "x.jsonl")
    (line,) = (json.loads(text) for text in (tmp_path / "x.jsonl").read_text().splitlines())
    assert [line[name] for name in ("all", "d", "f", "b", "day")] == [
        ["é"],
        "1.50",
        "nan",
        "ff",
        "2026-05-04",
    ]
    results.write(tmp_path / "x.csv")
    assert csv.read_csv(tmp_path / "x.csv").select(["all", "b"]).to_pylist() == [{"all": '["é"]', "b": "ff"}]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl.zst"])
def test_a_file_that_is_continued_has_one_header(tmp_path: Path, name: str) -> None:
    results, path = QUERY.run(SALES), str(tmp_path / name)
    with ResultFile(path, format_of(path), append=True):
        pass  # a run that was stopped before its first result
    for part in (results[:1], results[1:]):
        with ResultFile(path, format_of(path), append=True) as file:
            file.write(part.to_arrow())
    results.write(tmp_path / f"whole_{name}")
    with pa.input_stream(path) as found, pa.input_stream(tmp_path / f"whole_{name}") as whole:
        assert found.read() == whole.read()


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    results = QUERY.run(SALES)
    for name in ("x.xlsx", "x", "x.parquet.gz", ".gz"):
        with pytest.raises(
            DataError, match=r"files that end in \.csv, \.jsonl, \.parquet, \.arrow .*rename it"
        ):
            results.write(tmp_path / name)
    with pytest.raises(DataError, match=r"there is no directory .*nowhere; create it"):
        results.write(tmp_path / "nowhere" / "x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"cannot write .*folder\.csv"):
        results.write(tmp_path / "folder.csv")


# Pictures. ---------------------------------------------------------------------------------------


@pytest.fixture
def pyplot() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_lines_for_each_key_and_bars_for_sessions(pyplot: Any, tmp_path: Path) -> None:
    more = SALES.set_column(0, "ts", pc.add(SALES["ts"], pa.scalar(300_000, pa.duration("ms"))))
    results = QUERY.run(pa.concat_tables([SALES, more]))
    by_name = {axes.get_title("left"): axes for axes in results.plot()}
    assert set(by_name) == {"minute", "visit"}
    north, south = by_name["minute"].get_lines()
    assert north.get_ydata().tolist() == [7, 5, 7, 5]
    assert south.get_ydata().tolist() == [8, 8]
    assert by_name["minute"].get_ylabel() == "total"
    assert [text.get_text() for text in by_name["minute"].get_legend().get_texts()] == ["north", "south"]
    bars = by_name["visit"].patches
    assert not by_name["visit"].get_lines()
    assert [bar.get_height() for bar in bars] == [7, 5, 7, 5, 8, 8]
    assert bars[0].get_width() == pytest.approx(45 / 86_400)
    by_name["visit"].figure.savefig(tmp_path / "x.png")
    assert results.plot("mean")[0].get_ylabel() == "mean"


def test_a_key_has_one_colour_in_all_axes(pyplot: Any) -> None:
    from matplotlib.colors import to_rgb

    query = mt.windows(five=w.tumbling(5), visit=w.session(1)).aggregate(n=a.count()).by("shop").on("t")
    data = {"t": [4, 5, 3, 9], "shop": ["north", "north", "south", "north"]}  # a session of south ends first
    colours = [
        {
            text.get_text(): handle
            for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
        }
        for legend in (axes.get_legend() for axes in query.run(data).plot())
    ]
    assert [list(handles) for handles in colours] == [["south", "north"], ["north", "south"]]
    for shop, expected in {"south": "C0", "north": "C1"}.items():
        bar, line = (handles[shop] for handles in colours)
        assert bar.get_facecolor()[:3] == to_rgb(line.get_color()) == to_rgb(expected)


def test_only_the_latest_rows_are_drawn(pyplot: Any) -> None:
    (axes,) = mt.Results(
        revisions().to_arrow(nested=True).filter(pc.equal(revisions()["window_name"], "ten"))
    ).plot()
    assert axes.get_lines()[0].get_ydata().tolist() == [3, 1, 1, 1]


def test_integer_times_and_no_results(pyplot: Any) -> None:
    assert len(revisions().plot()) == 2
    assert len(revisions()[:0].plot()) == 1


def test_a_column_that_cannot_be_drawn(pyplot: Any) -> None:
    query = mt.windows(x=w.tumbling(10)).aggregate(n=a.count(), all=a.collect("v")).on("t")
    results = query.run({"t": [1], "v": ["a"]})
    with pytest.raises(DataError, match=r"plot\(\) draws an aggregate of numbers \(n\): got 'all'"):
        results.plot("all")
    alone = mt.windows(x=w.tumbling(10)).aggregate(all=a.collect("v")).on("t").run({"t": [1], "v": ["a"]})
    with pytest.raises(DataError, match="there is none"):
        alone.plot()


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _hide(monkeypatch, "matplotlib")
    with pytest.raises(MuntinError, match=r'plot\(\) needs matplotlib.*pip install "muntin\[plot\]"'):
        QUERY.run(SALES).plot()


def _hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Let every import of a package fail."""
    found = builtins.__import__

    def hiding(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(f"no module {name}")
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", hiding)
