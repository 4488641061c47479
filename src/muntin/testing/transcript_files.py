"""Reading transcripts from YAML files; `muntin.testing.transcripts` describes the format."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin.dsl import Query
from muntin.errors import QueryError, nearest
from muntin.query.files import load_query
from muntin.testing.rows import Row
from muntin.timeline import instant

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Step", "Transcript", "load_transcripts"]

_MERGED = ("stream", "aggregates", "types")  # a transcript adds to these, and replaces the others
_OPTIONAL = ("about", "must_fail", "shuffle", "split")
_KEYS = (*_MERGED, "columns", "windows", "name", "steps", "expect_error", *_OPTIONAL)
_ACTIONS = ("input", "watermark", "finish", "add", "remove")
_OUTCOMES = ("expect", "expect_late", "expect_error", "since")
_RESERVED = ("window_name", "window", "ordinal", "kind", "revision")


@dataclass(frozen=True)
class Step:
    """One step: an action and its complete outcome."""

    action: str
    value: Any
    expect: tuple[Row, ...] = ()
    late: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    error: str | None = None
    since: int | None = None

    def __str__(self) -> str:
        return f"{self.action}: {self.value}"


@dataclass(frozen=True)
class Transcript:
    """A query, the types of its input, and steps with their outcomes.

    `error` is a pattern that the error of the query itself must match; such a
    transcript has no query.
    """

    name: str
    query: Any
    schema: Any
    steps: tuple[Step, ...]
    about: str = ""
    error: str | None = None
    must_fail: bool = False
    shuffle: bool = True
    split: bool = True

    def __str__(self) -> str:
        return self.name


def load_transcripts(path: str | Path, named: Mapping[str, Any] | None = None) -> list[Transcript]:
    """All transcripts of a file, or of the files in a directory.

    `named` holds windows and aggregates that are Python code: `!named pairs` in a
    file is `named["pairs"]`.
    """
    path = Path(path)
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise QueryError(f"a directory must have files that end in .yaml: got {path}, which has none")
    transcripts = [transcript for file in files for transcript in _read_file(file, named or {})]
    names = [transcript.name for transcript in transcripts]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f'transcripts must have different names: "{name}" occurs twice')
    return transcripts


def _read_file(file: Path, named: Mapping[str, Any]) -> list[Transcript]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Also knows `!named x`."""

    def look_up(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        if node.value not in named:
            raise QueryError(
                f'{file}: nothing is named "{node.value}".'
                + (nearest(node.value, named) or " In Python, load_transcripts(path, named=...) names it.")
            )
        return named[node.value]

    Loader.add_constructor("!named", look_up)
    try:
        document = yaml.load(file.read_text("utf-8"), Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise QueryError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or not isinstance(document.get("transcripts"), list):
        raise QueryError(f"{file} must be a mapping with a list under transcripts")
    shared = {key: value for key, value in document.items() if key != "transcripts"}
    transcripts = []
    for number, body in enumerate(document["transcripts"], 1):
        place = f"{file}, transcript {body.get('name', number) if isinstance(body, dict) else number}"
        try:
            transcripts.append(_Reader(_merged(shared, body)).transcript())
        except KeyError as error:
            raise QueryError(f'{place}: there is no "{error.args[0]}"; add it') from error
        except (AttributeError, TypeError, ValueError) as error:
            raise QueryError(f"{place}: {error}") from error
    return transcripts


def _merged(shared: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**shared, **body}
    for key in _MERGED:
        merged[key] = {**shared.get(key, {}), **body.get(key, {})}
    for key in merged:
        if key not in _KEYS:
            raise QueryError(f'unknown key "{key}".{nearest(key, _KEYS)}')
    return merged


class _Reader:
    """Builds one transcript."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.columns: Sequence[str] = body["columns"]
        self.time: str = body["stream"]["time"]

    def transcript(self) -> Transcript:
        body = self.body
        self.schema = self._schema()
        pattern = body.get("expect_error")
        query = None
        try:
            query = self._query(body["windows"])
        except QueryError as error:
            if pattern is None or not re.search(pattern, str(error)):
                raise
        return Transcript(
            name=body["name"],
            query=query,
            schema=self.schema,
            steps=tuple(self._step(step) for step in body["steps"]),
            error=pattern,
            **{key: body[key] for key in _OPTIONAL if key in body},
        )

    # ---- the query -----------------------------------------------------------

    def _query(self, windows: Mapping[str, Any]) -> Any:
        aggregates = self.body["aggregates"]
        # A query file cannot contain code: load it with a substitute, and put the code in its place.
        document = {
            "stream": {"late": "route", **self.body["stream"]},
            "windows": _without_code(windows, {"type": "count", "n": 1}),
            "aggregates": _without_code(aggregates, {"function": "count"}),
        }
        query = load_query(document, "query", Query)
        return replace(
            query,
            windows=_with_code(query.windows, windows),
            aggregates=_with_code(query.aggregates, aggregates),
        )

    # ---- the steps -----------------------------------------------------------

    def _step(self, step: Mapping[str, Any]) -> Step:
        for key in step:
            if key not in (*_ACTIONS, *_OUTCOMES):
                raise QueryError(f'unknown key "{key}" in a step.{nearest(key, (*_ACTIONS, *_OUTCOMES))}')
        actions = [key for key in step if key in _ACTIONS]
        if len(actions) != 1:
            raise QueryError(f"a step must have one of {', '.join(_ACTIONS)}: got {dict(step)}")
        action = actions[0]
        value = step[action]
        if action == "input":
            value = [self._row(row) for row in value]
        elif action == "watermark":
            value = int(instant(value))
        elif action == "add":
            value = dict(self._query(value).windows)
        return Step(
            action,
            value,
            expect=tuple(self._expected(row) for row in step.get("expect", [])),
            late=tuple((row["window_name"], self._row(row)) for row in step.get("expect_late", [])),
            error=step.get("expect_error"),
            since=step.get("since"),
        )

    def _row(self, row: Any) -> dict[str, Any]:
        """An input row, given as a list of values or as a mapping."""
        values = self._by_name(row)
        return {name: _typed(values[name], self.schema.field(name).type) for name in self.columns}

    def _by_name(self, row: Any) -> dict[str, Any]:
        if isinstance(row, dict):
            return row
        if not isinstance(row, list) or len(row) != len(self.columns):
            columns = ", ".join(self.columns)
            raise QueryError(f"an input row must have a value for each of {columns}: got {row}")
        return dict(zip(self.columns, row, strict=True))

    def _expected(self, row: Mapping[str, Any]) -> Row:
        key = self.body["stream"].get("key", [])
        keys = [key] if isinstance(key, str) else key
        known = (*keys, *self.body["aggregates"], *_RESERVED)
        for name in row:
            if name not in known:
                raise QueryError(f'unknown column "{name}" in an expected row.{nearest(name, known)}')
        for name in (*keys, "window", *self.body["aggregates"]):
            if name not in row:
                raise QueryError(f'an expected row must have "{name}": got {dict(row)}')
        if not isinstance(row["window"], list) or len(row["window"]) < 2:
            raise QueryError(f"the window of an expected row must be [start, end]: got {row['window']}")
        start, end, *measured = row["window"]
        aggregates = {name: row[name] for name in self.body["aggregates"]}
        return Row(
            keys=tuple(row[key] for key in keys),
            window_name=row["window_name"] if "window_name" in row else _only(self.body["windows"]),
            start=_edge(start),
            end=_edge(end),
            aggregates={name: _exact(value) for name, value in aggregates.items()},
            **{name: row[name] for name in ("kind", "revision", "ordinal") if name in row},
            **dict(zip(("low", "high"), measured, strict=False)),
        )

    def _schema(self) -> pa.Schema:
        """The type of every column: declared under `types`, or inferred from its values."""
        import pyarrow as pa

        declared = self.body.get("types", {})
        rows = [self._by_name(row) for step in self.body["steps"] for row in step.get("input") or []]
        fields = []
        for name in self.columns:
            values = [row[name] for row in rows]
            fields.append((name, _type(declared[name]) if name in declared else pa.array(values).type))
        return pa.schema([(name, pa.int64() if type_ == pa.null() else type_) for name, type_ in fields])


def _without_code(items: Mapping[str, Any], substitute: dict[str, Any]) -> dict[str, Any]:
    return {name: item if isinstance(item, dict) else substitute for name, item in items.items()}


def _with_code(items: Iterable[tuple[str, Any]], given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, item if isinstance(given[name], dict) else given[name]) for name, item in items)


def _only(windows: Mapping[str, Any]) -> str:
    if len(windows) != 1:
        raise QueryError("an expected row must have its window_name where there are several")
    return str(next(iter(windows)))


def _type(name: str) -> pa.DataType:
    """The Arrow type with this name: int64, double, string, decimal(10, 2), timestamp[us, UTC]."""
    import pyarrow as pa

    if match_ := re.fullmatch(r"decimal\((\d+), (\d+)\)", name):
        return pa.decimal128(int(match_[1]), int(match_[2]))
    if match_ := re.fullmatch(r"timestamp\[(\w+)(?:, (\S+))?\]", name):
        return pa.timestamp(match_[1], match_[2])
    return pa.type_for_alias(name)


def _typed(value: Any, type_: pa.DataType) -> Any:
    """A value of the file as the Python value of a column of this type."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment if type_.tz else moment.replace(tzinfo=None)
    if pa.types.is_decimal(type_):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-type_.scale))
    return float(value) if pa.types.is_floating(type_) else value


def _edge(value: Any) -> int:
    # Windows of the first and last times that are allowed reach beyond them.
    return value if isinstance(value, int) else int(instant(value))


def _exact(value: Any) -> Any:
    return dt.datetime.fromisoformat(value) if isinstance(value, str) and _MOMENT.fullmatch(value) else value


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*")
