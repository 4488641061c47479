"""Queries that run without the interpreter, and so on several threads."""

from __future__ import annotations

from muntin.aggregates.sketches.base import SketchAggregate
from muntin.aggregates.udaf import UserDefined
from muntin.query import QuerySpec

__all__ = ["is_compiled"]


def is_compiled(spec: QuerySpec) -> bool:
    """Whether nothing of the query runs in the interpreter, which serves one thread at a time.

    >>> from muntin import aggregates as a, windows as w
    >>> is_compiled(QuerySpec((("ten", w.tumbling(10)),), (("n", a.count()),)))
    True
    """
    interpreted = (UserDefined, SketchAggregate)
    return not any(isinstance(aggregate, interpreted) for _, aggregate in spec.aggregates) and not any(
        window.interpreted for _, window in spec.windows
    )
