"""The state of a key group in Spark's state store: a micro-batch writes only the parts that it changed.

The state of an operator is a set of named tables. Those that grow with the stream are split: slices, tuples
and closed or emitted windows by time, tables with a row for each key by the number of the key. Each part is
one entry of a map, and is written only when it changed. So are the windows that are served, and the numbers
of tuples that were late for each. The head has the plain values, and a token that changes with every step:
a worker that still has the operator of that token in memory does not read the parts at all. Every step writes
the head, so it has nothing that grows with the state or the number of windows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.connectors.spark.migration import asked_for, migrate
from muntin.connectors.spark.stored_query import (
    LATE_COUNTS,
    WINDOWS,
    described,
    served_query,
    take_queries,
)
from muntin.connectors.spark.table_parts import from_body, joined, split, widths_for
from muntin.errors import SnapshotError
from muntin.query import QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.served import ServedWindows
from muntin.slicing.snapshots.archive import VERSION, reading
from muntin.slicing.snapshots.checks import Role, can_continue_as, check_value
from muntin.slicing.snapshots.snapshot import assemble, dismantle

__all__ = [
    "SMALL_PARTS", "Stored", "Written", "blank_operator", "head_missing", "head_values", "read",
    "restore", "size_of", "token_of", "write",
]  # fmt: skip


HEAD: dict[str, type | Role] = {
    "token": str, "parts": Role.COUNT, "bytes": Role.COUNT, "header": dict,
    "groups": Role.POSITIVE, "heard": Role.ANY, "refused": Role.COUNT, "changes": list,
    "newest_guarded": Role.ANY,
}  # fmt: skip
"""The plain values of a head, and their types or roles."""
WIDTHS = "widths"
"""The table with the length of the parts of each table that is split by time, unless it is 1."""
SMALL_PARTS = (f"{WINDOWS}#", "input#")
"""The parts with which `blank_operator` makes an operator of the query, without tuples."""
NULLABLE = ("heard", "newest_guarded")
CARRIED = ("groups", "token", "heard", "refused", "changes", "newest_guarded")
"""The attributes of a `Stored` that a head holds under the same name."""


@dataclass(slots=True)
class Stored:
    """An operator, and the contents of the state store that belong to it."""

    operator: SlicingOperator
    query: QuerySpec
    """The program's query; changes may have given the operator other windows."""
    groups: int = 1
    """The number of key groups of the stream."""
    token: str = ""
    parts: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The digest and the size of each part in the state store."""
    widths: dict[str, int] = field(default_factory=dict)
    """The length of the parts of each table that is split by time."""
    heard: int | None = None
    """The latest time of day at which the stream may have had tuples."""
    refused: int = 0
    """The number of changes that were refused."""
    changes: list[str] = field(default_factory=list)
    """The names of all change files that were applied or refused."""
    newest_guarded: int | None = None
    """The newest tuple since a guard was added in front of Spark's watermark."""
    described: ServedWindows | None = None
    """The windows that the part WINDOWS describes."""
    asked: dict[str, Any] = field(default_factory=dict)
    """The program's query as plain values."""

    def __post_init__(self) -> None:
        self.asked = self.asked or asked_for(self.query)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(size for _, size in self.parts.values())


