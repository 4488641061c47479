"""Checks of contexts from a snapshot against the tuples in it.

Kernels address tuples by the ranks in a context, and count windows from the edges in it. The name of a
field is its role: a rank must be that of a tuple that arrived; a time, or a position on a measure, must
be one that a tuple can have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.timeline import LIMIT
from muntin.windows.validation import LONGEST

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_RANKS = ("base", "begin", "begins", "seen")
_TIMES = ("start", "last", "edge", "latest", "oldest", "following")
_REACHES = ("reach",)
_POSITIONS = ("position", "low")


@dataclass(frozen=True, slots=True)
class KeyPositions:
    """The position of each key in its tuples; ranks count the tuples of one query."""

    rank: Ints
    """The number of tuples that the context has seen."""
    first_stored: Ints
    """The rank of the oldest tuple in the state."""
    time: Ints
    """The time of that tuple; INF if there is none."""
    floating: bool
    """Whether the window is on a measure of floats."""


def fields_fit(contexts: npt.NDArray[np.void], positions: KeyPositions) -> bool:
    """Whether every field of structured contexts lies within the bounds of its role."""
    for name in contexts.dtype.names or ():
        field = contexts[name]
        if name in _POSITIONS and positions.floating:
            fine: Flags = np.abs(field.view(np.float64)) < LIMIT  # false for NaN
        elif name in _RANKS:
            fine = (field >= -1) & (positions.rank >= field.T).T
        elif name in _REACHES:
            fine = (field >= -LIMIT) & (field <= LIMIT + LONGEST)
        elif name in _TIMES or name in _POSITIONS:
            fine = (field >= -LIMIT) & (field <= LIMIT)
        else:
            continue
        if not fine.all():
            return False
    return True


def lists_fit(contexts: npt.NDArray[np.object_], like: list[object], positions: KeyPositions) -> bool:
    """Whether contexts of user code are lists like a fresh one; their first entry is the user's state.

    The other entries are numbers, or lists of pairs: the rank and the time at which a window began.
    """
    for context, seen in zip(contexts, positions.rank.tolist(), strict=True):
        if type(context) is not list or len(context) != len(like):
            return False
        for value, fresh in zip(context[1:], like[1:], strict=True):
            if type(value) is not type(fresh) or (type(value) is int and abs(value) > LIMIT):
                return False
            if type(value) is list and not all(_is_begin(pair, seen) for pair in value):
                return False
    return True


def _is_begin(pair: object, seen: int) -> bool:
    if type(pair) is not list or [type(value) for value in pair] != [int, int]:
        return False
    rank, time = pair
    return bool(0 <= rank <= seen and abs(time) <= LIMIT)
