"""The files that a path names: one file, those of a directory, or those that match a pattern."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.errors import DataError, nearest
from muntin.file_formats import COMPRESSIONS, ENDINGS, Format

_CURE = "rename it, or read it with pyarrow and pass the table"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of tuples, and the name of its format."""

    path: str
    form: str

    def __str__(self) -> str:
        return self.path

    @property
    def place(self) -> str:
        """The whole path of the file, which is the same however it was named."""
        return str(Path(self.path).resolve())

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Its bytes, decompressed."""
        compression = Format.of(self.path).compression
        if self.form == "arrow" and compression is None and Path(self.path).is_file():
            with pa.memory_map(self.path) as stream:
                yield stream
            return
        with Path(self.path).open("rb") as file:  # unlike Arrow, Python opens pipes too
            yield pa.CompressedInputStream(file, compression) if compression else file


def files_of(given: str | PathLike[str], form: str | None = None, cure: str = _CURE) -> list[InputFile]:
    """The files in the order of their names; `form` is the format of all, whatever their endings.

    `cure` is the advice for an ending that names no format.
    """
    path = Path(fspath(given))
    if path.is_dir():
        paths = sorted(one for one in path.iterdir() if Format.of(one.name).name and one.is_file())
        if not paths:
            raise DataError(
                f"a directory must have files that end in {_endings()}: got {path}, which has none"
            )
    elif path.exists():
        paths = [path]
    elif glob.has_magic(str(path)):
        matches = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207  # also absolute patterns
        paths = sorted(one for one in matches if one.is_file())
        if not paths:
            raise DataError(
                f"a pattern must match a file: got {path}, which matches none; check the directory"
            )
    else:
        others = (one.name for one in path.parent.iterdir()) if path.parent.is_dir() else ()
        raise DataError(f"there is no file {path}; check the path.{nearest(path.name, others)}")
    return [InputFile(str(one), form or _form(one, cure)) for one in paths]


def _form(path: Path, cure: str) -> str:
    form = Format.of(path.name).name
    if form is None:
        raise DataError(f"files must end in {_endings()}: got {path.name}; {cure}")
    return form


def _endings() -> str:
    return f"{', '.join(ENDINGS)} (or these and {', '.join(COMPRESSIONS)})"