@dataclass(frozen=True, slots=True)
class Written:
    """The changes of a step: the new head, parts to write, parts to remove."""

    head: bytes
    changed: dict[str, bytes]
    gone: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that go into the state store."""
        return len(self.head) + sum(len(body) for body in self.changed.values())


def write(stored: Stored) -> Written:
    """The changes of the state store after which `read` returns this operator; `stored` notes them."""
    operator, header, tables = stored.operator, *dismantle(stored.operator)
    parts, changed = {}, {}
    late = (operator.header if operator.plan is None else operator.state).late_counts
    if any(late.values()):
        counts = [late.get(served.name, 0) for served in operator.served.all]
        tables[LATE_COUNTS] = pa.table({"count": pa.array(counts, pa.int64())})
    if stored.described is operator.served:
        parts[f"{WINDOWS}#"] = stored.parts[f"{WINDOWS}#"]
    else:
        tables[WINDOWS] = described(operator, stored.query, stored.asked)
        stored.described = operator.served
    stored.widths = {name: width for name, width in widths_for(tables, stored.widths).items() if width > 1}
    if stored.widths:
        names, widths = zip(*stored.widths.items(), strict=True)
        tables[WIDTHS] = pa.table({"table": pa.array(names), "width": pa.array(widths, pa.int64())})
    for part in split(tables, stored.widths):
        before = stored.parts.get(part.path)
        if before is not None and before[0] == part.digest:
            parts[part.path] = before
        else:
            changed[part.path] = body = part.body()
            parts[part.path] = part.digest, len(body)
    gone = tuple(path for path in stored.parts if path not in parts)
    stored.token, stored.parts = uuid4().hex, parts
    head = {name: getattr(stored, name) for name in CARRIED} | {
        "version": VERSION,
        "parts": len(parts),
        "bytes": stored.nbytes,
        "header": header,
    }
    return Written(json.dumps(head).encode(), changed, gone)


def token_of(head: bytes) -> str:
    """The token of the step that wrote this head."""
    with reading():
        return str(json.loads(head)["token"])


def read(
    head: bytes,
    bodies: Mapping[str, bytes],
    query: QuerySpec,
    groups: int = 1,
    schema: pa.Schema | None = None,
) -> Stored:
    """The operator of a head and the bodies of all parts, with the windows that `query` asks for.

    `schema` has the columns of the input as they are now.
    """
    values = head_values(head)
    if values["groups"] != groups:
        # A key would be looked up in another group than the one with its slices.
        raise SnapshotError(
            f"the checkpoint was written with spark.sql.shuffle.partitions = {values['groups']}, which is "
            f'{groups} now; add spark.conf.set("spark.sql.shuffle.partitions", "{values["groups"]}"), '
            "or start from a new checkpoint"
        )
    asked = asked_for(query)
    opened = _open(values, bodies, query, asked)
    operator, before = opened.operator, opened.queries
    served: ServedWindows | None = operator.served
    with reading():
        if schema is not None and operator.binding is not None:
            _continue_with(operator, operator.binding, schema)
        migrate(operator, before["asked"], query, asked)
    carried = {name: values[name] for name in CARRIED}
    served = served if before["asked"] == asked and "text" in before else None
    return Stored(
        operator, query, parts=opened.sizes, widths=opened.widths, asked=asked, described=served, **carried
    )


def restore(head: bytes, bodies: Mapping[str, bytes], query: QuerySpec | None = None) -> SlicingOperator:
    """The operator as it was stored. `query` is needed where a file cannot hold the query."""
    return _open(head_values(head), bodies, query).operator


def blank_operator(bodies: Mapping[str, bytes], query: QuerySpec | None = None) -> SlicingOperator:
    """An operator with the query and the types of a state, and no tuples; it needs SMALL_PARTS only."""
    with reading():
        tables = {path.rpartition("#")[0]: from_body(body)[1] for path, body in bodies.items()}
        operator = SlicingOperator(served_query(take_queries(tables), query))
        if "input" in tables:
            operator.bind(tables["input"].schema)
    return operator


@dataclass(frozen=True, slots=True)
class _Opened:
    """The operator of a head and all parts, with the windows that were served."""

    operator: SlicingOperator
    queries: dict[str, Any]
    sizes: dict[str, tuple[str, int]]
    widths: dict[str, int]


def _open(
    values: dict[str, Any],
    bodies: Mapping[str, bytes],
    query: QuerySpec | None,
    asked: dict[str, Any] | None = None,
) -> _Opened:
    if values["parts"] != len(bodies):
        raise SnapshotError(
            f"the state must have {values['parts']} parts: got {len(bodies)}; start from an older checkpoint"
        )
    with reading():
        parts = {path: from_body(body) for path, body in bodies.items()}
        tables = joined({path: table for path, (_, table) in parts.items()})
        queries, widths = take_queries(tables), _widths(tables)
        served = served_query(queries, query, asked)
        operator = assemble(values["header"] | {"windows": queries["windows"]}, tables, served)
    sizes = {path: (digest, len(bodies[path])) for path, (digest, _) in parts.items()}
    return _Opened(operator, queries, sizes, widths)


def _widths(tables: dict[str, pa.Table]) -> dict[str, int]:
    """The widths of a `Stored`, taken out of the tables."""
    rows = tables.pop(WIDTHS).to_pylist() if WIDTHS in tables else []
    widths = {row["table"]: row["width"] for row in rows}
    for name, width in widths.items():
        check_value("a table", name, str)
        check_value(f"the length of the parts of {name}", width, Role.POSITIVE)
    return widths


def head_values(head: bytes) -> dict[str, Any]:
    """The plain values of a head of this format version."""
    with reading():
        values = json.loads(head)
        _check_head(values)
    if values["version"] != VERSION:
        raise SnapshotError(
            f"the checkpoint has format version {values['version']}, this version of Muntin reads {VERSION}; "
            "start from a new checkpoint, or go on with the version that wrote it"
        )
    return dict(values)


def head_missing() -> SnapshotError:
    """The error about parts without a head in their map: until version 7 it was another state variable."""
    return SnapshotError(
        f"the checkpoint has format version 7 or older, this version of Muntin reads {VERSION}; "
        "start from a new checkpoint, or go on with the version that wrote it"
    )


def size_of(head: bytes) -> int:
    """Bytes of all parts that belong to this head; 0 where its format has no such number."""
    with reading():
        size = json.loads(head).get("bytes", 0)
        check_value("bytes", size, Role.COUNT)
    return int(size)


def _check_head(head: Any) -> None:
    """Check the plain values of a head; `assemble` and `windows_of` check the rest."""
    check_value("head", head, dict)
    if head["version"] != VERSION:  # its error comes first
        return
    for name, kind in HEAD.items():
        if head[name] is not None or name not in NULLABLE:
            check_value(name, head[name], kind)
    for name in head["changes"]:
        check_value("a change", name, str)


def _continue_with(operator: SlicingOperator, binding: Binding, schema: pa.Schema) -> None:
    """Continue with the columns of the input as they are now: new windows may read new ones.

    The state was computed from columns of certain types, which must stay. Tuples in the state have nulls in
    new columns; new windows start after all of these tuples.
    """
    was, used = binding.schema, binding.columns()
    for name in sorted(used & set(schema.names)):
        before, now = was.field(name).type, schema.field(name).type
        if not can_continue_as(before, now):
            raise SnapshotError(
                f'the column "{name}" is {now}, and was {before} when the checkpoint was written; '
                "cast it to what it was, or start from a new checkpoint"
            )
    fields = [was.field(f.name) if f.name in used else f for f in schema]
    fields += [f for f in was if f.name in used and f.name not in schema.names]
    if pa.schema(fields) != was:
        operator.read_columns(pa.schema(fields), tuple(f.name for f in fields if f.name != ARRIVAL))
