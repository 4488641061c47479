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
_STARTS = {
    "gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18",
}  # fmt: skip
"""The first bytes of compressed data, for an input without a name."""


def compression_of(start: bytes) -> str | None:
    r"""The compression of data that begins with these bytes.

    >>> compression_of(b"\x1f\x8b\x08")
    'gzip'
    """
    return next((name for name, first in _STARTS.items() if start.startswith(first)), None)


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
