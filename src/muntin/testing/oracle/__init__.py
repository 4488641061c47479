"""The oracle, in small files: `steps` (the stream), `emission` (lateness and revisions), windows, values."""

from __future__ import annotations

from muntin.testing.oracle.steps import Oracle

__all__ = ["Oracle"]
