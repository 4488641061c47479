"""Emission of windows for the first time."""

from __future__ import annotations

from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.listing import Listing
from muntin.slicing.sorting_kernels import sort_windows

__all__ = ["first_results"]


def first_results(listing: Listing) -> list[Emission]:
    """Emit these windows, none of which was emitted before and none of which is remembered."""
    if not len(listing.key):
        return []
    if not listing.ordered:  # sorted once here, so that no column of results has to be sorted
        listing = listing.take(sort_windows(listing.end, listing.start, listing.number, listing.key))
    return [Emission(listing)]
