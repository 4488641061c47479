"""Aggregate stores: data structures for sliding-window aggregation, usable without queries.

>>> from muntin.stores import TwoStacksLite
>>> window = TwoStacksLite("sum")
>>> window.insert(1, 2.5)
>>> window.insert(4, 0.5)
>>> window.query()
3.0
"""

from __future__ import annotations

from muntin.stores.base import Store
from muntin.stores.daba import DabaLite
from muntin.stores.fiba import FiBA
from muntin.stores.flatfat import FlatFAT
from muntin.stores.lazy import Lazy
from muntin.stores.monoids import Monoid, monoid, named
from muntin.stores.prefix import Prefix
from muntin.stores.two_stacks import TwoStacksLite

__all__ = [
    "DabaLite",
    "FiBA",
    "FlatFAT",
    "Lazy",
    "Monoid",
    "Prefix",
    "Store",
    "TwoStacksLite",
    "monoid",
    "named",
]
