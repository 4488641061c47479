"""Columns of Spark in a query: known by a name, computed by Spark before the query reads them."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["ColumnName", "plain_name"]

_SHOWN = re.compile(r"Column<'(.*)'>", re.DOTALL)
_ALIAS = re.compile(r".* AS `?([^`()]+)`?", re.DOTALL)


class ColumnName(str):
    """The name of a column, and the Spark column that computes it.

    To the workers it goes as a text: the column is there by then.
    """

    __slots__ = ("computed", "source")
    source: Any
    computed: bool
    """Whether it was given this name, instead of being a column of this name."""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def plain_name(value: Any) -> Any:
    """The name of a Spark column, as Spark shows it; anything else as it is."""
    kind = type(value)
    # By its name: Spark may not be installed, and is not needed to write a query.
    if kind.__name__ != "Column" or not kind.__module__.startswith("pyspark.sql"):
        return value
    shown = _SHOWN.fullmatch(str(value))
    text = shown.group(1) if shown else str(value)
    alias = _ALIAS.fullmatch(text)
    name = ColumnName(alias.group(1) if alias else text)
    name.source, name.computed = value, alias is not None
    return name
