"""Names that the kernels of all stores share; each of their modules imports all of them."""

from __future__ import annotations

from typing import Any

# The operator: `compilation.specialise` binds these names to one monoid.
ONE: Any = None  # the identity
lift: Any = None  # (value) -> partial
combine: Any = None  # (partial, partial) -> partial
invert: Any = None  # (partial, prefix of it) -> the rest
get: Any = None  # (cells, i) -> partial i
put: Any = None  # (cells, i, partial) -> None

# The status that a kernel returns. Other than OK, it means that nothing has changed.
OK, FULL, DISORDER, EMPTY, MISSING, SPARSE, LATE = range(7)

# Fields of the integers of a store: the first of all stores, the others of a ring.
COMBINES, FRONT, END, MASK = range(4)
