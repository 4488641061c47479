"""Changes of the windows and aggregates of a running stream: TOML files in a directory that the stream reads.

remove = ["minute", "total"]

[windows.half]
type = "tumbling"
length = "30 seconds"
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa

from muntin.aggregates.base import Aggregate
from muntin.errors import MuntinError, QueryError
from muntin.query import QuerySpec
from muntin.query.files import (
    aggregates_to_toml,
    load_aggregates,
    load_windows,
    read_toml,
    toml_value,
    windows_to_toml,
)
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.snapshot import current_spec
from muntin.slicing.window_changes import Change, to_add, to_remove
from muntin.windows.base import Window

if TYPE_CHECKING:
    from pyarrow import fs
    from pyspark.sql import DataFrame

    from muntin.connectors.spark.group_state import Stored

__all__ = ["Controlled", "apply_texts", "named", "read_change", "read_changes", "to_toml"]

LOG = logging.getLogger("muntin")

_PATTERNS = frozenset("*?[]{}")


@dataclass(frozen=True)
class Controlled:
    """A query whose windows and aggregates can be changed while it runs; `query.control(path)` makes it.

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
        filesystem, folder = _location(self.path)
        filesystem.create_dir(folder, recursive=True)

    def add(self, /, *unnamed: object, **named: Window | Aggregate) -> None:
        """Serve more windows, or aggregates that were removed, from the next micro-batch on.

        Windows start at their first edge after the newest tuple of the stream, for all keys at the same time,
        and aggregates with windows that begin after it. The columns of the results are fixed, so other
        aggregates are refused.
        """
        self._publish(Change(*to_add(unnamed, named)))

    def remove(self, *names: str) -> None:
        """Stop serving windows and aggregates; the last one of each cannot be removed.

        The column of an aggregate stays, and is null.
        """
        self._publish(Change(remove=to_remove(names)))

    def served(self) -> dict[str, Window]:
        """The windows after all changes."""
        return dict(current_spec(self._operator()).windows)

    def __call__(self, frame: DataFrame, **options: Any) -> DataFrame:
        """The window results of a streaming DataFrame: `events.transform(query.control(path))`."""
        from muntin.connectors.spark import transform

        return transform(self.query, frame, control=self.path, **options)

    def _publish(self, change: Change) -> None:
        self._operator().change(change, columns_stay=True)  # an error where it is refused
        text = to_toml(change)
        filesystem, folder = _location(self.path)
        name = f"{time.time_ns():020}-{uuid4().hex[:8]}.toml"
        # Spark ignores files whose name begins with an underscore, so it reads none that is not complete.
        with filesystem.open_output_stream(f"{folder}/_{name}") as out:
            out.write(text.encode())
        filesystem.move(f"{folder}/_{name}", f"{folder}/{name}")

    def _operator(self) -> SlicingOperator:
        """An operator without tuples, after all changes."""
        operator = SlicingOperator(self.query)
        for name, text in read_changes(self.path):
            with suppress(MuntinError):  # the stream refuses it, too
                operator.change(read_change(text, name), columns_stay=True)
        return operator


def to_toml(change: Change) -> str:
    """The text that `read_change` reads back.

    >>> from muntin.windows import tumbling
    >>> print(to_toml(Change({"half": tumbling("30 seconds")}, remove=("minute",))))
    remove = ["minute"]
    [windows.half]
    type = "tumbling"
    length = "30 seconds"
    <BLANKLINE>
    """
    added = windows_to_toml(change.windows.items()) + aggregates_to_toml(change.aggregates.items())
    return f"remove = {toml_value(list(change.remove))}\n{added}"


def read_change(text: str, source: str) -> Change:
    """The change in a text; a QueryError that calls it `source` says what is wrong with it."""
    document = read_toml(text, source)
    others = sorted(set(document) - {"windows", "aggregates", "remove"})
    if others:
        raise QueryError(
            f'{source}: unknown key "{others[0]}"; a change has [windows.NAME], [aggregates.NAME] and '
            "remove = []"
        )
    remove = document.get("remove", [])
    if not isinstance(remove, list) or not all(isinstance(name, str) for name in remove):
        raise QueryError(f'{source}: remove must be a list of names like ["minute"]: got {remove!r}')
    windows = load_windows(document, source) if "windows" in document else {}
    aggregates = load_aggregates(document, source) if "aggregates" in document else {}
    return Change(windows, aggregates, tuple(remove))


def read_changes(path: str) -> list[tuple[str, str]]:
    """The names and texts of the change files in a directory, oldest first."""
    from pyarrow import fs  # its file systems of clouds take 6 MB of each worker

    filesystem, folder = _location(path)
    files = filesystem.get_file_info(fs.FileSelector(folder))
    texts = []
    for name in sorted(info.base_name for info in files if _is_change(info)):
        with filesystem.open_input_stream(f"{folder}/{name}") as stream:
            texts.append((name, stream.read().decode("utf-8", "replace")))
    return texts


def _is_change(info: fs.FileInfo) -> bool:
    return info.is_file and info.base_name.endswith(".toml") and info.base_name[0] not in "._"


def _location(path: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs

    if "://" in path:
        filesystem, folder = fs.FileSystem.from_uri(path)
        return filesystem, folder
    return fs.LocalFileSystem(), str(Path(path).absolute())


def named(texts: Iterable[str]) -> list[tuple[str, str]]:
    """The names and contents of files, oldest first; the first line of each text is the name.

    Spark gives names as parts of addresses, with a blank as %20.
    """
    split = (text.partition("\n") for text in texts)
    return sorted((unquote(name), body) for name, _, body in split)


def apply_texts(stored: Stored, texts: Iterable[str], outcome: pa.Schema) -> None:
    """Apply the changes of some files, oldest first; new windows start after the newest tuple.

    A refused change changes nothing and stops nothing: the stream would read it again after every
    restart. All key groups refuse the same ones. `outcome` has the columns of the results, which are fixed.
    """
    operator = stored.operator
    for name, text in named(texts):
        stored.changes.append(name)
        try:
            change = read_change(text, name)
            _check_edges(change, outcome)
            operator.change(change, operator.state.newest, columns_stay=True)
        except MuntinError as error:
            LOG.warning("the change %s was refused: %s", name, error)
            stored.refused += 1


def _check_edges(change: Change, outcome: pa.Schema) -> None:
    edges = outcome.field("window").type.names
    for name, window in change.windows.items():
        if window.measure is not None and f"start_{window.measure}" not in edges:
            raise QueryError(
                f'the results have no column for the edges of "{name}" on {window.measure}; a window on a '
                "measure can be added where the query had one on it from the start"
            )
