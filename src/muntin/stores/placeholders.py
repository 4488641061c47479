"""The monoid's parts as kernels name them; `compilation.specialise` puts the real ones in their place."""

from __future__ import annotations

from typing import Any

ONE: Any = None  # the identity


def lift(v: Any) -> Any:
    """Bound by `specialise`."""
    raise NotImplementedError


def combine(p: Any, q: Any) -> Any:
    """Bound by `specialise`."""
    raise NotImplementedError


def invert(p: Any, q: Any) -> Any:
    """Bound by `specialise`."""
    raise NotImplementedError


def get(cells: Any, i: int) -> Any:
    """Bound by `specialise`."""
    raise NotImplementedError


def put(cells: Any, i: int, p: Any) -> None:
    """Bound by `specialise`."""
    raise NotImplementedError
