"""The names by which kernels call the operator; `compilation.specialise` binds them to one monoid."""

from __future__ import annotations

from typing import Any

ONE: Any = None  # the identity
lift: Any = None  # (value) -> partial
combine: Any = None  # (partial, partial) -> partial
invert: Any = None  # (partial, prefix of it) -> the rest
get: Any = None  # (cells, i) -> partial i
put: Any = None  # (cells, i, partial) -> None
