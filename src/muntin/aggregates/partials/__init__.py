"""Columns of partial aggregates: the state of slices, combined for windows.

Each file has one family of partials, and `*_kernels.py` its compiled loops. A lift has two loops: over
*runs*, when the tuples are ordered by group, with the accumulator in registers and SIMD lanes; and as
*scatter*, when they are not.

`from muntin.aggregates.partials import sum_kernels` gives a `DeferredImport` of the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.deferred_import import DeferredImport

if not TYPE_CHECKING:

    def __getattr__(name: str) -> DeferredImport:
        if name.endswith("_kernels"):
            return DeferredImport(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
