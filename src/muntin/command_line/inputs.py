"""The inputs of `muntin run`: files, patterns, directories and the standard input."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muntin.errors import DataError, nearest

__all__ = ["ENDINGS", "STDIN", "Source", "sources"]

STDIN = "-"

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
"""The format of a file by the ending of its name, before `.gz`."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or the standard input, and its format."""

    path: str
    form: str

    @property
    def compressed(self) -> bool:
        """Whether it is a file in gzip's format."""
        return self.path.endswith(".gz")

    def __str__(self) -> str:
        return "standard input" if self.path == STDIN else self.path


def sources(arguments: Sequence[str], form: str | None = None) -> list[Source]:
    """The sources that these arguments name; `form` is the format where an ending does not tell.

    >>> sources(["-"])
    [Source(path='-', form='jsonl')]
    """
    found = [source for argument in arguments for source in _named(argument, form)]
    if sum(source.path == STDIN for source in found) > 1:
        raise DataError('the standard input can be read once: got "-" twice; leave one out')
    return found


def _named(argument: str, form: str | None) -> list[Source]:
    if argument == STDIN:
        return [Source(STDIN, form or "jsonl")]
    path = Path(argument)
    if path.is_dir():
        inside = sorted(str(file) for file in path.iterdir() if file.is_file() and _ending(file) in ENDINGS)
        if not inside:
            raise DataError(
                f"a directory must have files that end in {', '.join(ENDINGS)} (or these and .gz): "
                f"got {argument}, which has none"
            )
        return [Source(file, form or ENDINGS[_ending(Path(file))]) for file in inside]
    if path.exists():
        return [_file(path, form)]
    if glob.has_magic(argument):
        matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207  # also absolute patterns
        if not matches:
            raise DataError(f"a pattern must match a file: got {argument}, which matches none")
        return [_file(Path(match), form) for match in matches if Path(match).is_file()]
    others = (file.name for file in path.parent.iterdir()) if path.parent.is_dir() else ()
    raise DataError(
        f"there is no file {argument}; give a file, a directory or -.{nearest(path.name, others)}"
    )


def _file(path: Path, form: str | None) -> Source:
    ending = _ending(path)
    if form is None and ending not in ENDINGS:
        raise DataError(
            f"files must end in {', '.join(ENDINGS)} (or these and .gz): got {path.name}; "
            "say what it is with --input-format csv, jsonl, parquet or arrow"
        )
    return Source(str(path), form or ENDINGS[ending])


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix
