"""Apache DataSketches, which is imported when a query uses one of its sketches."""

from __future__ import annotations

import importlib
from typing import Any

from muntin.errors import MuntinError

__all__ = ["datasketches"]


def datasketches(user: str) -> Any:
    """The package; an error that says how to install it if it is not there. `user` needs it."""
    try:
        return importlib.import_module("datasketches")
    except ImportError as error:
        raise MuntinError(
            f"{user} needs the package datasketches, which is not installed; "
            "install it with: pip install 'muntin[sketches]'"
        ) from error
