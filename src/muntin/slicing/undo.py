"""A step happens as a whole or not at all: what it changed before an error is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from muntin.errors import PlacedError
from muntin.slicing.blaming import name_place

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator

_LISTED = frozenset({list, dict})
_WITH_ARRAYS = frozenset({list, dict, np.ndarray})

Saved = list[tuple[Any, dict[str, Any]]]


@contextmanager
def whole_or_nothing(operator: SlicingOperator, sliced: bool = False) -> Iterator[None]:
    """Put the operator back to what it was if the block fails: in the user's code, by an overflow.

    Costs no more than a few dozen references, since arrays are replaced, not written to. Only the
    positions of kept tuples are written in place; they are copied where the step goes on to slice
    tuples (`sliced`), which looks at all of them anyway.
    """
    if operator.in_step:  # the step around it puts everything back
        yield
        return
    saved = _save(operator, sliced)
    operator.in_step = True
    try:
        yield
    except BaseException as error:
        if isinstance(error, PlacedError):
            name_place(error, operator)
        for part, attributes in saved:
            _put_back(part, attributes)
        if operator.binding is not None:
            operator.windows.store.reset()  # it followed slices that are not there any more
        raise
    finally:
        operator.in_step = False


def _save(operator: SlicingOperator, sliced: bool) -> Saved:
    parts = [operator, operator.metrics, operator.arrivals, operator.keys]
    queries = [(q, {"late": q.late, "inputs": q.inputs}) for q in operator.live.queries]
    in_place: list[Any] = []
    if operator.binding is not None:
        slices, windows = operator.slices, operator.windows
        parts += [slices, slices.table, windows, *windows.registries.values(), *windows.extents.values()]
        if slices.kept is not None:
            kept = slices.kept.tuples
            parts.append(slices.kept)
            in_place = [kept, kept.committed, kept.sliced]
    return (
        queries
        + [(part, _attributes(part, False)) for part in parts]
        + [(part, _attributes(part, sliced)) for part in in_place]
    )


def _attributes(part: Any, arrays: bool) -> dict[str, Any]:
    slots = getattr(part, "__slots__", None)
    found = vars(part).copy() if slots is None else {name: getattr(part, name) for name in slots}
    copied = _WITH_ARRAYS if arrays else _LISTED
    for name, value in found.items():
        if type(value) in copied:
            found[name] = _copied(value, arrays)
    return found


def _copied(value: Any, arrays: bool) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item, arrays) for name, item in value.items()}
    copies = isinstance(value, list) or (arrays and isinstance(value, np.ndarray))
    return value.copy() if copies else value


def _put_back(part: Any, attributes: dict[str, Any]) -> None:
    if not hasattr(part, "__slots__"):
        for name in set(vars(part)) - set(attributes):
            delattr(part, name)
    for name, value in attributes.items():
        setattr(part, name, value)
