"""The inputs of `muntin run`: files, patterns, directories and the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import pyarrow as pa

from muntin.connectors.input_files import InputFile, files_of
from muntin.errors import DataError
from muntin.file_formats import compression_of

__all__ = ["STDIN", "StandardInput", "sources"]

STDIN = "-"
_CURE = "say what it is with --input-format csv, jsonl, parquet or arrow"


@dataclass(frozen=True, slots=True)
class StandardInput(InputFile):
    """The standard input, in a format that its name does not tell."""

    path: str = STDIN
    form: str = "jsonl"

    def __str__(self) -> str:
        return "standard input"

    @property
    def place(self) -> str:
        return STDIN

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Its bytes, decompressed; it stays open."""
        stream = sys.stdin.buffer
        # The first bytes show the compression; only a buffered stream returns them without consuming them.
        start = stream.peek(4) if isinstance(stream, BufferedReader) else b""
        compression = compression_of(start)
        yield pa.CompressedInputStream(stream, compression) if compression else stream


def sources(arguments: Sequence[str], form: str | None = None) -> list[InputFile]:
    """The sources that these arguments name; `form` is the format where an ending does not tell.

    >>> sources(["-"])
    [StandardInput(path='-', form='jsonl')]
    """
    input_files = [
        source
        for argument in arguments
        for source in (
            [StandardInput(form=form or "jsonl")] if argument == STDIN else files_of(argument, form, _CURE)
        )
    ]
    seen: set[str] = set()
    for source in input_files:
        if source.place in seen:
            what = "the standard input" if source.place == STDIN else "a file"
            raise DataError(f'{what} can be read once: got "{source.path}" twice; leave one out')
        seen.add(source.place)
    return input_files
