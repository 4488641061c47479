"""The few kinds of error that Muntin raises.

A message gives the rule, the value that broke it and the cure. Catch
`MuntinError` to catch them all; a `QueryError` and a `DataError` are also `ValueError`s, so that
code that knows nothing of Muntin still treats them as bad input.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ColumnError",
    "ConcurrentCallError",
    "DataError",
    "InterpretedWarning",
    "MissingFileError",
    "MuntinError",
    "QueryError",
    "RowError",
    "SnapshotError",
    "UnknownNameError",
    "UserCodeError",
    "cause_text",
    "nearest",
    "value_text",
]


class MuntinError(Exception):
    """Base of every error that Muntin raises on purpose."""


class QueryError(MuntinError, ValueError):
    """A query that cannot mean anything, whatever the data."""


class MissingFileError(QueryError, FileNotFoundError):
    """A query file that is not there; also a `FileNotFoundError`, as Python's own functions raise."""


class UnknownNameError(AttributeError, QueryError):
    """A name that a package or an object does not have; also an `AttributeError`, so that `hasattr` works."""


class DataError(MuntinError, ValueError):
    """Data that the query cannot take: a bad tuple, an unknown column, a wrong type, an overflow."""


class ColumnError(DataError):
    """An input that lacks a column, or has two of one name: the error of no single row."""


class RowError(DataError):
    """A DataError about one row of the input; the message names the row by its place in its batch."""

    def __init__(self, before: str, row: int, after: str = "") -> None:
        super().__init__(f"{before} in row {row}{after}")
        self.row = row
        self.without_row = f"{before}{after}"
        """The message for a caller that names the place itself."""


class SnapshotError(MuntinError):
    """A snapshot that is damaged, of another format version or of another query."""


class ConcurrentCallError(MuntinError, RuntimeError):
    """A call of an operator while another one is running: in a second thread, or inside a running call."""


class PlacedError(MuntinError):
    """An error about one of the rows that were being computed.

    Callers that catch it set the attributes that the code that raised it does not know.
    """

    row: int | None = None
    """The row that was being computed."""
    key: int | None = None
    """The id of the key."""
    window: tuple[int, int, int] | None = None
    """The number of the window in the query, and the edges of its instance in the unit inside."""
    time: int | None = None
    """The time of the tuple that it failed on, or of the first one of a slice, in the unit inside."""
    cure: str = ""
    """The remedy; the message ends with it, after the place."""


class UserCodeError(PlacedError):
    """A user's function failed; its exception is the `__cause__`."""

    part: int | None = None
    """The index of the call, or of the combined partial aggregate, that failed."""
    seq: int | None = None
    """The arrival number of the tuple that it failed on."""


class InterpretedWarning(UserWarning):
    """A user-defined aggregate over numbers that could not be compiled, and why."""


def cause_text(error: BaseException) -> str:
    """The type and the message of an exception, even if its `__str__` fails.

    >>> cause_text(KeyError("price"))
    "KeyError: 'price'"
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as other:  # noqa: BLE001  # whatever the user's class raises
        return f"{type(error).__name__} (its message cannot be shown: __str__ raises {type(other).__name__})"


def value_text(value: object, width: int = 200) -> str:
    """The `repr` of a value, shortened to a width, or a description where `repr` fails.

    >>> value_text("a" * 9, 8)
    "'aaaa..."
    """
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # whatever the user's class raises
        if isinstance(value, int):  # Python writes no more than 4,300 digits
            return f"an integer of {value.bit_length():,} bits"
        text = f"<{type(value).__qualname__}: __repr__ raises {type(error).__name__}>"
    return text if len(text) <= width else f"{text[: width - 3]}..."


def nearest(name: object, names: Iterable[object]) -> str:
    """A hint that names the candidate most like `name`; empty when none is like it, or it is no text.

    The hint starts with a space, so that it can be appended to a message.

    >>> nearest("amuont", ["amount", "shop"])
    ' Did you mean "amount"?'
    >>> nearest("zzz", ["amount", "shop"])
    ''
    """
    candidates = {str(candidate).casefold(): str(candidate) for candidate in names}
    given = name.casefold() if isinstance(name, str) else ""
    close = difflib.get_close_matches(given, candidates, n=1)
    return f' Did you mean "{candidates[close[0]]}"?' if close else ""
