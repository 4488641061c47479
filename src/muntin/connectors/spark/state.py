"""The state of a key group in Spark's state store: what a micro-batch did not change is not written.

An operator comes apart into named tables. Those that grow with the stream are split: slices, kept
tuples and windows that are closed or came out by time, what there is of each key by number. Each part
is one entry of a map, and an entry is written only when it changed. The head holds the plain values,
which parts there are, and a token that changes with every step: a worker that still has the operator
of that token in memory does not read the parts at all. The head is written with every step, so what
grows with the state is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.connectors.spark.migration import asked_for, migrate, served_by, windows_of
from muntin.connectors.spark.table_parts import from_body, joined, paths_of, runs_of, split, widths_for
from muntin.errors import SnapshotError
from muntin.query import QuerySpec
from muntin.slicing.binding import ARRIVAL
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.archive import VERSION, reading
from muntin.slicing.snapshots.checks import Role, can_continue_as, check_value, refuse_unless
from muntin.slicing.snapshots.snapshot import assemble, dismantle

__all__ = ["Stored", "Written", "read", "token_of", "write"]


HEAD: dict[str, type | Role] = {
    "token": str, "widths": dict, "parts": dict, "header": dict, "groups": Role.POSITIVE, "asked": dict,
    "served": list, "heard": Role.ANY, "refused": Role.COUNT, "changes": list,
}  # fmt: skip
"""The plain values of a head, and their types or roles."""


@dataclass(slots=True)
class Stored:
    """An operator, and what the state store holds of it."""

    operator: SlicingOperator
    query: QuerySpec
    """As the program gives it; the operator may serve other windows by now."""
    groups: int = 1
    """How many key groups the stream has."""
    token: str = ""
    parts: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The digest and the size of each part that is stored."""
    widths: dict[str, int] = field(default_factory=dict)
    """For each table that is split by time, how long its parts are."""
    heard: int | None = None
    """The time of day at which the stream was last known to have brought tuples."""
    refused: int = 0
    """Changes that made no sense."""
    changes: tuple[str, ...] = ()
    """The names of all files with changes that were taken up."""
    newest_guarded: int | None = None
    """The newest tuple since a guard was added in front of Spark's watermark."""
    asked: dict[str, Any] = field(init=False)
    """The program's query as plain values."""

    def __post_init__(self) -> None:
        self.asked = asked_for(self.query)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(size for _, size in self.parts.values())


@dataclass(frozen=True, slots=True)
class Written:
    """A step's changes: the new head, parts to write, parts to remove."""

    head: bytes
    changed: dict[str, bytes]
    gone: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that go into the state store."""
        return len(self.head) + sum(len(body) for body in self.changed.values())


def write(stored: Stored) -> Written:
    """What must be written so that `read` gives this operator again; `stored` takes note of it."""
    header, tables = dismantle(stored.operator, None)
    stored.widths = widths_for(tables, stored.widths)
    parts, changed = {}, {}
    for part in split(tables, stored.widths):
        before = stored.parts.get(part.path)
        if before is not None and before[0] == part.digest:
            parts[part.path] = before
        else:
            changed[part.path] = body = part.body()
            parts[part.path] = part.digest, len(body)
    gone = tuple(path for path in stored.parts if path not in parts)
    stored.token, stored.parts = uuid4().hex, parts
    head = {
        "version": VERSION,
        "token": stored.token,
        "widths": stored.widths,
        "parts": runs_of(parts),
        "header": header,
        "groups": stored.groups,
        "asked": stored.asked,
        "served": served_by(stored.operator),
        "heard": stored.heard,
        "refused": stored.refused,
        "changes": stored.changes,
        "newest_guarded": stored.newest_guarded,
    }
    return Written(json.dumps(head).encode(), changed, gone)


def token_of(head: bytes) -> str:
    """The token of the step that wrote this head."""
    with reading():
        return str(json.loads(head)["token"])


def read(
    head: bytes,
    part: Callable[[str], bytes],
    query: QuerySpec,
    groups: int = 1,
    schema: pa.Schema | None = None,
) -> Stored:
    """The operator that was written, with the windows that `query` asks for; `part` looks up the parts.

    `schema` are the columns of the input as they are now.
    """
    with reading():
        found = json.loads(head)
        _check_head(found)
    if found["version"] != VERSION:
        raise SnapshotError(
            f"the checkpoint has format version {found['version']}, this version of Muntin reads {VERSION}; "
            "start from a new checkpoint, or go on with the version that wrote it"
        )
    if found["groups"] != groups:
        # Keys would be looked for in other groups than those that hold their slices.
        raise SnapshotError(
            f"the checkpoint was written with spark.sql.shuffle.partitions = {found['groups']}, which is "
            f'{groups} now; add spark.conf.set("spark.sql.shuffle.partitions", "{found["groups"]}"), '
            "or start from a new checkpoint"
        )
    parts, tables = {}, {}
    for path in paths_of(found["parts"]):
        body = part(path)
        with reading():
            digest, tables[path] = from_body(body)
        parts[path] = digest, len(body)
    with reading():
        served = windows_of(found["asked"], found["served"], query)
        operator = assemble(found["header"], joined(tables), served)
        if schema is not None:
            _check_types(operator, schema)
            _look_at(operator, schema)
        migrate(operator, found["asked"], query)
    return Stored(
        operator,
        query,
        groups,
        found["token"],
        parts,
        found["widths"],
        found["heard"],
        found["refused"],
        tuple(found["changes"]),
        found.get("newest_guarded"),
    )


def _check_head(head: Any) -> None:
    """Check the plain values of a head; `assemble` and `windows_of` check the operator's and the query's."""
    check_value("head", head, dict)
    if head["version"] != VERSION:  # its error comes first
        return
    for name, kind in HEAD.items():
        if head[name] is not None or name != "heard":
            check_value(name, head[name], kind)
    for name, width in head["widths"].items():
        check_value(f"the length of the parts of {name}", width, Role.POSITIVE)
    for name in head["changes"]:
        check_value("a change", name, str)
    for name, runs in head["parts"].items():
        whole = all(type(number) is int for run in runs for number in run)
        refuse_unless(whole and all(len(run) == 2 for run in runs), f"parts of {name}: {runs!r:.80}")


def _check_types(operator: SlicingOperator, schema: pa.Schema) -> None:
    """What is stored was computed from columns of certain types, and goes on only with these."""
    binding = operator.binding
    if binding is None:
        return
    for name in sorted(binding.columns() & set(schema.names)):
        was, now = binding.schema.field(name).type, schema.field(name).type
        if not can_continue_as(was, now):
            raise SnapshotError(
                f'the column "{name}" is {now}, and was {was} when the checkpoint was written; '
                "cast it to what it was, or start from a new checkpoint"
            )


def _look_at(operator: SlicingOperator, schema: pa.Schema) -> None:
    """Go on with the columns that there are now: new windows may read some that no window read before.

    Tuples that were kept have nulls in them; new windows begin behind all of these.
    """
    binding = operator.binding
    if binding is None:
        return
    was, used = binding.schema, binding.columns()
    fields = [was.field(f.name) if f.name in used else f for f in schema]
    fields += [f for f in was if f.name in used and f.name not in schema.names]
    if pa.schema(fields) != was:
        names = tuple(f.name for f in fields if f.name != ARRIVAL)
        operator.read_columns(pa.schema(fields), names)
