"""Adding and removing queries while a stream runs: a directory of changes that the stream reads."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyarrow import fs

from muntin.connectors.spark.changes import Change, applied, read_change
from muntin.errors import MuntinError, QueryError
from muntin.query import QuerySpec
from muntin.windows.base import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Controlled", "read_changes"]

_PATTERNS = frozenset("*?[]{}")


@dataclass(frozen=True)
class Controlled:
    """A query whose windows can be changed while it runs; `query.control(path)` makes it.

    Every program that names the same path can change them: the one that started the stream, a
    notebook, a command line. A change is a small TOML file in the directory. The stream takes it up in
    the next micro-batch, in all its tasks; the checkpoint remembers which micro-batch that was.

    >>> import muntin as mt, tempfile
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(minute=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts")
    >>> live = query.control(tempfile.mkdtemp())
    >>> live.add(half=w.tumbling("30 seconds"))
    >>> live.remove("minute")
    >>> list(live.served())
    ['half']
    """

    query: QuerySpec
    path: str

    def __post_init__(self) -> None:
        if set(self.path) & _PATTERNS:
            raise QueryError(
                f"the path of a control directory must have none of {' '.join(sorted(_PATTERNS))}, "
                f"which Spark reads as a pattern: got {self.path!r}; choose another directory"
            )
        filesystem, folder = _place(self.path)
        filesystem.create_dir(folder, recursive=True)

    def add(self, **named: Window) -> None:
        """Serve more windows, over the same aggregates, from the next micro-batch on.

        They start at their first edge behind the newest tuple of the stream, for all keys alike.
        """
        if not named:
            raise QueryError('windows need names: write .add(half=w.tumbling("30 seconds"))')
        self._publish(Change(named))

    def remove(self, *names: str) -> None:
        """Stop serving windows; the last one cannot be removed."""
        if not names:
            raise QueryError('name the windows to remove: write .remove("minute")')
        self._publish(Change(remove=names))

    def served(self) -> dict[str, Window]:
        """The windows after all changes that were asked for so far."""
        query = self.query
        for name, text in read_changes(self.path):
            try:
                query = applied(query, read_change(text, name))
            except MuntinError:
                continue  # the stream refuses it, too
        return dict(query.windows)

    def __call__(self, frame: DataFrame, **options: Any) -> DataFrame:
        """The window results of a streaming DataFrame: `events.transform(query.control(path))`."""
        from muntin.connectors.spark import transform

        return transform(self.query, frame, control=self.path, **options)

    def _publish(self, change: Change) -> None:
        applied(replace(self.query, windows=tuple(self.served().items())), change)
        text = change.to_toml()
        filesystem, folder = _place(self.path)
        name = f"{time.time_ns():020}-{uuid4().hex[:8]}.toml"
        # Spark reads no file whose name begins with an underscore; so none is read before it is whole.
        with filesystem.open_output_stream(f"{folder}/_{name}") as out:
            out.write(text.encode())
        filesystem.move(f"{folder}/_{name}", f"{folder}/{name}")


def read_changes(path: str) -> list[tuple[str, str]]:
    """The change files in a directory and what they hold, oldest first."""
    filesystem, folder = _place(path)
    found = filesystem.get_file_info(fs.FileSelector(folder))
    names = sorted(info.base_name for info in found if _is_change(info))
    texts = []
    for name in names:
        with filesystem.open_input_stream(f"{folder}/{name}") as stream:
            texts.append((name, stream.read().decode("utf-8", "replace")))
    return texts


def _is_change(info: fs.FileInfo) -> bool:
    return info.is_file and info.base_name.endswith(".toml") and info.base_name[0] not in "._"


def _place(path: str) -> tuple[fs.FileSystem, str]:
    if "://" in path:
        filesystem, folder = fs.FileSystem.from_uri(path)
        return filesystem, folder
    return fs.LocalFileSystem(), str(Path(path).absolute())
