"""Counters of work done: the only costs that tests assert."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Metrics:
    """The work that an operator has done.

    A *combine* joins two partial aggregates: in the update part a tuple into its slice (one per
    tuple and distinct partial), in the merge part slices with slices. [cutty §7]
    """

    tuples: int = 0
    bad: int = 0
    late: int = 0
    """Tuples that were late for at least one window."""
    windows: int = 0
    updates: int = 0
    retractions: int = 0
    update_combines: int = 0
    merge_combines: int = 0
    errors: int = 0
    """Errors that on_error="skip" skipped."""
