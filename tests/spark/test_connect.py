"""Spark Connect gives what the embedded engine gives, of bounded tables and of streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))
import connect_program  # beside this file, not installed
import troubled_stream as program


def test_through_spark_connect(tmp_path: Path) -> None:
    folder = program.lay_out(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, connect_program.__file__, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    table = pa.concat_tables(program.steps())
    for name, query in {"packed": program.query(), "jvm": connect_program.plain()}.items():
        found = pq.read_table(folder / f"{name}.parquet")
        assert program.rows_of(found) == program.rows_of(query.run(table)), name
    assert program.written(folder) == program.expected()
    assert program.written(folder, "handed") == program.expected(connect_program.tumbling())
    tuples, late, windows = map(int, (folder / "counted").read_text().split())
    assert (tuples, late) == (len(table), 0)
    assert windows == sum(row["kind"] != "retract" for row in program.expected())
    for told in (folder / "refused").read_text().splitlines():
        assert told.startswith(
            'a streaming query needs a watermark on its time column: "ts" has none; write '
        )
