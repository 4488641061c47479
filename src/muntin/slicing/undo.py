"""A step happens as a whole or not at all: what it changed before an error is put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import repeat
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from muntin.errors import PlacedError
from muntin.slicing.blaming import name_place

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator

_LISTED = frozenset({list, dict})
_WITH_ARRAYS = frozenset({list, dict, np.ndarray})
_OF_QUERY = ("late", "inputs")
_read_query = attrgetter(*_OF_QUERY)

Saved = list[tuple[Any, Iterable[str], Iterable[Any]]]


class whole_or_nothing:  # noqa: N801  # used as a function, in `with`
    """Put the operator back to what it was if the block fails: in the user's code, by an overflow.

    Costs no more than a few dozen references, since arrays are replaced, not written to. Lists and
    dictionaries that a class changes in place are named in its IN_PLACE, and copied; classes with slots
    have none. Of arrays only the
    positions of kept tuples are written to; they are copied where the step goes on to slice tuples
    (`sliced`), which looks at all of them anyway. Inside such a block another one does nothing.
    """

    __slots__ = ("operator", "saved", "sliced")

    def __init__(self, operator: SlicingOperator, sliced: bool = False) -> None:
        self.operator = operator
        self.sliced = sliced
        self.saved: Saved | None = None

    def __enter__(self) -> None:
        if not self.operator.in_step:
            self.saved = _save(self.operator, self.sliced)
            self.operator.in_step = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.saved is None:  # the step around it puts everything back
            return
        try:
            if error is not None:
                self._undo(error, self.saved)
        finally:
            self.operator.in_step = False

    def _undo(self, error: BaseException, saved: Saved) -> None:
        operator = self.operator
        if isinstance(error, PlacedError):
            name_place(error, operator)
        for part, names, values in saved:
            _put_back(part, names, values)
        if operator.binding is not None:
            operator.windows.store.reset()  # it followed slices that are not there any more


def _save(operator: SlicingOperator, sliced: bool) -> Saved:
    saved: Saved = []
    for part in parts_of(operator):
        names, read = _slots(part.__class__)
        if read is not None:
            saved.append((part, names, read(part)))
            continue
        found = part.__dict__.copy()
        for name in part.IN_PLACE:
            found[name] = found[name].copy()
        saved.append((part, found, found.values()))
    if operator.binding is not None and operator.slices.kept is not None:
        kept = operator.slices.kept.tuples
        copied = _WITH_ARRAYS if sliced else _LISTED
        saved += [_contents(part, copied) for part in (kept, kept.committed, kept.sliced)]
    queries = operator.live.queries
    # One of the three has no end.
    saved += zip(queries, repeat(_OF_QUERY), map(_read_query, queries))
    return saved


def parts_of(operator: SlicingOperator) -> list[Any]:
    """What a step may change, but for the kept tuples and the queries."""
    parts: list[Any] = [operator, operator.metrics, operator.arrivals]
    if operator.spec.keys:  # without columns there is one key for ever
        parts.append(operator.keys)
    if operator.binding is not None:
        slices, windows = operator.slices, operator.windows
        parts += [slices, slices.table, windows, *windows.registries.values(), *windows.extents.values()]
        if slices.kept is not None:
            parts.append(slices.kept)
    return parts


def _contents(part: Any, copied: frozenset[type]) -> tuple[Any, Iterable[str], Iterable[Any]]:
    """The slots of a part, any of which may be changed in place: their names, and copies."""
    names, read = _slots(part.__class__)
    assert read is not None
    return part, names, [_copied(value, copied) for value in read(part)]


@cache
def _slots(kind: type) -> tuple[Any, Callable[[Any], tuple[Any, ...]] | None]:
    """The names of the slots of a class, and what reads them all at once; None where it has none."""
    names = getattr(kind, "__slots__", None)
    assert names is None or len(names) > 1, "of a single name, attrgetter gives no tuple"
    return ((), None) if names is None else (names, attrgetter(*names))


def _copied(value: Any, copied: frozenset[type]) -> Any:
    if type(value) is dict:
        return {name: _copied(item, copied) for name, item in value.items()}
    return value.copy() if type(value) in copied else value


def _put_back(part: Any, names: Iterable[str], values: Iterable[Any]) -> None:
    if not hasattr(part, "__slots__"):
        for name in set(vars(part)) - set(names):
            delattr(part, name)
    for name, value in zip(names, values, strict=True):
        setattr(part, name, value)
