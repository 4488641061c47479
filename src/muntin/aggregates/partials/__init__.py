"""Columns of partial aggregates: the state of slices, combined for windows.

Each file has one family of partials, and `*_kernels.py` its compiled loops. A lift has two loops: over
*runs*, when the tuples are ordered by group, with the accumulator in registers and SIMD lanes; and as
*scatter*, when they are not.
"""
