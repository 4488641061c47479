"""`run` and `op.stream` over files, datasets, readers and iterators: the same as over the whole table."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import csv, parquet

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors import files, sources
from muntin.errors import DataError
from muntin.timeline import LIMIT

ROWS = 3_000
RNG = np.random.default_rng(7)
TABLE = pa.table(
    {
        "t": pa.array(RNG.permutation(ROWS) // 3),
        "k": pa.array(RNG.choice(["a", "b", "c"], ROWS)),
        "v": pa.array(RNG.integers(-50, 50, ROWS)),
        "unread": pa.array([f"text {i}" for i in range(ROWS)]),
    }
)
WINDOWS = {
    "ten": w.tumbling(10),
    "slow": w.sliding(60, every=7),
    "visit": w.session(2),
    "hundred": w.count(100),
    "low": w.threshold("v < -45"),
}


def query(**on: Any) -> mt.Query:
    aggregates = {"n": a.count(), "total": a.sum("v"), "middle": a.median("v"), "first": a.first("v")}
    return mt.windows(**WINDOWS).aggregate(**aggregates).by("k").on("t", **on)


def batches(table: pa.Table = TABLE, size: int = 700) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches(max_chunksize=size))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": lambda folder: folder / "x.csv",
    "csv as text": lambda folder: str(folder / "x.csv"),
    "compressed csv": lambda folder: folder / "x.csv.gz",
    "tabs": lambda folder: folder / "x.tsv.zst",
    "json lines": lambda folder: folder / "x.jsonl",
    "compressed json lines": lambda folder: folder / "x.jsonl.gz",
    "parquet": lambda folder: folder / "x.parquet",
    "compressed parquet": lambda folder: folder / "x.pq.gz",
    "arrow file": lambda folder: folder / "x.arrow",
    "arrow stream": lambda folder: folder / "stream.arrow",
    "compressed arrow stream": lambda folder: folder / "stream.ipc.gz",
    "pattern": lambda folder: str(folder / "part-*.parquet"),
    "deep pattern": lambda folder: str(folder / "**" / "piece-*.csv"),
    "directory": lambda folder: folder / "deep",
    "list of paths": lambda folder: [folder / f"part-{i}.parquet" for i in range(3)],
    "tuple of texts": lambda folder: tuple(str(folder / f"part-{i}.parquet") for i in range(3)),
    "iterator of paths": lambda folder: iter(sorted(folder.glob("part-*.parquet"))),
    "dataset": lambda folder: ds.dataset(folder / "deep", format="csv"),
    "reader": lambda folder: TABLE.to_reader(max_chunksize=500),
    "iterator of batches": lambda folder: batches(),
    "list of batches": lambda folder: list(batches()),
    "tuple of tables": lambda folder: (TABLE.slice(0, 10), TABLE.slice(10)),
    "iterator of tables": lambda folder: iter([TABLE.slice(0, 100), TABLE.slice(100)]),
    "generator of records": lambda folder: (row for row in TABLE.to_pylist()),
    "records and batches": lambda folder: iter([*TABLE.slice(0, 9).to_pylist(), TABLE.slice(9)]),
    "iterator of columns": lambda folder: iter([TABLE.to_pydict()]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    (folder / "deep").mkdir()
    csv.write_csv(TABLE, folder / "x.csv")
    (folder / "x.csv.gz").write_bytes(gzip.compress((folder / "x.csv").read_bytes()))
    lines = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist())
    (folder / "x.jsonl").write_text(lines.rstrip("\n"))  # a file need not end with a line break
    (folder / "x.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    parquet.write_table(TABLE, folder / "x.parquet")
    with pa.OSFile(str(folder / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=400)
    with pa.OSFile(str(folder / "stream.arrow"), "wb") as sink, pa.ipc.new_stream(sink, TABLE.schema) as out:
        out.write_table(TABLE, max_chunksize=400)
    with pa.output_stream(folder / "x.tsv.zst", compression="zstd") as sink:
        csv.write_csv(TABLE, sink, csv.WriteOptions(delimiter="\t"))
    for name, plain in (("x.pq.gz", "x.parquet"), ("stream.ipc.gz", "stream.arrow")):
        (folder / name).write_bytes(gzip.compress((folder / plain).read_bytes()))
    for number, (begin, size) in enumerate([(0, 1_000), (1_000, 1_500), (2_500, 500)]):
        parquet.write_table(TABLE.slice(begin, size), folder / f"part-{number}.parquet")
        csv.write_csv(TABLE.slice(begin, size), folder / "deep" / f"piece-{number}.csv")
    return folder


@pytest.fixture(params=[65_536, 900, 1], ids=lambda rows: f"parts of {rows}")
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts, so that a small table has many."""
    monkeypatch.setattr(sources, "ENOUGH", request.param)
    if request.param < 10_000:
        monkeypatch.setattr(files, "BLOCK", 20_000)
        monkeypatch.setattr(files, "ROWS", 250)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("source", SOURCES)
