"""An operator belongs to one caller at a time: a second one gets an error while a call is under way.

A call takes the only item out of a list and puts it back at its end. `list.pop` is atomic, so no two threads
get the item, and it costs a third of a lock that is tried (40 ns against 130 for taking it and giving it
back). Nor does the thread that has it get it again: user code that calls its own operator is refused, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from muntin.errors import ConcurrentCallError

if TYPE_CHECKING:
    from muntin.connectors.embedded import Operator

__all__ = ["busy", "one_caller"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def busy(call: str) -> ConcurrentCallError:
    """The error for a second caller."""
    return ConcurrentCallError(
        f"an operator belongs to one caller at a time: got a call of {call}() while another call is under "
        "way; call it from one thread, or hold a lock of your own around every call; code that a query "
        "runs must not call the operator that runs it"
    )


def one_caller(
    method: Callable[Concatenate[Operator, _P], _R],
) -> Callable[Concatenate[Operator, _P], _R]:
    """A method of an operator that is refused while another one runs."""

    @wraps(method)
    def alone(self: Operator, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            self._turn.pop()
        except IndexError:
            raise busy(method.__name__) from None
        try:
            return method(self, *args, **kwargs)
        finally:
            self._turn.append(None)

    return alone
