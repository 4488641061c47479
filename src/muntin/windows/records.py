"""Tuples as the user's code sees them, its results as windows, and the errors that it causes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar, TypeVar

import numpy as np

from muntin.errors import MuntinError, UserCodeError, cause_text, value_text
from muntin.windows.base import Window
from muntin.windows.kernel_arguments import python_values
from muntin.windows.tuple_driven import Cuts, TupleDriven, Tuples

MOST_WINDOWS = 1_000_000
"""Bounds the windows that user code may give around one time or for one tuple, or keep open for a key."""

_T = TypeVar("_T")


class Record(Mapping[str, Any]):
    """One tuple: its columns by name, its time inside and its rank within the key.

    >>> record = Record({"price": 2.5}, time=1_000_000, rank=0)
    >>> record["price"], record.time, record.rank
    (2.5, 1000000, 0)
    """

    __slots__ = ("_values", "rank", "time")

    def __init__(self, values: Mapping[str, Any], time: int, rank: int) -> None:
        self._values = values
        self.time = time
        self.rank = rank

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Record({dict(self._values)!r}, time={self.time}, rank={self.rank})"


class SeesRecords(TupleDriven):
    """Base of windows for which user code looks at records."""

    __slots__ = ()

    repeats: ClassVar[bool] = True
    wants_records: ClassVar[bool] = True

    def initial_state(self) -> Any:
        """The state of a key before its first tuple."""
        return None

    def next_moment(self, state: Any) -> int | None:
        """The next time at which windows begin or end without a record; None if there is none.

        It must be after the last record and the last moment.
        """
        return None


def records_of(tuples: Tuples) -> Callable[[int, int], Record]:
    """A function of (row, first rank of the key) that gives the record; ranks count from the first."""
    times, ranks = tuples.time.tolist(), tuples.rank.tolist()
    given = tuples.records
    if given is None:
        columns = {expr.column or expr.text: python_values(column) for expr, column in tuples.columns.items()}
        given = lambda i: {name: values[i] for name, values in columns.items()}  # noqa: E731

    def record(i: int, base: int) -> Record:
        given_items = given(i)
        if isinstance(given_items, Record) and given_items.rank == ranks[i] - base:
            return given_items
        return Record(dict(given_items), times[i], ranks[i] - base)

    return record


def cuts_of_user_code(rows: list[tuple[int, ...]], opened: Iterable[tuple[int, int]] = ()) -> Cuts:
    """Cuts from rows (segment, begin, end, start, stop, complete_at) and begins left open, in any order."""
    pairs = {(row[0], rank) for row in rows for rank in row[1:3]} | set(opened)
    segment, begin, end, start, stop, complete_at = np.array(rows, np.int64).reshape(-1, 6).T.copy()
    edge_segment, edge_rank = np.array(sorted(pairs), np.int64).reshape(-1, 2).T.copy()
    return Cuts(segment, begin, end, start, stop, complete_at, None, None, edge_segment, edge_rank)


def guarded(window: Window, what: str, record: object, call: Callable[[], _T]) -> _T:
    """The result of the user's code; its error names the window, the function and the record."""
    try:
        return call()
    except MuntinError:
        raise
    except Exception as error:
        failure = wrong(window, f"{what} failed on {value_text(record, 400)}: {cause_text(error)}")
        failure.cure = "repair it, or remove the window"
        raise failure from error


def wrong(window: Window, problem: str) -> UserCodeError:
    """The error for user code that fails, or whose result makes no windows."""
    return UserCodeError(f"{window.describe()}: {problem}")


def skip_or_raise(tuples: Tuples, error: UserCodeError) -> None:
    """Collect an error of user code, so that its record is skipped; raise it where errors are not skipped."""
    if tuples.failed is None:
        raise error
    tuples.failed.append(error)


def whole(value: Any, window: Window, what: str, place: str) -> int:
    """An edge or a rank that user code returned; a float is refused, as its fraction would be lost."""
    try:
        return operator.index(value)
    except TypeError:
        cure = "use // instead of /, or int()"
        raise wrong(
            window, f"{what} must be an integer: got {value_text(value)} for {place}; {cure}"
        ) from None


def limited(given_items: Iterable[_T], window: Window, what: str, record: object) -> list[_T]:
    """The windows that user code gives for one tuple or time; an error beyond MOST_WINDOWS."""
    windows = list(islice(given_items, MOST_WINDOWS + 1))
    if len(windows) > MOST_WINDOWS:
        raise too_many(window, what, record)
    return windows


def too_many(window: Window, what: str, record: object) -> UserCodeError:
    """The error for a tuple or time with more than MOST_WINDOWS windows."""
    rule = f"{what} must give at most {MOST_WINDOWS:,} windows at a time"
    return wrong(window, f"{rule}: got more for {value_text(record)}; let fewer of them overlap")


def natural(value: Any, window: Window, what: str, record: object) -> int:
    """A number of windows or records that the user's code returned."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        got = f"got {value_text(value)} for {value_text(record, 400)}"
        raise wrong(window, f"{what} must be 0, 1, 2, ...: {got}")
    return number
