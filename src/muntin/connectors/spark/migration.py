"""A checkpoint and a query that has changed since: windows may differ, the rest must be the same."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from muntin.errors import MuntinError, QueryError, SnapshotError
from muntin.query import FREE_POLICIES, QuerySpec
from muntin.query.files import load_windows, windows_to_toml
from muntin.query.forms import fingerprint_form
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.served import ServedWindows
from muntin.slicing.snapshots.snapshot import current_spec
from muntin.slicing.window_changes import Change
from muntin.timeline import NEG_INF
from muntin.windows.base import Window

__all__ = ["asked_for", "migrate", "served_by", "windows_of"]

Form = dict[str, Any]

_served: WeakKeyDictionary[ServedWindows, list[list[Any]]] = WeakKeyDictionary()
"""The forms of windows, made once for each `ServedWindows`."""


def asked_for(query: QuerySpec) -> Form:
    """The query of a program as plain values."""
    form = fingerprint_form(query)
    form["policies"] = {name: value for name, value in form["policies"].items() if name not in FREE_POLICIES}
    return form


def served_by(operator: SlicingOperator) -> list[list[Any]]:
    """The windows that are served now: name, form, and the text that makes it again if it has one."""
    windows = operator.served
    if windows not in _served:
        spec = current_spec(operator)
        forms = dict(fingerprint_form(spec)["windows"])
        _served[windows] = [[name, forms[name], _text(name, window)] for name, window in spec.windows]
    return _served[windows]


def _text(name: str, window: Window) -> str | None:
    try:
        return windows_to_toml([(name, window)])
    except QueryError:  # a Python function
        return None


def windows_of(asked: Form, served: list[list[Any]], query: QuerySpec, now: Form) -> QuerySpec:
    """The query with the windows that the checkpoint serves; an error where more than windows differs.

    `asked` is the query of the checkpoint as plain values, `now` that of the program.
    """
    changes = []
    for part in ("time", "keys", "policies", "aggregates"):
        changes += _changes(part, asked, now)
    before, after = asked.get("columns", {}), now.get("columns", {})
    changes += [
        f"column {name} was {before[name]} and is {after[name]}"
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]
    if changes:
        raise SnapshotError(
            f"the checkpoint is of another query: {'; '.join(changes)}. Only windows may change; "
            "give this query a checkpoint of its own"
        )
    known, forms = dict(query.windows), dict(now["windows"])
    windows: list[tuple[str, Window]] = []
    for name, form, text in served:
        if forms.get(name) == form:
            windows.append((name, known[name]))
        elif text is None:
            raise SnapshotError(
                f'the checkpoint serves the window "{name}" ({_shown(form)}), which is written in Python and '
                "is not in this query any more; leave it in, or give this query a checkpoint of its own"
            )
        else:
            windows += load_windows(tomllib.loads(text), "the checkpoint").items()
    return replace(query, windows=tuple(windows))


def migrate(operator: SlicingOperator, asked: Form, query: QuerySpec, form: Form) -> None:
    """Add and remove the windows by which the query differs from the one of the checkpoint."""
    before, now = dict(asked["windows"]), dict(form["windows"])
    if before == now:
        return
    served = {q.name for q in operator.served.all}
    remove = [name for name in before if name in served and now.get(name) != before[name]]
    add = {name: window for name, window in query.windows if before.get(name) != now[name]}
    try:
        after = NEG_INF if operator.plan is None else operator.state.newest
        operator.change(Change(add, remove=tuple(remove)), after, columns_stay=True)
    except MuntinError as error:
        changes = _changes("windows", asked, form)
        raise SnapshotError(
            f"the checkpoint is of another query ({'; '.join(changes)}), and its slices do not allow the "
            f"change: {error} Give this query a checkpoint of its own"
        ) from error


def _changes(part: str, before: Form, now: Form) -> list[str]:
    """The differences in a part of the query, in words."""
    old, new = before[part], now[part]
    if old == new:
        return []
    if part in ("time", "keys"):
        return [f"{part} {_shown(old)} became {_shown(new)}"]
    olds, news = dict(old), dict(new)
    what = {"policies": "", "aggregates": "aggregate ", "windows": "window "}[part]
    changes = [f"{what}{name} ({_shown(olds[name])}) is gone" for name in olds if name not in news]
    changes += [f"{what}{name} ({_shown(news[name])}) is new" for name in news if name not in olds]
    both = [name for name in olds if name in news and olds[name] != news[name]]
    changes += [f"{what}{name} was {_shown(olds[name])} and is {_shown(news[name])}" for name in both]
    return changes or [f"the order of the {part} has changed"]


def _shown(form: Any) -> str:
    if not isinstance(form, dict) or "constructor" not in form:
        return json.dumps(form)
    given = {name: value for name, value in form.items() if name != "constructor" and value is not None}
    arguments = ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
    return f"{form['constructor']}({arguments})"
