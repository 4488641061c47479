"""User-defined aggregates as classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.base import ColumnLike
from muntin.aggregates.udaf import UserDefined, aggregate

__all__ = ["UserAggregate"]


class UserAggregate(ABC):
    """The base of aggregates of your own that are classes: with parameters, or to be subclassed again.

    Write `lift`, `combine` and, where the result is not the partial aggregate itself, `lower`; they
    return new values and change nothing. `over` names the columns:

    >>> class Share(UserAggregate):
    ...     '''How many of the values lie above a limit.'''
    ...
    ...     def __init__(self, limit):
    ...         self.limit = limit
    ...
    ...     def lift(self, value):
    ...         return (value > self.limit, 1)
    ...
    ...     def combine(self, p, q):
    ...         return (p[0] + q[0], p[1] + q[1])
    ...
    ...     def lower(self, p):
    ...         return p[0] / p[1]
    >>> share = Share(10).over("price")
    >>> share.lower(share.combine(share.lift(5), share.lift(15)))
    0.5
    """

    commutative: ClassVar[bool] = True
    """False if `combine(x, y)` may differ from `combine(y, x)`."""
    type: ClassVar[pa.DataType | str | None] = None
    """Of the result; None: what `lower` is annotated to return, or returns for sample values."""
    identity: Any = None
    """The partial aggregate of no tuple, for the laws."""
    ignore_nulls: ClassVar[bool] = True
    """False if tuples with nulls count too; `lift` then gets None for a null."""

    @abstractmethod
    def lift(self, *args: Any, **kwargs: Any) -> Any:
        """The partial aggregate of one tuple, from one value per column."""

    @abstractmethod
    def combine(self, p: Any, q: Any) -> Any:
        """Two partial aggregates as one; associative."""

    def lower(self, p: Any) -> Any:
        """The result; without this method the partial aggregate itself."""
        return p

    def invert(self, whole: Any, part: Any) -> Any:
        """Optional: what remains of `whole` without `part`, exactly."""
        raise NotImplementedError

    def over(
        self, *columns: ColumnLike, filter: ColumnLike | None = None, compile: bool | None = None
    ) -> UserDefined:
        """The aggregate over these columns, for a query; see `aggregate` for the arguments."""
        own = type(self)
        return aggregate(
            *columns,
            lift=self.lift,
            combine=self.combine,
            lower=None if own.lower is UserAggregate.lower else self.lower,
            identity=self.identity,
            invert=None if own.invert is UserAggregate.invert else self.invert,
            commutative=self.commutative,
            type=self.type,
            name=own.__name__,
            ignore_nulls=self.ignore_nulls,
            compile=compile,
            filter=filter,
        )
