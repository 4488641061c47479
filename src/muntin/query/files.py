"""Reading and writing of queries as TOML files.

No code here depends on a particular window or aggregate: `type` and `function` name a
constructor of `muntin.windows` or `muntin.aggregates`, and the other keys are its
arguments, so a new one needs no change here. A computed column is a text in the
small expression language under the key `expression` (or `by_expression` for the
argument `by`), where a plain one is a name under `column` (or `by`).
"""

from __future__ import annotations

import datetime as dt
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import ModuleType
from typing import Any, TypeVar

import muntin.aggregates as aggregates_package
import muntin.windows as windows_package
from muntin import foreign_names
from muntin.aggregates.base import Aggregate
from muntin.errors import QueryError, nearest, value_text
from muntin.expressions import Expr, parse
from muntin.query.forms import POLICIES, definition, limits, policy_arguments
from muntin.query.policies import EachBatch, Every, OnChange, OnClose, each_batch, every, on_change, on_close
from muntin.query.spec import QuerySpec, check_over
from muntin.timeline import Micros, format_span
from muntin.windows.base import Window

Q = TypeVar("Q", bound=QuerySpec)

_TABLES = ("stream", "windows", "aggregates", "input")
_STREAM = ("time", "key", *POLICIES)
_EMIT = ("on_close", "on_change")
_POLICIES = foreign_names.POLICIES | {"key": foreign_names.POLICIES['.by("shop")']}
_DEEP_KEY = re.compile(r"^[ \t\[{]*(?:[A-Za-z0-9_-]+[ \t]*\.[ \t]*){100}", re.MULTILINE)
"""A dotted key of more than 100 names: `tomllib` takes time that grows with their square."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def loads(text: str, source: str, kind: type[Q]) -> Q:
    """The query in the text of a TOML file, as an object of `kind`; errors call the text `source`."""
    return load_query(read_toml(text, source), source, kind)


def load_query(document: dict[str, Any], source: str, kind: type[Q]) -> Q:
    """The query in the tables of a document, as an object of `kind`; errors call the document `source`."""
    reader = _Reader(source)
    query = reader.query(document, kind)
    reader.called("aggregates", lambda: check_over(query))
    return query


def load_state_query(text: str, source: str) -> QuerySpec:
    """The query that a state holds, some of whose windows may have been removed since it was written."""
    return _Reader(source).query(read_toml(text, source), QuerySpec)


def read_toml(text: str, source: str) -> dict[str, Any]:
    """The tables of a text; errors call it `source`."""
    import tomllib  # here, as most programs write their queries in Python

    too_deep = QueryError(f"{source} must not be so deeply nested: write lists and tables side by side")
    if _DEEP_KEY.search(text):
        raise too_deep
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QueryError(f"{source} is not valid TOML: {error}") from None
    except RecursionError:
        raise too_deep from None
    except ValueError:  # Python reads no more than 4,300 digits
        raise QueryError(
            f"integers in {source} must fit into 64 bits: got one of thousands of digits"
        ) from None


def load_windows(document: dict[str, Any], source: str) -> dict[str, Window]:
    """The windows in the table `windows` of a document; errors call it `source`."""
    return _Reader(source).windows(document)


def load_aggregates(document: dict[str, Any], source: str) -> dict[str, Aggregate]:
    """The aggregates in the table `aggregates` of a document; errors call it `source`."""
    return _Reader(source).aggregates(document)


class _Reader:
    """Builds a query from the tables of one file."""

    def __init__(self, source: str) -> None:
        self.source = source

    def query(self, document: dict[str, Any], kind: type[Q]) -> Q:
        self._known(document, _TABLES, "", "table")
        stream = self._table(document, "stream")
        windows = self.windows(document)
        aggregates = self.aggregates(document)
        policies, keys = self._policies(stream), self._keys(stream)
        query: Q = self.called(
            "stream",
            lambda: kind(tuple(windows.items()), tuple(aggregates.items()), keys).on(**policies).validated(),
        )
        return query

    def aggregates(self, document: dict[str, Any]) -> dict[str, Aggregate]:
        return {
            name: self._aggregate(table, f"aggregates.{name}")
            for name, table in self._table(document, "aggregates").items()
        }

    def _aggregate(self, table: object, where: str) -> Any:
        """An aggregate of the query, which may have the key `over`."""
        if not isinstance(table, dict) or "over" not in table:
            return self._item(table, "function", aggregates_package, where)
        over = table["over"]
        if not isinstance(over, list):
            raise self._refused(
                where, f'over must be a list of names of windows like ["day"]: got {value_text(over)}'
            )
        rest = {key: value for key, value in table.items() if key != "over"}
        aggregate = self._item(rest, "function", aggregates_package, where)
        return self.called(where, lambda: aggregate.over(*over))

    def windows(self, document: dict[str, Any]) -> dict[str, Window]:
        return {
            name: self._item(table, "type", windows_package, f"windows.{name}")
            for name, table in self._table(document, "windows").items()
        }

    def _policies(self, stream: dict[str, Any]) -> dict[str, Any]:
        self._known(stream, _STREAM, "stream", "key")
        arguments = {name: stream[name] for name in ("time", *POLICIES) if name in stream}
        arguments.setdefault("time", "")
        if "emit" in arguments:
            arguments["emit"] = self._emit(arguments["emit"])
        if "early" in arguments:
            arguments["early"] = self._early(arguments["early"])
        return arguments

    def _keys(self, stream: dict[str, Any]) -> tuple[str, ...]:
        key = stream.get("key", [])
        names = [key] if isinstance(key, str) else key
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            rule = "key must be the name of a column or a list of names"
            raise self._refused("stream", f'{rule}: got {value_text(key)}; for example key = "user"')
        return tuple(names)

    def _emit(self, value: Any) -> OnClose | OnChange:
        if not isinstance(value, str) or value not in _EMIT:
            rule = f'emit must be "on_close" or "on_change": got {value_text(value)}'
            raise self._refused("stream", f"{rule}.{nearest(value, _EMIT)}")
        return on_change() if value == "on_change" else on_close()

    def _early(self, value: Any) -> Every | EachBatch:
        if value == "each_batch":
            return each_batch()
        try:
            return every(value)
        except QueryError as error:
            rule = 'early must be "each_batch" or a duration like "10 seconds"'
            hint = nearest(value, ["each_batch"])
            raise self._refused("stream", f"{rule}: got {value_text(value)}.{hint}") from error

    def _item(self, table: object, kind: str, package: ModuleType, where: str) -> Any:
        if not isinstance(table, dict):
            raise self._refused(where, f"must be a table with the key {kind}: got {value_text(table)}")
        constructors = _constructors(package)
        name = table.get(kind)
        if not isinstance(name, str) or name not in constructors:
            problem = "is missing" if name is None else f"{name!r} is not known"
            choice = ", ".join(sorted(constructors))
            foreign = foreign_names.WINDOWS if kind == "type" else foreign_names.AGGREGATES
            hint = foreign_names.hint(name, constructors, foreign)
            raise self._refused(where, f"{kind} {problem}; choose one of {choice}.{hint}")
        arguments = {key: value for key, value in table.items() if key != kind}
        return self._construct(name, constructors[name], arguments, where)

    def _construct(
        self, name: str, constructor: Callable[..., Any], given: dict[str, Any], where: str
    ) -> Any:
        parameters = inspect.signature(constructor).parameters
        if any("Callable" in str(parameter.annotation) for parameter in parameters.values()):
            raise self._refused(
                where, f"{name} takes a Python function, which a file cannot hold; write this query in Python"
            )
        arguments: dict[str, Any] = {}
        for key, value in given.items():
            target, argument = self._argument(key, value, parameters, where)
            if target in arguments:
                raise self._refused(where, f'"{target}" is given twice, as a column and as an expression')
            arguments[target] = argument
        for key, parameter in parameters.items():
            needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
            if needed and key not in arguments:
                raise self._refused(where, f'{name} needs the key "{key}"')
        return self.called(where, lambda: constructor(**arguments))

    def _argument(
        self, key: str, value: object, parameters: Mapping[str, object], where: str
    ) -> tuple[str, Any]:
        """The parameter that a key names, and its value."""
        if key in parameters:
            if isinstance(value, dict):
                return key, self._item(value, "function", aggregates_package, f"{where}.{key}")
            return key, value
        target = _expression_target(key, parameters)
        if target is None:
            known = ", ".join(parameters) or "none"
            hint = foreign_names.hint(key, parameters, foreign_names.ARGUMENTS)
            raise self._refused(where, f'unknown key "{key}"; it takes {known}.{hint}')
        if not isinstance(value, str):
            raise self._refused(where, f'{key} must be a text like "price * volume": got {value_text(value)}')
        return target, self.called(where, lambda: parse(value))

    def _table(self, document: dict[str, Any], name: str) -> dict[str, Any]:
        table = document.get(name)
        if not isinstance(table, dict) or not table:
            raise self._refused(name, "must be a table, and must not be empty")
        return table

    def _known(self, table: Mapping[str, object], names: tuple[str, ...], where: str, what: str) -> None:
        for name in table:
            if name not in names:
                hint = foreign_names.hint(name, names, _POLICIES)
                raise self._refused(where, f'unknown {what} "{name}"; use {", ".join(names)}.{hint}')

    def called(self, where: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (TypeError, ValueError) as error:  # QueryErrors are ValueErrors
            raise self._refused(where, str(error)) from error

    def _refused(self, where: str, why: str) -> QueryError:
        return QueryError(f"{self.source}{f', [{where}]' if where else ''}: {why}")


def to_toml(query: QuerySpec) -> str:
    """The text of a file that `loads` reads back as an equal query.

    Raises QueryError, naming the window or aggregate, for a value that a file
    cannot express: a Python function, or an Arrow expression beyond the small language.
    """
    query.validated()
    return "\n".join(
        [stream_to_toml(query), windows_to_toml(query.windows), aggregates_to_toml(query.aggregates)]
    )


def stream_to_toml(query: QuerySpec) -> str:
    """The table of the time column, the keys and the policies."""
    stream: dict[str, object] = {"time": query.time}
    if query.keys:
        stream["key"] = list(query.keys)
    for name, value in policy_arguments(query).items():
        if isinstance(value, Every):
            value = value.period
        if isinstance(value, OnChange):
            value = "on_change"
        stream[name] = "each_batch" if isinstance(value, EachBatch) else value
    return _table_text("stream", stream)


def windows_to_toml(windows: Iterable[tuple[str, Window]]) -> str:
    """The tables of these windows, as a query file has them; a QueryError where a file cannot hold one."""
    return _tables("type", "windows", windows)


def aggregates_to_toml(aggregates: Iterable[tuple[str, Any]]) -> str:
    """The tables of these aggregates; a QueryError where a file cannot hold one."""
    return _tables("function", "aggregates", aggregates)


def _tables(kind: str, what: str, items: Iterable[tuple[str, Any]]) -> str:
    return "\n".join(
        _table_text(f"{what}.{_key(name)}", _item_table(kind, item, f'{what} "{name}"'))
        for name, item in items
    )


def _item_table(kind: str, item: Any, where: str) -> dict[str, object]:
    try:
        constructor, parameters = definition(item)
        table = {kind: constructor, **parameters, "over": limits(item)}
        _table_text("", table)  # refuses here, where the name is known
    except QueryError as error:
        raise QueryError(f"{where}: {error}") from error
    return table


def _table_text(name: str, table: Mapping[str, object]) -> str:
    lines = [f"{_key(key)} = {toml_value(value)}\n" for key, value in table.items() if value is not None]
    return f"[{name}]\n{''.join(lines)}"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def toml_value(value: object) -> str:
    """A value as a TOML file has it; a QueryError for one that a file cannot hold."""
    match value:
        case bool():
            return "true" if value else "false"
        case Micros():
            return toml_value(format_span(value))
        case int():
            return str(int(value))
        case float():
            return repr(float(value))
        case Decimal() if Decimal(float(value)) == value:
            return repr(float(value))
        case str():
            # JSON's strings are TOML's, but for DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Expr():
            return toml_value(value.to_text())
        case dt.date():  # a datetime is one, too
            return value.isoformat()
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
    if callable(value):
        name = getattr(value, "__qualname__", repr(value))
        raise QueryError(f"a file cannot hold the Python function {name}; keep this query in Python")
    if hasattr(value, "parameters"):
        constructor, parameters = definition(value)
        table = {"function": constructor, **parameters}
        return f"{{ {', '.join(f'{_key(k)} = {toml_value(v)}' for k, v in table.items() if v is not None)} }}"
    raise QueryError(f"a file cannot hold {value!r}; keep this query in Python")


def _constructors(package: ModuleType) -> dict[str, Callable[..., Any]]:
    # Constructors are written small and live in the package, which also shows base classes for
    # users' own (written large) and other people's functions, such as Arrow's `col`.
    members = {name: getattr(package, name) for name in package.__all__ if name.islower()}
    return {name: item for name, item in members.items() if item.__module__.startswith(package.__name__)}


def _expression_target(key: str, parameters: Iterable[str]) -> str | None:
    """The parameter that takes the expression under `key`."""
    names = list(parameters)
    if key == "expression":
        return "column" if "column" in names else next(iter(names), None)
    target = key.removesuffix("_expression")
    return target if target != key and target in names else None