def test_a_source_gives_what_the_whole_table_gives(source: str, folder: Path) -> None:
    assert query().run(SOURCES[source](folder)) == query().run(TABLE)


@pytest.mark.parametrize(
    "on", [{"early": mt.each_batch()}, {"early": mt.every(50)}, {"allowed_lateness": 100}], ids=str
)
def test_policies_make_no_difference(on: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ENOUGH", 500)
    assert query(**on).run(batches()) == query(**on).run(TABLE)


def test_threads_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ENOUGH", 500)
    shape = mt.windows(ten=w.tumbling(10), visit=w.session(2)).aggregate(total=a.sum("v")).by("k").on("t")
    assert shape.run(batches(), threads=2) == shape.run(TABLE)


@pytest.mark.parametrize(
    "nothing",
    [iter([]), iter([TABLE.slice(0, 0)]), TABLE.slice(0, 0).to_reader(), iter([[]])],
    ids=["no part", "a part without rows", "a reader without rows", "a list without records"],
)
def test_sources_without_tuples(nothing: Any) -> None:
    assert len(query().run(nothing)) == 0


def test_types_that_show_late_are_learned() -> None:
    parts = [{"t": [1], "v": [None]}, {"t": [2], "v": pa.nulls(1)}, {"t": [3], "v": [4]}, [{"t": 5}]]
    shape = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).on("t")
    whole = [{"t": 1, "v": None}, {"t": 2}, {"t": 3, "v": 4}, {"t": 5}]
    assert shape.run(iter(parts)) == shape.run(whole)


def test_memory_does_not_grow_with_the_tuples() -> None:
    """A hundred times the tuples of a part, of which at most a few parts are held."""
    shape = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).on("t")
    size = 65_536
    numbers = pa.array(np.arange(size))

    def endless(count: int) -> Iterator[pa.RecordBatch]:
        for i in range(count):
            yield pa.record_batch({"t": pa.array(np.arange(size) % 1_000 + i % 7), "v": numbers})

    shape.run(endless(3))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    peaks = []
    for count in (5, 60):
        tracemalloc.reset_peak()
        assert sum(shape.run(endless(count))["n"].to_pylist()) == count * size
        peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] + size * 16
    assert pa.total_allocated_bytes() - before < 10 * size * 16


def test_only_the_columns_that_are_read_are_read_from_parquet(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    read = parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        parquet.ParquetFile,
        "iter_batches",
        lambda self, rows, columns: (asked.append(columns), read(self, rows, columns=columns))[1],
    )
    query().run(folder / "x.parquet")
    assert asked == [["t", "k", "v"]]


