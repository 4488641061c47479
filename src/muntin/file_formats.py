"""The formats of files of tuples and of results, by the endings of their names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ENDINGS = {
    ".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".arrow": "arrow",
    ".tsv": "csv", ".txt": "csv", ".ndjson": "jsonl", ".json": "jsonl",
    ".pq": "parquet", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
"""The format of a file by the ending of its name, before that of a compression."""
TEXTS = ("csv", "jsonl")
"""The formats of lines; the others have a compression of their own."""
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class Format(NamedTuple):
    """What the name of a file says about its contents.

    >>> Format.of("days/2026-05-04.CSV.gz")
    Format(name='csv', delimiter=',', compression='gzip')
    """

    name: str | None
    """One of csv, jsonl, parquet and arrow; None where the ending is another."""
    delimiter: str
    compression: str | None

    @classmethod
    def of(cls, path: str) -> Format:
        """The format of a path."""
        name = Path(path.lower())
        compression = COMPRESSIONS.get(name.suffix)
        ending = Path(name.stem).suffix if compression else name.suffix
        return cls(ENDINGS.get(ending), "\t" if ending == ".tsv" else ",", compression)
