"""Tables from files and to files: CSV, Parquet, Arrow IPC."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from muntin.errors import DataError

FORMATS = (".csv", ".parquet", ".arrow")


def read_table(path: str | Path) -> pa.Table:
    """The tuples in a file, in the format of its ending."""
    path = Path(path)
    ending = _ending(path)
    try:
        if ending == ".csv":
            import pyarrow.csv

            return pyarrow.csv.read_csv(path)
        if ending == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        with pa.OSFile(str(path), "rb") as source:
            return pa.ipc.open_file(source).read_all()
    except pa.ArrowException as error:
        raise DataError(f"cannot read {path}: {error}") from error


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write results in the format of the ending. CSV has no structs: `window` becomes one column per edge."""
    path = Path(path)
    ending = _ending(path)
    if ending == ".csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table.flatten(), path)
    elif ending == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise DataError(f"files must end in {', '.join(FORMATS)}: got {path.name}")
    return ending
