"""Why a function of the user's is not compiled."""

from __future__ import annotations

import re

from numba.core.errors import NumbaError

refused: list[str] = []
"""Why the last functions were refused; where one calls another, Numba hides it in a long message."""


class RefusedError(Exception):
    """A function that must stay in the interpreter."""


COMPILER_ERRORS = (RefusedError, NumbaError, ValueError, TypeError, RuntimeError, LookupError, AttributeError)
"""Numba reports most of what it cannot compile as its own errors, and the rest as it comes."""

_CALL = re.compile(r">>> (\w+\(.*\))")
_LITERAL = re.compile(r"Literal\[(\w+)\]\([^)]*\)")


def refusal(why: str) -> RefusedError:
    """The error to raise, noted for `reason`."""
    refused.append(why)
    return RefusedError(why)


def reason(error: Exception) -> str:
    """Why a function was not compiled, in a line."""
    if refused and not isinstance(error, RefusedError):
        return refused[-1]
    text = re.sub(r"\x1b\[\d*m", "", str(error))
    if call := _CALL.search(text):  # that Numba knows no implementation for
        return _LITERAL.sub(r"\1", call[1]) + " is not compiled"
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line and not line.startswith("Failed in")), type(error).__name__)
