"""The state of a run that was stopped: how far each source was read, and the operator."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from muntin.errors import MissingFileError, SnapshotError

__all__ = ["SavedRun", "check_place", "forget_run", "load_run", "save_run"]

_MAGIC = b"muntin run 1\n"


@dataclass(frozen=True, slots=True)
class SavedRun:
    """What `muntin run --resume` goes on from."""

    fingerprint: str
    """Of the query."""
    positions: dict[str, int]
    """The rows, or lines, of each source that were taken in."""
    operator: bytes


def check_place(path: Path) -> None:
    """Refuse a place where saving a state would replace another file, or fail."""
    if not path.parent.is_dir():
        raise SnapshotError(f"a snapshot needs a directory: there is no {path.parent}; create it")
    if path.is_dir() or (path.is_file() and not _is_ours(path)):
        raise SnapshotError(
            f"{path} is not a snapshot of `muntin run`, and would be replaced by one; "
            "name another file with --snapshot"
        )


def save_run(path: Path, run: SavedRun) -> None:
    """Write the file at once or not at all: first beside it, then in its place."""
    head = json.dumps({"query": run.fingerprint, "positions": run.positions}).encode()
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_bytes(_MAGIC + head + b"\n" + run.operator)
        new.replace(path)
    except OSError as error:
        raise SnapshotError(f"cannot save the state in {path}: {error}; name another --snapshot") from error


def forget_run(path: Path, read: Iterable[str]) -> None:
    """Remove the snapshot of an earlier run over sources that have now been read to their end."""
    if path.is_file() and _is_ours(path):
        with path.open("rb") as file:
            file.seek(len(_MAGIC))
            head = file.readline()
        try:
            positions = json.loads(head)["positions"]
        except (ValueError, KeyError, TypeError):
            return
        if not set(positions).isdisjoint(read):
            path.unlink()


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def load_run(path: Path, fingerprint: str) -> SavedRun:
    """What was saved for the query with this fingerprint."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise MissingFileError(
            f"there is no snapshot {path} to go on from; leave --resume out, or name it with --snapshot"
        ) from error
    head, _, operator = data.removeprefix(_MAGIC).partition(b"\n")
    try:
        header = json.loads(head)
        run = SavedRun(header["query"], dict(header["positions"]), operator)
    except (ValueError, KeyError, TypeError):
        raise SnapshotError(f"{path} is not a snapshot of `muntin run`; name the one that it wrote") from None
    if run.fingerprint != fingerprint:
        raise SnapshotError(
            f"the query has changed since {path} was written; go on with the old one, "
            "or leave --resume out and start again"
        )
    return run
