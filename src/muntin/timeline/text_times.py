"""Times that are texts: reading them, and advice on the code that reads the texts of a user."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import value_text

__all__ = ["read_times", "shown_text", "text_advice", "unread_rows"]

_FORMATS = [
    f"{date}{clock}"
    for date in ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%Y/%m/%d", "%m/%d/%y")
    for clock in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
]
"""The formats besides ISO that are tried for advice; of two that fit, the first."""


def read_times(texts: pa.Array, form: str | None = None) -> pa.Array:
    """The texts as timestamps in microseconds, in ISO format or in that of `strptime`; unreadable ones null.

    Times with a zone are in UTC.

    >>> read_times(pa.array(["2024-01-31 12:00", "soon"])).to_pylist()
    [datetime.datetime(2024, 1, 31, 12, 0), None]
    >>> read_times(pa.array(["01/31/2024"]), "%m/%d/%Y").to_pylist()
    [datetime.datetime(2024, 1, 31, 0, 0)]
    """
    if form is not None:
        return pc.strptime(texts, format=form, unit="us", error_is_null=True)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    values = [_iso(text) for text in texts.to_pylist()]
    zone = "UTC" if any(value is not None and value.tzinfo is not None for value in values) else None
    naive = [value if value is None or (value.tzinfo is None) == (zone is None) else None for value in values]
    return pa.array(naive, pa.timestamp("us", zone))


def unread_rows(texts: pa.Array, times: pa.Array) -> list[int]:
    """The rows of texts that are no times."""
    rows: list[int] = pc.indices_nonzero(pc.and_(pc.is_null(times), pc.is_valid(texts))).to_pylist()
    return rows


def text_advice(texts: pa.Array) -> tuple[int | None, str]:
    """The first row that is no time, if most are, and the code that makes times of the texts.

    >>> text_advice(pa.array(["01/31/2024", "02/01/2024"]))
    (None, 'pc.strptime(column, format="%m/%d/%Y", unit="us")')
    >>> text_advice(pa.array(["2024-01-31", "n/a"]))
    (1, 'pc.cast(column, pa.timestamp("us"))')
    """
    forms: Sequence[str | None] = [None, *_FORMATS]
    unread = {form: unread_rows(texts, read_times(texts, form)) for form in forms}
    best = min(forms, key=lambda form: len(unread[form]))
    if len(unread[best]) == len(texts) - texts.null_count:
        return 0, 'pc.strptime(column, format="...", unit="us")'
    times = read_times(texts, best)
    row = unread[best][0] if unread[best] else None
    if best is not None:
        return row, f'pc.strptime(column, format="{best}", unit="us")'
    zone = f', "{times.type.tz}"' if times.type.tz else ""
    return row, f'pc.cast(column, pa.timestamp("us"{zone}))'


def shown_text(texts: pa.Array) -> str:
    """The first of the texts, for a message."""
    first = next((text for text in texts.to_pylist() if text is not None), None)
    return f"texts like {value_text(first, 80)}"


def _iso(text: str | None) -> dt.datetime | None:
    try:
        return None if text is None else dt.datetime.fromisoformat(text)
    except ValueError:
        return None
