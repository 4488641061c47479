"""The place of an error in a user's function: the time of the tuple, the key, and the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from muntin.errors import PlacedError, UserCodeError, value_text
from muntin.slicing.batch import Batch
from muntin.timeline import Micros, format_instant

if TYPE_CHECKING:
    from muntin.slicing.binding import Binding
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.slice_table import SliceTable
    from muntin.slicing.state import State


def note_key_of_tuple(error: UserCodeError, batch: Batch) -> None:
    """Note the key of the tuple that failed."""
    if error.seq is not None:
        error.key = int(batch.key[np.flatnonzero(batch.seq == error.seq)[0]])


def note_key_of_row(
    error: PlacedError,
    key_of: Callable[[int], int],
    window_of: Callable[[int], tuple[int, int, int]] | None = None,
) -> None:
    """Note the key of the row of partial aggregates that failed, and the window if the row is one."""
    if error.row is not None and error.key is None:
        error.key = int(key_of(error.row))
        error.window = None if window_of is None else window_of(error.row)


def note_slice(error: PlacedError, slices: SliceTable) -> None:
    """Note the key of the slice whose partial aggregates failed, and its first time."""
    if error.row is not None and error.key is None:
        error.key, error.time = int(slices.key[error.row]), int(slices.first[error.row])


def add_place(error: PlacedError, plan: BoundPlan, state: State) -> None:
    """Add the known place to the message, with names and values of the input."""
    binding, keys = plan.binding, plan.spec.keys
    places = []
    if error.time is not None:
        places.append(f"{plan.spec.time}={_shown(error.time, binding)}")
    if error.key is not None and keys:
        values = state.keys.values(np.array([error.key], dtype=np.int64))
        places += [
            f"{name}={value_text(column[0].as_py())}" for name, column in zip(keys, values, strict=True)
        ]
    if error.window is not None:
        number, start, end = error.window
        name = plan.served.all[number].name
        places.append(f"{name} [{_shown(start, binding)}, {_shown(end, binding)})")
    at = f" (at {', '.join(places)})" if places else ""
    cure = f"; {error.cure}" if error.cure else ""
    if at or cure:
        error.args = (f"{error}{at}{cure}",)
    error.key = error.time = error.window = None
    error.cure = ""


def _shown(time: int, binding: Binding) -> str | int:
    return format_instant(time if binding.time.is_integer else Micros(time))
