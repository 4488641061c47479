"""The codes of the partials that the compiled step supports (see `muntin.slicing.numeric_step`)."""

from __future__ import annotations

__all__ = ["COUNT", "FLOAT_SUM", "INTEGER_SUM", "LARGEST", "NONE", "SMALLEST"]

NONE = -1
"""A partial that the compiled step does not support."""
COUNT = 0
INTEGER_SUM = 1
FLOAT_SUM = 2
SMALLEST = 3
LARGEST = 4
