"""A step happens as a whole or not at all: what it changed before an error is put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
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

Saved = list[tuple[Any, Iterable[str], Iterable[Any]]]


class whole_or_nothing:  # noqa: N801  # used as a function, in `with`
    """Put the operator back to what it was if the block fails: in the user's code, by an overflow.

    Costs no more than a few dozen references, since arrays are replaced, not written to. Only the
    positions of kept tuples are written in place; they are copied where the step goes on to slice
    tuples (`sliced`), which looks at all of them anyway. Inside such a block another one does nothing.
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
    parts: list[Any] = [operator, operator.metrics, operator.arrivals]
    if operator.spec.keys:  # without columns there is one key for ever
        parts.append(operator.keys)
    in_place: list[Any] = []
    if operator.binding is not None:
        slices, windows = operator.slices, operator.windows
        parts += [slices, slices.table, windows, *windows.registries.values(), *windows.extents.values()]
        if slices.kept is not None:
            kept = slices.kept.tuples
            parts.append(slices.kept)
            in_place = [kept, kept.committed, kept.sliced]
    saved = [(part, *_attributes(part, _LISTED)) for part in parts]
    saved += [(part, *_attributes(part, _WITH_ARRAYS if sliced else _LISTED)) for part in in_place]
    saved += [(query, _OF_QUERY, (query.late, query.inputs)) for query in operator.live.queries]
    return saved


def _attributes(part: Any, copied: frozenset[type]) -> tuple[Iterable[str], Iterable[Any]]:
    """The names and values of all attributes; of those that are written in place copies."""
    names, read = _slots(part.__class__)
    if read is not None:
        values: Iterable[Any] = read(part)
    else:
        names = vars(part).copy()
        values = names.values()
    if not copied.isdisjoint(map(type, values)):
        values = [_copied(value, copied) if type(value) in copied else value for value in values]
    return names, values


@cache
def _slots(kind: type) -> tuple[Any, Callable[[Any], tuple[Any, ...]] | None]:
    """The names of the slots of a class, and what reads them all at once; None where it has none."""
    names = getattr(kind, "__slots__", None)
    if names is None:
        return (), None
    several = len(names) > 1  # of a single name it would give the value, not a tuple
    return names, attrgetter(*names) if several else lambda part: tuple(getattr(part, n) for n in names)


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
