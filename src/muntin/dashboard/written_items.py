"""Windows and aggregates that are written on the page, in the language of query files; never evaluated."""

from __future__ import annotations

import inspect
from typing import Any

import muntin.aggregates as aggregates_package
import muntin.windows as windows_package
from muntin.dsl import Query
from muntin.errors import QueryError
from muntin.query.files import load_query, load_windows, read_toml

__all__ = ["read_item", "templates"]

MOST_CHARACTERS = 2_000
SAMPLES = {
    "length": '"30 minutes"', "every": '"10 minutes"', "step": '"15 minutes"', "gap": '"15 minutes"',
    "start": '"2013-01-01T00:00:00"', "unit": '"day"', "n": "20", "predicate": '"COLUMN > 30"', "by": "10",
    "limit": "1000", "aggregate": '{ function = "count" }', "q": "0.5", "k": "3", "columns": '["COLUMN"]',
}  # fmt: skip
"""A value for each argument that has no default; the others name a column."""
UNITS = {"length": "30", "every": "10", "step": "15", "gap": "15", "start": "0"}
"""Lengths where the time column has integers."""


def read_item(kind: str, name: str, text: str) -> Any:
    r"""The window or the aggregate of a text, or a QueryError that says what is wrong with it.

    >>> read_item("window", "half", 'type = "tumbling"\nlength = "30 minutes"').describe()
    'tumbling 30 minutes'
    >>> read_item("window", "half", 'type = "tumbling"\nlenght = "30 minutes"')
    Traceback (most recent call last):
    muntin.errors.QueryError: the page, [windows.half]: unknown key "lenght"; it takes length, ...
    """
    if kind not in ("window", "aggregate"):
        raise QueryError(f'the page adds a "window" or an "aggregate": got "{kind[:60]}"')
    if not name.strip():
        raise QueryError(f"the {kind} needs a name, which its results have")
    if len(text) > MOST_CHARACTERS or len(name) > 100:
        raise QueryError(f"a {kind} has at most {MOST_CHARACTERS:,} characters: got {len(text):,}")
    document = read_toml(text, "the page")
    if kind == "window":
        return load_windows({"windows": {name: document}}, "the page")[name]
    # An aggregate is checked with a query around it.
    whole = {
        "stream": {"time": "time"},
        "windows": {"some": {"type": "count", "n": 1}},
        "aggregates": {name: document},
    }
    return load_query(whole, "the page", Query).aggregates[0][1]


def templates(column: str, timed: bool = True) -> dict[str, dict[str, str]]:
    """The text that begins a window of each type, and an aggregate of each function, over this column.

    >>> print(templates("delay")["window"]["sliding"])
    type = "sliding"
    length = "30 minutes"
    every = "10 minutes"
    """
    samples = SAMPLES if timed else SAMPLES | UNITS
    return {
        "window": _of_package(windows_package, "type", samples, column),
        "aggregate": _of_package(aggregates_package, "function", samples, column),
    }


def _of_package(package: Any, kind: str, samples: dict[str, str], column: str) -> dict[str, str]:
    texts = {}
    for name in sorted(package.__all__):
        constructor = getattr(package, name)
        if not name.islower() or not constructor.__module__.startswith(package.__name__):
            continue
        parameters = inspect.signature(constructor).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        if not any("Callable" in str(p.annotation) for p in needed):
            values = [(p.name, samples.get(p.name, '"COLUMN"').replace("COLUMN", column)) for p in needed]
            lines = [f'{kind} = "{name}"', *(f"{key} = {value}" for key, value in values)]
            texts[name] = "\n".join(lines)
    return texts
