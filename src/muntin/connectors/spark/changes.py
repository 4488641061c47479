"""Changes to the queries of a running stream, as TOML texts: windows that come, names of those that go.

remove = ["minute"]

[windows.half]
type = "tumbling"
length = "30 seconds"
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import pyarrow as pa

from muntin.errors import MuntinError, QueryError
from muntin.query import QuerySpec
from muntin.query.files import load_windows, read_toml, toml_value, windows_to_toml
from muntin.slicing.changing import change_queries
from muntin.slicing.operator import SlicingOperator
from muntin.windows.base import Window

__all__ = ["Change", "applied", "apply_texts", "names_of", "read_change"]

LOG = logging.getLogger("muntin")


@dataclass(frozen=True)
class Change:
    """Windows to serve from now on, and names of windows that are no longer served."""

    add: Mapping[str, Window] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def to_toml(self) -> str:
        """The text that `read_change` reads back.

        >>> from muntin.windows import tumbling
        >>> print(Change({"half": tumbling("30 seconds")}, ("minute",)).to_toml())
        remove = ["minute"]
        [windows.half]
        type = "tumbling"
        length = "30 seconds"
        <BLANKLINE>
        """
        return f"remove = {toml_value(list(self.remove))}\n{windows_to_toml(self.add.items())}"


def read_change(text: str, source: str) -> Change:
    """The change in a text; a QueryError that calls it `source` says what is wrong with it."""
    document = read_toml(text, source)
    others = sorted(set(document) - {"windows", "remove"})
    if others:
        raise QueryError(f'{source}: unknown key "{others[0]}"; a change has [windows.NAME] and remove = []')
    remove = document.get("remove", [])
    if not isinstance(remove, list) or not all(isinstance(name, str) for name in remove):
        raise QueryError(f'{source}: remove must be a list of names like ["minute"]: got {remove!r}')
    add = load_windows(document, source) if "windows" in document else {}
    return Change(add, tuple(remove))


def names_of(texts: Iterable[str]) -> list[str]:
    """The names of these files."""
    return [name for name, _ in _named(texts)]


def _named(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Names of files and what they hold, oldest first; each text has the name in its first line.

    Spark tells names as parts of addresses, with a blank as %20.
    """
    named = (text.partition("\n") for text in texts)
    return sorted((unquote(name), body) for name, _, body in named)


def applied(query: QuerySpec, change: Change) -> QuerySpec:
    """The query with the windows after a change; a QueryError where the change makes no sense."""
    served = dict(query.windows)
    for name in change.remove:
        if name not in served:
            raise QueryError(f'there is no query "{name}" to remove; there are {", ".join(served)}')
        del served[name]
    for name in change.add:
        if name in served:
            raise QueryError(f'there is a query "{name}" already; choose another name, or remove it first')
    served |= change.add
    if not served:
        raise QueryError("the last query cannot be removed; stop the stream instead")
    return replace(query, windows=tuple(served.items()))


def apply_texts(operator: SlicingOperator, texts: Iterable[str], after: int, outcome: pa.Schema) -> int:
    """Apply the changes of some files, oldest first; returns how many were refused.

    A change that is refused changes nothing and stops nothing: the stream would meet it again after
    every restart. All key groups refuse the same ones. `outcome` are the columns of the results, which
    are fixed.
    """
    refused = 0
    for name, text in _named(texts):
        try:
            change = read_change(text, name)
            _check_edges(change, outcome)
            change_queries(operator, change.add, change.remove, after)
        except MuntinError as error:
            LOG.warning("the change %s was refused: %s", name, error)
            refused += 1
    return refused


def _check_edges(change: Change, outcome: pa.Schema) -> None:
    edges = outcome.field("window").type.names
    for name, window in change.add.items():
        if window.measure is not None and f"start_{window.measure}" not in edges:
            raise QueryError(
                f'the results have no column for the edges of "{name}" on {window.measure}; a window on a '
                "measure can be added where the query had one on it from the start"
            )
