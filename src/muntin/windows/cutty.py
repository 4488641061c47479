"""Deterministic windows of the user's own: a function discretizes the stream [cutty §3.2]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from muntin.expressions import Expr, as_expr
from muntin.windows.arguments import constructor
from muntin.windows.begins_and_ends import BeginsAndEnds
from muntin.windows.records import (
    Record,
    SeesRecords,
)
from muntin.windows.validation import fail


class ByFunctions(SeesRecords):
    """Windows that functions of the user find, which read the named columns."""

    __slots__ = ()

    columns: tuple[str, ...]

    def parameters(self) -> dict[str, object]:
        given = SeesRecords.parameters(self)
        return given | ({"columns": list(self.columns)} if self.columns else {})

    def inputs(self) -> tuple[Expr, ...]:
        return tuple(as_expr(name) for name in self.columns)


@dataclass(frozen=True, slots=True)
class Discretize(ByFunctions, BeginsAndEnds):
    """Deterministic windows: a function counts the windows that begin and end with each record.

    `function(record)` returns (begins, ends): the `ends` oldest open windows end
    before the record, then `begins` windows begin with it. Ends beyond the open
    windows have no effect. Windows of three tuples, every two, as in the paper:

    >>> from muntin.windows.tuple_driven import Tuples
    >>> window = Discretize(lambda r: (r.rank % 2 == 0, r.rank >= 3 and (r.rank - 3) % 2 == 0))
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 3, 4, 5, 6]), upto=9)
    >>> cuts.begin.tolist(), cuts.end.tolist()
    ([0, 2], [3, 5])
    """

    function: Callable[[Record], tuple[int, int]]
    columns: tuple[str, ...] = ()

    constructor: ClassVar[str] = "discretize"

    def __post_init__(self) -> None:
        require_callable(self.function, "function")
        self._settle(columns=column_names(self.columns))

    def describe(self) -> str:
        return f"discretize by {function_name(self.function)}"

    def observe(self, state: Any, record: Record) -> tuple[Any, int, int]:
        begins, ends = self.function(record)
        return state, begins, ends

    def _user_function(self) -> str:
        return function_name(self.function)


def function_name(function: Any) -> str:
    """What messages call a function of the user."""
    return str(getattr(function, "__qualname__", repr(function)))


def require_callable(value: object, name: str) -> None:
    """Refuse what is no function."""
    if not callable(value):
        raise fail(f"{name} must be a function", value, "pass the function itself, not its name")


def column_names(columns: Any) -> tuple[str, ...]:
    """One name or several."""
    names = (columns,) if isinstance(columns, str) else columns
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise fail("columns must be names of columns", columns, 'for example columns=["price"]')
    return tuple(names)


@constructor
def discretize(
    function: Callable[[Record], tuple[int, int]], *, columns: str | Sequence[str] = ()
) -> Discretize:
    """Windows that begin and end with records, as a function of the record counts: (begins, ends).

    `columns` names the columns that the function reads.

    >>> def turns(record):
    ...     return (1, 1) if record["turn"] else (0, 0)
    >>> discretize(turns, columns=["turn"]).describe()
    'discretize by turns'
    """
    return Discretize(function, columns)  # type: ignore[arg-type]  # __post_init__ reads names
