"""How inputs are read: the table `[input]` of a query file, and the options that replace it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from muntin.connectors.types import declared
from muntin.errors import QueryError, nearest, value_text

__all__ = ["UNITS", "InputSettings", "read_settings"]

UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True, slots=True)
class InputSettings:
    """What a file of tuples does not say about itself."""

    delimiter: str = ","
    time_format: str | None = None
    """As in `strptime`; without it times are in ISO format."""
    time_unit: str | None = None
    """What integers in the time column count since 1970."""
    watermark_lag: str | int | None = None
    in_order: bool = False
    types: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, pa.DataType]:
        """The declared types of columns."""
        return declared(self.types)


_KINDS: dict[str, tuple[type, ...]] = {
    "delimiter": (str,), "time_format": (str,), "time_unit": (str,), "watermark_lag": (str, int),
    "in_order": (bool,), "types": (dict,),
}  # fmt: skip


_WORDS: dict[tuple[type, ...], str] = {
    (str,): "a text", (str, int): "a duration or an integer", (bool,): "true or false", (dict,): "a table",
}  # fmt: skip


def read_settings(table: object, options: dict[str, Any]) -> InputSettings:
    """The settings of a table `[input]`, with the options that were given in place of its values.

    >>> read_settings({"delimiter": ";"}, {"time_unit": "ms"}).delimiter
    ';'
    """
    if not isinstance(table, dict):
        raise QueryError(f"[input] must be a table: got {value_text(table)}")
    known = [field.name for field in fields(InputSettings)]
    given = table | {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in known:
            hint = nearest(name, known)
            raise QueryError(f'[input]: unknown key "{name}"; use {", ".join(known)}.{hint}')
        if not isinstance(value, _KINDS[name]) or (isinstance(value, bool) and name != "in_order"):
            raise QueryError(f"[input]: {name} must be {_WORDS[_KINDS[name]]}: got {value_text(value)}")
    settings = replace(InputSettings(), **given)
    if len(settings.delimiter) != 1:
        raise QueryError(f"delimiter must be one character: got {value_text(settings.delimiter)}")
    if settings.time_unit not in (None, *UNITS):
        raise QueryError(f"time_unit must be {', '.join(UNITS)}: got {value_text(settings.time_unit)}")
    return settings