def test_the_schema_decides_types_of_texts(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("t,v\n1,2\n2,\n3,2.5\n")
    (tmp_path / "x.jsonl").write_text('{"t": 1, "v": 2}\n{"t": 3, "v": 2.5}\n')
    shape = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t")
    for name in ("x.csv", "x.jsonl"):
        results = shape.run(tmp_path / name, schema={"v": "float64"})
        assert results["total"].to_pylist() == [4.5]


# Errors. -----------------------------------------------------------------------------------------


def test_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    for path, told in (
        (
            folder / "x.cvs",
            r"files must end in|there is no file .*x\.cvs; check the path\. Did you mean \"x.csv\"",
        ),
        (folder / "nothing-*.csv", "a pattern must match a file: got .*nothing"),
        (tmp_path, r"must have files that end in \.csv"),
    ):
        with pytest.raises(DataError, match=told):
            query().run(path)
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(DataError, match=r"files must end in \.csv.*: got x\.xlsx; rename it, or read it"):
        query().run(tmp_path / "x.xlsx")
    (tmp_path / "x.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"cannot read .*x\.parquet"):
        query().run(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("t,k,v\n1,a,2\n2,b\n")
    with pytest.raises(DataError, match=r"cannot read .*x\.csv: .*Expected 3 columns, got 2"):
        query().run(tmp_path / "x.csv")


def test_a_missing_column_is_named_with_all_columns_of_the_file(folder: Path) -> None:
    shape = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("w")).on("t")
    with pytest.raises(DataError, match='no column "w"; the columns are t, k, v, unread'):
        shape.run(folder / "x.parquet")


def test_process_says_who_reads_files() -> None:
    with pytest.raises(
        DataError, match=r"cannot read tuples from str; .*query\.run and op\.stream read files"
    ):
        query().operator().process("x.csv")


def test_an_error_of_an_iterator_comes_through() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches()
        raise RuntimeError("the connection is lost")

    with pytest.raises(RuntimeError, match="the connection is lost"):
        query().run(failing())


# Streams. ----------------------------------------------------------------------------------------

SHAPE = mt.windows(ten=w.tumbling(10), visit=w.session(3)).aggregate(n=a.count()).on("t")


def times(parts: list[mt.Results]) -> list[list[tuple[str, int]]]:
    return [[(row["window_name"], row["window"]["start"]) for row in part] for part in parts]


def test_results_come_with_the_part_that_makes_them_due() -> None:
    seen = []

    def live() -> Iterator[dict[str, int]]:
        for t in (1, 2, 12, 25):
            seen.append(t)
            yield {"t": t}

    found = []
    for results in SHAPE.operator(watermark_lag=0).stream(live()):
        assert results
        found.append((list(seen), results["window_name"].to_pylist()))
    assert found == [
        ([1, 2, 12], ["visit", "ten"]),
        ([1, 2, 12, 25], ["visit", "ten"]),
        ([1, 2, 12, 25], ["visit", "ten"]),
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_of_any_source_gives_the_same_windows(source: str, folder: Path) -> None:
    parts = list(query().operator().stream(SOURCES[source](folder)))
    assert mt.Results.concat(parts) == query().run(TABLE)


def test_tables_and_records_in_memory_are_sources_too() -> None:
    for source in (TABLE, TABLE.to_pylist(), TABLE.to_pandas(), TABLE.to_pydict()):
        assert mt.Results.concat(query().operator().stream(source)) == query().run(TABLE)


def test_a_stream_may_go_on_with_another_source() -> None:
    op = SHAPE.operator(watermark_lag=0)
    first = list(op.stream(iter([{"t": 1}, {"t": 12}]), finish=False))
    second = list(op.stream(iter([{"t": 14}, {"t": 40}])))
    assert times([mt.Results.concat([*first, *second])])[0] == times([SHAPE.run({"t": [1, 12, 14, 40]})])[0]
    with pytest.raises(DataError, match="the stream has ended"):
        list(op.stream(iter([{"t": 50}])))


async def ticks(*values: int, pause: float = 0) -> AsyncIterator[dict[str, int]]:
    for t in values:
        if pause:
            await asyncio.sleep(pause)
        yield {"t": t}


def collected(op: mt.Operator, source: object, **options: Any) -> list[mt.Results]:
    async def collect() -> list[mt.Results]:
        return [results async for results in op.stream(source, **options)]

    return asyncio.run(collect())


def test_asynchronous_sources() -> None:
    plain = list(SHAPE.operator(watermark_lag=0).stream({"t": t} for t in (1, 2, 12, 25)))
    assert collected(SHAPE.operator(watermark_lag=0), ticks(1, 2, 12, 25)) == plain
    assert collected(SHAPE.operator(watermark_lag=0), ticks(), finish=False) == []


def test_a_silent_asynchronous_source_closes_windows() -> None:
    shape = mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count()).on("t", idle_after="50 ms")
    op, silence = shape.operator(), asyncio.Event()

    async def source() -> AsyncIterator[dict[str, Any]]:
        yield {"t": np.datetime64("2026-01-01T00:00:01").item()}
        await silence.wait()

    async def first() -> mt.Results:
        async for results in op.stream(source()):
            silence.set()
            return results
        raise AssertionError("no result came")

    assert asyncio.run(asyncio.wait_for(first(), 60))["n"].to_pylist() == [1]


def test_errors_of_asynchronous_sources_come_through() -> None:
    async def failing() -> AsyncIterator[dict[str, int]]:
        yield {"t": 1}
        raise RuntimeError("the connection is lost")

    with pytest.raises(RuntimeError, match="the connection is lost"):
        collected(SHAPE.operator(), failing())
    with pytest.raises(DataError, match=r'"t".*must'):
        collected(SHAPE.operator(), ticks(LIMIT * 2))


def test_the_wrong_loop_is_named() -> None:
    with pytest.raises(DataError, match=r"an asynchronous source needs async for: got async_generator"):
        list(SHAPE.operator().stream(ticks(1)))
    with pytest.raises(DataError, match=r"async for needs an asynchronous source: got list"):
        collected(SHAPE.operator(), [{"t": 1}])


def test_a_block_releases_threads_and_ends_nothing() -> None:
    shape = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    big = pa.record_batch({"t": np.arange(300_000) // 100, "k": np.arange(300_000) % 7})
    before = threading.active_count()
    with shape.operator(threads=3) as op:
        op.process(big)
        assert threading.active_count() > before
    for thread in threading.enumerate():
        if thread.name.startswith("muntin") and thread is not threading.current_thread():
            thread.join(0.2)
    op.process(big.slice(0, 10))
    assert sum(op.finish()["n"].to_pylist()) == 300_010


# Places in messages. --------------------------------------------------------------------------------

GOOD = "t,k,v\n" + "".join(f"{i},a,{i}\n" for i in range(1_000))
PLACES = {
    "time": (GOOD.replace("\n700,a,700\n", "\n,a,700\n"), r'b.csv, row 701: the column "t" needs a value'),
    "order": (GOOD.replace("\n700,", "\n600,"), None),
    "column": (GOOD.replace("t,k,v", "t,k,w"), r'b.csv: there is no column "v"'),
    "value": (
        GOOD.replace("\n999,a,999\n", "\n999,a,9.5\n"),
        r'b.csv, row 1000: the column "v" must be of type int64 in every batch: got 9.5 \(double\); cast it',
    ),
}


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("mistake", [name for name, (_, message) in PLACES.items() if message])
def test_a_mistake_in_a_file_names_the_file_and_the_row(tmp_path: Path, mistake: str) -> None:
    wrong, message = PLACES[mistake]
    for name, text in {"a.csv": GOOD, "b.csv": wrong, "c.csv": GOOD}.items():
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for read in (
        lambda: query().run(paths),
        lambda: query().run(tmp_path / "?.csv"),
        lambda: list(query().operator().stream(paths)),
    ):
        with pytest.raises(DataError, match=message):
            read()


@pytest.mark.usefixtures("parts")
def test_a_mistake_in_a_dataset_names_the_file_and_the_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text(PLACES["time"][0])
    with pytest.raises(DataError, match=r"b\.csv, row 701: the column"):
        query().run(ds.dataset(tmp_path, format="csv"))


@pytest.mark.usefixtures("parts")
def test_a_mistake_in_a_reader_names_the_row_of_the_source() -> None:
    rows = [{"t": None if i == 2_500 else i, "k": "a", "v": 1} for i in range(3_000)]
    table = pa.Table.from_pylist(rows)
    for source in (table.to_reader(max_chunksize=300), batches(table), iter(rows), list(batches(table))):
        with pytest.raises(DataError, match=r"the source, row 2501: the column \"t\" needs a value"):
            query().run(source)
    with pytest.raises(DataError, match=r"got null in row 2500, \{"):
        query().run(table)


def test_an_order_that_is_broken_names_the_file_and_the_row(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(PLACES["order"][0])
    with pytest.raises(DataError, match=r"b.csv, row 701: the stream was declared in order, "):
        list(query().operator(in_order=True).stream(tmp_path / "b.csv"))


def test_a_list_of_paths_holds_paths_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    with pytest.raises(DataError, match=r"a list of paths must hold paths alone: got \{'t': 1\}"):
        query().run([tmp_path / "a.csv", {"t": 1}])


def test_a_line_that_is_no_json_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 2_000)
    good = [json.dumps({"t": i, "k": "a", "v": i}) for i in range(500)]
    for wrong, message in {
        '{"t":': r"x.jsonl: line 401 must be a JSON object: got '\{\"t\":'; Expecting value: .*\)$",
        "[1]": r"x.jsonl: line 401 must be a JSON object: got '\[1\]'",
        '{"t": 400, "k": 5, "v": 1}': r"x.jsonl: .* from string to number in line 401; if a type is wrong",
    }.items():
        (tmp_path / "x.jsonl").write_text("\n".join([*good[:400], wrong, *good[400:]]))
        with pytest.raises(DataError, match=message):
            query().run(tmp_path / "x.jsonl")


@pytest.mark.parametrize("block", [1 << 22, 2_000])
def test_a_misspelt_field_of_a_line_is_a_bad_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(files, "BLOCK", block)
    rows = [{"t": i, "k": "a", "v": i} for i in range(500)]
    rows[400] = {"t": 400, "k": "a", "V": 1}  # type: ignore[dict-item]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(
        DataError, match=r'x.jsonl, row 401: the column "v" is missing from a record that has .*"V"'
    ):
        query().run(tmp_path / "x.jsonl")
    del rows[400]
    found = query(bad="skip").run(tmp_path / "x.jsonl")
    assert found == query().run(rows)
