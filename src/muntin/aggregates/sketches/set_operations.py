"""Set operations on the results of `theta(..., result="bytes")`: who came and bought, who did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from muntin.aggregates.sketches.base import datasketches, updated
from muntin.errors import DataError

__all__ = ["difference", "estimate", "intersection", "union"]


def union(*sketches: Any, lg_k: int = 12) -> Any:
    """The sketch of the values that are in at least one of the sets.

    Give bytes and get bytes, or give columns of equal length and get a column, row by row; null
    where one is null. `lg_k` bounds the size of the result, as in `theta`.

    >>> from muntin.aggregates import theta
    >>> users = theta("user", result="bytes")
    >>> ann, bob = (users.lower(users.lift(name)) for name in ("ann", "bob"))
    >>> estimate(union(ann, bob)), estimate(intersection(ann, bob)), estimate(difference(ann, bob))
    (2, 0, 1)
    """
    return _each(lambda sets: _result(datasketches("union").theta_union(lg_k), sets), sketches)


def intersection(*sketches: Any) -> Any:
    """The sketch of the values that are in all of the sets; see `union`.

    Its relative error grows as the intersection becomes smaller than the union.
    """
    return _each(lambda sets: _result(datasketches("intersection").theta_intersection(), sets), sketches)


def difference(sketch: Any, other: Any) -> Any:
    """The sketch of the values that are in the first set and not in the other; see `union`."""
    subtract = datasketches("difference").theta_a_not_b
    return _each(lambda sets: bytes(subtract().compute(*sets).serialize()), (sketch, other))


def estimate(sketch: Any) -> Any:
    """The number of values in the set, about; of bytes an int, of a column a column."""
    return _each(lambda loaded: round(loaded[0].get_estimate()), (sketch,), pa.int64())


def _result(operation: Any, sketches: list[Any]) -> bytes:
    return bytes(updated(operation, sketches).get_result().serialize())


def _each(operation: Callable[[list[Any]], Any], sketches: tuple[Any, ...], type_: Any = None) -> Any:
    """The operation on bytes, or on each row of columns."""
    if not sketches:
        raise DataError("a set operation needs at least one sketch")
    columns = [isinstance(sketch, (pa.Array, pa.ChunkedArray)) for sketch in sketches]
    if not any(columns):
        return operation([_loaded(sketch) for sketch in sketches])
    if not all(columns) or len({len(sketch) for sketch in sketches}) > 1:
        raise DataError("a set operation takes bytes, or columns of equal length, not a mixture")
    rows = zip(*(sketch.to_pylist() for sketch in sketches), strict=True)
    results = [None if None in row else operation([_loaded(sketch) for sketch in row]) for row in rows]
    return pa.array(results, type_ or pa.binary())


def _loaded(sketch: Any) -> Any:
    try:
        return datasketches("a set operation").compact_theta_sketch.deserialize(sketch)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        shown = f"{sketch!r:.40}"
        raise DataError(f'{shown} is no theta sketch: give theta(..., result="bytes")') from error
