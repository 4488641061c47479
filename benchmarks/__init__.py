"""Benchmarks: ratios measured in one run, and counted work. `python -m benchmarks` runs them.

They are part of the repository, not of the installed package.
"""
