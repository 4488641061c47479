"""Spark columns in a query: each has a name, and Spark computes it before the query reads it."""

from __future__ import annotations

import re
from typing import Any

_SHOWN = re.compile(r"Column<'(.*)'>", re.DOTALL)
_ALIAS = re.compile(r".* AS `?([^`()]+)`?", re.DOTALL)


class ColumnName(str):
    """The name of a column, and the Spark column that computes it.

    Pickled without the Spark column: for the workers, Spark has computed it.
    """

    __slots__ = ("computed", "shown", "source")
    source: Any
    shown: str
    """How it is computed, as Spark shows it."""
    computed: bool
    """Whether it was given this name, instead of being a column of this name."""

    @classmethod
    def of(cls, name: str, shown: str, computed: bool, source: Any = None) -> ColumnName:
        """A name with these attributes."""
        column = cls(name)
        column.shown, column.computed, column.source = shown, computed, source
        return column

    def __reduce__(self) -> tuple[Any, tuple[str, str, bool]]:
        return ColumnName.of, (str(self), self.shown, self.computed)


def plain_name(value: Any) -> Any:
    """The name of a Spark column, as Spark shows it; anything else as it is."""
    kind = type(value)
    # By its name: Spark may not be installed, and is not needed to write a query.
    if kind.__name__ != "Column" or not kind.__module__.startswith("pyspark.sql"):
        return value
    shown = _SHOWN.fullmatch(str(value))
    text = shown.group(1) if shown else str(value)
    alias = _ALIAS.fullmatch(text)
    return ColumnName.of(alias.group(1) if alias else text, text, alias is not None, value)
