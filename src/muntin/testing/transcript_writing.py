"""A transcript as the text of a YAML file, which `load_transcripts` reads back."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import QueryError, value_text
from muntin.query.files import aggregates_to_toml, stream_to_toml, windows_to_toml
from muntin.testing.transcript_files import Step, Transcript
from muntin.timeline import Micros, format_instant

if TYPE_CHECKING:
    import yaml

    from muntin.testing.rows import Row

__all__ = ["code_of", "transcript_text"]

Items = Iterable[tuple[str, Any]]


class _Named(str):
    """A window or an aggregate that is Python code, by its name."""

    __slots__ = ()


def code_of(windows: Items, aggregates: Items) -> dict[str, Any]:
    """The windows and aggregates that are Python code, which a file cannot hold, by their names."""
    both = [(item, windows_to_toml) for item in windows] + [(item, aggregates_to_toml) for item in aggregates]
    return {name: item for (name, item), text in both if _form(name, item, text) is None}


def transcript_text(transcript: Transcript) -> str:
    """The text of a file with this transcript alone; code in it is `!named`."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Also writes `!named x`."""

    Dumper.add_representer(_Named, _represent_named)
    query = transcript.query
    stream = tomllib.loads(stream_to_toml(query))["stream"]
    del stream["late"]  # the reader of transcripts routes late tuples by itself
    body: dict[str, Any] = {"name": transcript.name}
    body |= {mark: False for mark in ("shuffle", "split") if not getattr(transcript, mark)}
    body["steps"] = [_Steps(transcript).step(step) for step in transcript.steps]
    document = {
        "columns": transcript.schema.names,
        "types": {field.name: _type_text(field) for field in transcript.schema},
        "stream": stream,
        "windows": _forms(query.windows, windows_to_toml),
        "aggregates": _forms(query.aggregates, aggregates_to_toml),
        "transcripts": [body],
    }
    # Lists of plain values, such as input rows, are written in one line.
    form: dict[str, Any] = {"sort_keys": False, "default_flow_style": None, "allow_unicode": True}
    return str(yaml.dump(document, Dumper=Dumper, width=100, **form))


def _represent_named(dumper: yaml.SafeDumper, name: _Named) -> yaml.Node:
    return dumper.represent_scalar("!named", str(name))


def _forms(items: Items, text: Any) -> dict[str, Any]:
    forms = {name: _form(name, item, text) for name, item in items}
    return {name: _Named(name) if form is None else form for name, form in forms.items()}


def _form(name: str, item: Any, text: Any) -> dict[str, Any] | None:
    """The table of one window or aggregate; None for code."""
    try:
        [tables] = tomllib.loads(text([(name, item)])).values()
    except QueryError:
        return None
    form: dict[str, Any] = tables[name]
    return form


def _type_text(field: pa.Field) -> str:
    kind = field.type
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}, {kind.tz}]" if kind.tz else f"timestamp[{kind.unit}]"
    text = "int64" if pa.types.is_null(kind) else str(kind).partition("[")[0]
    try:
        pa.type_for_alias(text)
    except ValueError:
        raise QueryError(
            f'a transcript holds numbers, texts, times, booleans and bytes: got {kind} in "{field.name}"; '
            "leave the column out of the query"
        ) from None
    return text


class _Steps:
    """The steps of a transcript as plain values."""

    def __init__(self, transcript: Transcript) -> None:
        query, self.schema = transcript.query, transcript.schema
        self.keys: tuple[str, ...] = query.keys
        self.timed = pa.types.is_timestamp(self.schema.field(query.time).type)
        self.several = len(query.windows) > 1 or any(step.action == "add" for step in transcript.steps)

    def step(self, step: Step) -> dict[str, Any]:
        value = step.value
        if step.action == "input":
            value = [[_plain(row.get(name)) for name in self.schema.names] for row in value]
        elif step.action == "watermark":
            value = self._time(value)
        elif step.action == "add":
            value = _forms(value.items(), windows_to_toml)
        made: dict[str, Any] = {step.action: value}
        if step.since is not None:
            made["since"] = step.since
        if step.expect:
            made["expect"] = [self._row(row) for row in step.expect]
        if step.late:
            made["expect_late"] = [
                {"window_name": name, **{column: _plain(value) for column, value in row.items()}}
                for name, row in step.late
            ]
        return made

    def _row(self, row: Row) -> dict[str, Any]:
        edges = [self._time(row.start), self._time(row.end)]
        if row.low is not None:
            edges += [_plain(row.low), _plain(row.high)]
        made: dict[str, Any] = dict(zip(self.keys, row.keys, strict=True))
        if self.several:
            made["window_name"] = row.window_name
        made["window"] = edges
        made |= {name: _plain(value) for name, value in row.aggregates.items()}
        usual = {"kind": "final", "revision": 0, "ordinal": 0}
        return made | {name: getattr(row, name) for name in usual if getattr(row, name) != usual[name]}

    def _time(self, value: int) -> str | int:
        return format_instant(Micros(value)) if self.timed else int(value)


def _plain(value: Any) -> Any:
    """A value as YAML has it; a time as an ISO text."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, dt.datetime):
        if getattr(value, "nanosecond", 0):
            raise QueryError(f"a transcript holds times in whole microseconds: got {value}; round it")
        return value.isoformat()
    if isinstance(value, dt.date):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise QueryError(f"a transcript cannot hold {value_text(value)}; leave it out of the query")
