"""Tuples that are to be aggregated into groups, with views of their columns that all partials share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools, Floats, Ints
from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates import array_kernels
else:
    array_kernels = DeferredImport("muntin.aggregates.array_kernels")

__all__ = ["Groups", "in_turn"]

_T = TypeVar("_T")
_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_View: TypeAlias = tuple[str, str | tuple[Expr, ...] | None]
_UNMADE: Any = object()


@dataclass(slots=True)
class Groups:
    """A batch of m tuples, each in one of n groups (slices).

    Where a group is a range of tuples, `offsets` says so without a number per tuple: group i is
    `offsets[i]:offsets[i + 1]`; `group` may then be None, and `ordered` must hold.

    >>> import numpy as np, pyarrow as pa
    >>> from muntin.expressions import as_expr
    >>> x = as_expr("x")
    >>> g = Groups(
    ...     2, None, True, np.arange(3), np.arange(3), {x: pa.array([1, None, 3])}, np.array([0, 2, 3])
    ... )
    >>> g.sizes().tolist(), g.valid(x).tolist()
    ([2, 1], [True, False, True])
    """

    n: int
    """Number of groups."""
    group: Ints | None
    """The group of each tuple, -1 for a tuple to ignore."""
    ordered: bool
    """Whether the tuples are sorted by group, then by (time, seq)."""
    time: Ints
    arrival: Ints | int
    """The number of each tuple in order of arrival, or that of the first where they follow one by one."""
    values: dict[Expr, pa.Array]
    offsets: Ints | None = None
    chosen: pa.Array | None = None
    """Which entries of `values` are the tuples; None where all are, in that order."""
    counts: Ints | None = None
    """The number of tuples of each group, where it is known."""
    _views: dict[_View, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Numba compiles once for read-only and once for writable arrays. Columns that are views of
        # Arrow's memory are read-only, so here everything is.
        self.time = _frozen(self.time)
        if self.group is not None:
            self.group = _frozen(self.group)

    @property
    def seq(self) -> Ints:
        """The number of each tuple in order of arrival."""
        return self._view("seq", None, lambda: _frozen(in_turn(self.arrival, len(self.time))))

    def array(self, expr: Expr) -> pa.Array:
        """The values as a plain Arrow array: dictionaries and views are resolved."""
        key = ("array", expr.text)  # here and below without a function to make it: all partials ask for them
        if key not in self._views:
            self._views[key] = arrays.plain(self._chosen(expr))
        column: pa.Array = self._views[key]
        return column

    def valid(self, expr: Expr) -> Bools | None:
        """Which values are not null; None where all are."""
        key = ("valid", expr.text)
        if key not in self._views:
            self._views[key] = self._valid(expr)
        mask: Bools | None = self._views[key]
        return mask

    def valid_in_all(self, exprs: tuple[Expr, ...]) -> Bools | None:
        """Which tuples have a value in all of these columns; None where all have."""
        masks = [mask for expr in exprs if (mask := self.valid(expr)) is not None]
        return _frozen(np.logical_and.reduce(masks)) if masks else None

    def true(self, expr: Expr) -> Bools:
        """Which tuples satisfy a condition; null counts as false."""
        return self._view("true", expr.text, lambda: _frozen(arrays.true(self.array(expr))))

    def integers(self, expr: Expr) -> Ints:
        """The values as 64-bit integers (unscaled, for decimals); arbitrary at nulls."""
        return self._view("integers", expr.text, lambda: _frozen(arrays.integers(self.array(expr))))

    def bits(self, expr: Expr) -> Ints:
        """The bits of integers, uint64 as well; arbitrary at nulls."""
        return self._view("bits", expr.text, lambda: _frozen(arrays.bits(self.array(expr))))

    def floats(self, expr: Expr) -> Floats:
        """The values as 64-bit floats; arbitrary at nulls."""
        return self._view("floats", expr.text, lambda: _frozen(arrays.floats(self.array(expr))))

    def keys(self, expr: Expr) -> Ints:
        """Integers in the order of the values, see `arrays.order_keys`; arbitrary at nulls."""
        return self._view("keys", expr.text, lambda: _frozen(arrays.order_keys(self.array(expr))))

    def runs(self) -> tuple[Ints, Ints, Ints]:
        """Begin, end and group of each run of tuples of one group, where the tuples are ordered."""
        return self._view("runs", None, self._runs)

    def ids(self) -> Ints:
        """The group of each tuple."""
        return self.group if self.group is not None else self._view("ids", None, self._ids)

    def sizes(self) -> Ints:
        """The number of tuples of each group."""
        return self._view("sizes", None, self._sizes)

    def where(self, condition: Expr) -> Groups:
        """The same groups, with only the tuples for which the condition is true."""
        return self._view("where", condition.text, lambda: self._choose(self.true(condition)))

    def complete(self, *exprs: Expr) -> Groups:
        """The same groups, with only the tuples that have a value in all of these columns."""
        return self._view("complete", exprs, lambda: self._choose(self.valid_in_all(exprs)))

    def _choose(self, flags: Bools | None) -> Groups:
        if flags is None or flags.all():
            return self
        index = np.flatnonzero(flags)
        return Groups(
            self.n,
            None if self.group is None else self.group[index],
            self.ordered,
            self.time[index],
            self.seq[index],
            self.values,
            None if self.offsets is None else np.searchsorted(index, self.offsets),
            pa.array(index) if self.chosen is None else self.chosen.take(pa.array(index)),
        )

    def _view(self, kind: str, of: str | tuple[Expr, ...] | None, make: Callable[[], _T]) -> _T:
        key = (kind, of)
        view: _T = self._views.get(key, _UNMADE)
        if view is _UNMADE:
            view = self._views[key] = make()
        return view

    def _chosen(self, expr: Expr) -> pa.Array:
        return self.values[expr] if self.chosen is None else self.values[expr].take(self.chosen)

    def _valid(self, expr: Expr) -> Bools | None:
        valid = arrays.valid(self.array(expr))
        return None if valid is None else _frozen(valid)

    def _runs(self) -> tuple[Ints, Ints, Ints]:
        if self.offsets is not None:
            return self.offsets[:-1], self.offsets[1:], np.arange(self.n, dtype=np.int64)
        begin, end, group = array_kernels.find_runs(self.ids())
        return begin, end, group

    def _ids(self) -> Ints:
        assert self.offsets is not None, "Groups need group or offsets"
        ids = np.full(len(self.time), -1, dtype=np.int64)
        ids[self.offsets[0] : self.offsets[-1]] = np.repeat(
            np.arange(self.n, dtype=np.int64), np.diff(self.offsets)
        )
        return _frozen(ids)

    def _sizes(self) -> Ints:
        if self.counts is not None:
            return self.counts
        if self.offsets is not None:
            return self.offsets[1:] - self.offsets[:-1]
        if self.ordered:
            begin, end, group = self.runs()
            sizes = np.zeros(self.n, dtype=np.int64)
            np.add.at(sizes, group, end - begin)
            return sizes
        return array_kernels.group_sizes(self.ids(), self.n)


def in_turn(arrival: Ints | int, size: int) -> Ints:
    """The numbers of tuples in order of arrival; from the first one on if that is all that is given."""
    return np.arange(arrival, arrival + size, dtype=np.int64) if isinstance(arrival, int) else arrival


def _frozen(array: _Array) -> _Array:
    view = array.view()
    view.flags.writeable = False
    return view
