"""Results of windows: what `run`, `process`, `advance` and `finish` return."""

from muntin.results.results import Results

__all__ = ["Results"]
