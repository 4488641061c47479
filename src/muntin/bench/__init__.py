"""Benchmarks: ratios measured in one run, and counted work. `muntin bench` runs them."""
