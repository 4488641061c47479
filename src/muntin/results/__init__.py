"""Results of windows: what `run`, `process`, `advance` and `finish` return; and other tables for users."""

from muntin.results.results import Results
from muntin.results.rows import Rows

__all__ = ["Results", "Rows"]
