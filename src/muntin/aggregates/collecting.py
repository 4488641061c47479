"""collect and concat: all values, in event-time order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import TEXTS, require
from muntin.aggregates.arguments import Rule, must
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State
from muntin.aggregates.joining import MOST_BYTES, TextError, list_array
from muntin.aggregates.partials import text_kernels
from muntin.aggregates.partials.lists import Collected
from muntin.aggregates.texts import from_texts, texts

__all__ = ["Collect", "Collection", "Concat"]

_STRING = Rule('be a string, like ", "', lambda value: isinstance(value, str))


@dataclass(frozen=True, slots=True)
class Collection(Aggregate):
    """Base of aggregates whose scalar partial is a tuple of (place, value), in order of the places."""

    column: ColumnLike

    kind = "holistic"
    invertible = True
    empty = ()

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...]:
        return () if value is None else ((at, value),)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(p + q, key=lambda item: item[0]))

    def lower(self, p: tuple[Any, ...]) -> Any:
        return [value for _, value in p]

    def invert(self, whole: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
        # By place, not by value: of two equal values the right one leaves.
        gone = {at for at, _ in part}
        return tuple(item for item in whole if item[0] not in gone)


@dataclass(frozen=True, slots=True)
class Collect(Collection):
    """The values that are not null, in event-time order; the empty list over none.

    >>> collect = Collect("item")
    >>> collect.lower(collect.combine(collect.lift("tea", at=(9, 0)), collect.lift("cup", at=(8, 1))))
    ['cup', 'tea']
    """

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        type_ = pa.list_(arrays.plain_type(types[0]))
        collected = Collected(self.inputs[0])
        return Bound(type_, (collected,), lambda s: list_array("collect", s[0].offsets, s[0].values, type_))


@dataclass(frozen=True, slots=True)
class Concat(Collection):
    """The strings that are not null, joined in event-time order; null over none.

    >>> path = Concat("page", separator=" > ")
    >>> path.lower(path.combine(path.lift("cart", at=(9, 0)), path.lift("home", at=(8, 1))))
    'home > cart'
    """

    separator: str = field(default="", metadata=must(_STRING))

    def lower(self, p: tuple[Any, ...]) -> str | None:
        return self.separator.join(value for _, value in p) if p else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        type_ = require(self, types, TEXTS)

        def lower(states: tuple[State, ...]) -> pa.Array:
            (items,) = states
            separator = np.frombuffer(self.separator.encode(), np.uint8)
            starts, data = text_kernels.join_texts(items.offsets, *texts(items.values), separator)
            if t.is_string(type_) and len(data) > MOST_BYTES:
                raise TextError(f"concat got {len(data):,} bytes")
            return from_texts(starts, data, np.diff(items.offsets) > 0, type_)

        return Bound(type_, (Collected(self.inputs[0]),), lower)
