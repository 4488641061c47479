"""The codes of what the compiled step supports (see `muntin.slicing.numeric_step`)."""

from __future__ import annotations

__all__ = [
    "COUNT", "FLOAT_KEY", "FLOAT_MEAN", "FLOAT_SUM", "FLOAT_TOTAL", "INTEGER_MEAN", "INTEGER_SUM",
    "INTEGER_TOTAL", "LARGEST", "NONE", "SMALLEST", "WORD",
]  # fmt: skip

NONE = -1
"""A partial or a value that the compiled step does not support."""

# Partials, by how they are lifted and combined.
COUNT = 0
INTEGER_SUM = 1
FLOAT_SUM = 2
SMALLEST = 3
LARGEST = 4

# Values of aggregates, by how they are lowered from the words of a partial.
WORD = 0
"""The word itself."""
INTEGER_TOTAL = 1
"""A sum of integers that fits into 64 bits."""
INTEGER_MEAN = 2
FLOAT_TOTAL = 3
FLOAT_MEAN = 4
FLOAT_KEY = 5
"""The float that has the word as its order key."""
