"""The monoid's parts as kernels name them; `compilation.specialise` puts the real ones in their place."""

from __future__ import annotations

from typing import Any

ONE: Any = None  # the identity


def lift(v: Any) -> Any:
    raise NotImplementedError("bound by specialise()")


def combine(p: Any, q: Any) -> Any:
    raise NotImplementedError("bound by specialise()")


def invert(p: Any, q: Any) -> Any:
    raise NotImplementedError("bound by specialise()")


def get(cells: Any, i: int) -> Any:
    raise NotImplementedError("bound by specialise()")


def put(cells: Any, i: int, p: Any) -> None:
    raise NotImplementedError("bound by specialise()")
