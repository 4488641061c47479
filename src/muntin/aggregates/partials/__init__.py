"""Columns of partial aggregates: what slices hold and windows combine.

Each file has one family of partials with its Python side, `*_kernels.py` beside it the compiled
loops. Every lift comes in two shapes: over *runs*, when the tuples are ordered by group, with the
accumulator in registers and SIMD lanes; and as *scatter*, when they are not.
"""
