"""The state of a run that was stopped: how far each source was read, and the operator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from muntin.errors import MissingFileError, SnapshotError

__all__ = ["SavedRun", "load_run", "save_run"]

_MAGIC = b"muntin run 1\n"


@dataclass(frozen=True, slots=True)
class SavedRun:
    """What `muntin run --resume` goes on from."""

    fingerprint: str
    """Of the query."""
    positions: dict[str, int]
    """The rows, or lines, of each source that were taken in."""
    operator: bytes


def save_run(path: Path, run: SavedRun) -> None:
    """Write the file at once or not at all: first beside it, then in its place."""
    head = json.dumps({"query": run.fingerprint, "positions": run.positions}).encode()
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(_MAGIC + head + b"\n" + run.operator)
    new.replace(path)


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
