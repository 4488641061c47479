"""Why a function of the user's is not compiled."""

from __future__ import annotations

import re
from typing import Any

from numba.core import types
from numba.core.errors import NumbaError

refused: list[str] = []
"""Why the last functions could not be compiled, in words; Numba's own are about what stands in for them."""


class RefusedError(Exception):
    """A function that must stay in the interpreter."""


COMPILER_ERRORS = (RefusedError, NumbaError, ValueError, TypeError, RuntimeError, LookupError, AttributeError)
"""Numba reports most of what it cannot compile as its own errors, and the rest as it comes."""


def reason(error: Exception) -> str:
    """Why a function was not compiled, in a line."""
    if refused and not isinstance(error, RefusedError):
        return refused[-1]
    lines = [line.strip() for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines()]
    return next((line for line in lines if line and not line.startswith("Failed in")), type(error).__name__)


def refusal(why: str) -> RefusedError:
    """The error to raise, noted for `reason`."""
    refused.append(why)
    return RefusedError(why)


def unknown(what: str, *kinds: Any) -> None:
    """Note that there is no implementation for these types."""
    shown = " and ".join(str(types.unliteral(kind)) for kind in kinds)
    refused.append(f"{what} of {shown} is not compiled")
