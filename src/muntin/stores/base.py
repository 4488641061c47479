"""The protocol of all stores, in two forms: compiled over numbers, interpreted over objects."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import index
from sys import getsizeof
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError, QueryError
from muntin.stores import columns, compilation
from muntin.stores.monoids import Monoid, named
from muntin.stores.times import BOUNDS, time_type
from muntin.stores.vocabulary import COMBINES, DISORDER, EMPTY, MISSING, OK


class Store(ABC):
    """A sliding window over (time, value) entries, with the aggregate of its content.

    Ranges are half-open. The same time inserted twice combines in order of arrival (Two-Stacks Lite and
    DABA Lite store tied entries one after the other, with the same answers). The aggregate of no entries is
    the lowered identity: 0 for a sum, null where a mean has no value or a monoid has no identity.
    `combines` counts every use of the operator, in both forms.
    """

    kernels: ClassVar[tuple[ModuleType, ...]]

    def __init__(
        self,
        monoid: str | Monoid,
        *,
        dtype: str = "float64",
        times: str = "int64",
        compiled: bool | None = None,
    ) -> None:
        """``monoid``: a name ("sum", "max", ...), or your own from `muntin.stores.monoid`.

        ``dtype`` is the type of the values of a named monoid, ``times`` that of the times: "int64",
        "float64", "datetime64[us]", or "object" for anything with an order, interpreted.
        ``compiled=False`` interprets a monoid that could be compiled; ``compiled=True`` refuses one that
        cannot.
        """
        self._times = time_type(times)
        self._code = self._times.encode
        if times == "object":
            if compiled:
                raise QueryError('times="object" is interpreted: got compiled=True; leave compiled= out')
            compiled = False
        self.monoid = named(monoid, dtype) if isinstance(monoid, str) else monoid
        self._require(self.monoid)
        self.compiled = _can_compile(self.monoid, compiled)
        self._k = self._specialise()
        self._value = _coercion(self.monoid, self.compiled)
        self._allocate()

    def _require(self, monoid: Monoid) -> None:  # noqa: B027  # most stores take every monoid
        """Refuse a monoid that the algorithm cannot serve."""

    def _specialise(self) -> SimpleNamespace:
        return compilation.specialise(
            self.kernels, self.monoid, compiled=self.compiled, constants=self._constants()
        )

    def _constants(self) -> dict[str, Any]:
        """Constants of the kernels that this store sets."""
        return BOUNDS if self._times.name == "object" else {}

    _k: SimpleNamespace
    _data: tuple[Any, ...]

    @abstractmethod
    def _allocate(self) -> None:
        """Set ``self._data`` to an empty state: (integers, with COMBINES at 0; times; partials; ...)."""

    @abstractmethod
    def _resolve(self, status: int) -> None:
        """Make room, or compact, after a kernel returned this status."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of entries in the window: O(1)."""

    # --- changing the window -----------------------------------------------------------------

    def insert(self, t: Any, v: Any) -> None:
        """Add a value at time ``t``."""
        t = self._code(t)
        v = self._value(v)
        while status := self._k.insert(self._data, t, v):
            self._refuse(status, t)
            self._resolve(status)

    def insert_many(self, ts: Iterable[Any], vs: Iterable[Any]) -> None:
        """Add many values. Times may repeat; for an in-order store they must not go back."""
        times, values = self._bulk(ts, vs)
        done = 0
        while done < len(times):
            done, status = self._k.insert_many(self._data, times, values, done)
            if status:
                self._refuse(status, times[done])
                self._resolve(status)

    def evict(self, t: Any = None) -> None:
        """Remove the oldest entry, or everything at time ``t``, which may be nothing."""
        if t is None:
            status = self._k.evict(self._data)
        else:
            t = self._code(t)
            status = self._evict_at(t)
        if status and status != MISSING:
            self._refuse(status, t)
            self._resolve(status)

    @abstractmethod
    def _evict_at(self, t: Any) -> int:
        """Remove the entry of the encoded time ``t``; a status."""

    def evict_before(self, t: Any) -> int:
        """Remove every entry with a time before ``t``; their number."""
        return int(self._k.evict_before(self._data, self._code(t)))

    # --- queries -----------------------------------------------------------------------------

    def query(self) -> Any:
        """The aggregate of the whole window; for an empty one the lowered identity."""
        return self.monoid.lower(self._k.query(self._data)) if len(self) else self.monoid.empty

    @abstractmethod
    def query_range(self, a: Any, b: Any) -> Any:
        """The aggregate of the entries with ``a <= time < b``."""

    def times(self) -> list[Any]:
        """The times of the entries, oldest first: O(n)."""
        return [self._times.decode(t) for t in self._codes()]

    @abstractmethod
    def _codes(self) -> list[Any]:
        """The encoded times of the entries, oldest first."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """(time, partial) of each entry, oldest first."""

    def map_partials(self, change: Callable[[Any], Any]) -> None:
        """Replace every partial of an interpreted store, where partials are references."""
        assert not self.compiled, "compiled partials are plain numbers"
        nothing = self.monoid.python.identity
        cells = self._data[2]
        cells[:] = [partial if partial is nothing else change(partial) for partial in cells]

    @property
    def combines(self) -> int:
        """Number of uses of the operator or its inverse since the store was made."""
        return int(self._data[0][COMBINES])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays; interpreted, of the lists and what they refer to, as `sys.getsizeof` says."""
        stored = [array for part in self._data for array in columns.arrays(part)]
        if self.compiled:
            return sum(int(array.nbytes) for array in stored)
        shared = {id(item): getsizeof(item) for items in stored for item in items}
        return sum(map(getsizeof, stored)) + sum(shared.values())

    @abstractmethod
    def check_invariants(self) -> None:
        """Assert every invariant that holds between operations: O(n), for tests."""

    def __repr__(self) -> str:
        form = "compiled" if self.compiled else "interpreted"
        return f"<{type(self).__name__} of {self.monoid.name}, {len(self)} entries, {form}>"

    # --- for the stores ----------------------------------------------------------------------

    def _integers(self, n: int) -> Any:
        return np.zeros(n, np.int64) if self.compiled else [0] * n

    def _partials(self, n: int) -> Any:
        """``n`` partials, all the identity."""
        if not self.compiled:
            return [self.monoid.python.identity] * n
        return columns.filled(self.monoid.columns, self.monoid.identity, n)

    def _partial(self, cells: Any, i: int) -> Any:
        """Partial ``i`` as Python numbers, or as an object."""
        if not self.compiled:
            return cells[i]
        if len(self.monoid.columns) == 1:
            return cells[i].item()
        return tuple(column[i].item() for column in cells)

    def _product(self, partials: Iterable[Any]) -> Any:
        """Combine outside the kernels, uncounted: for `check_invariants`."""
        identity = self.monoid.identity if self.compiled else self.monoid.python.identity
        return reduce(self._k.combine, partials, identity)

    def _assert_same(self, expected: Any, actual: Any, rule: str) -> None:
        assert _close(expected, actual), f"{rule}: {expected!r} expected, got {actual!r}"

    def _bulk(self, ts: Iterable[Any], vs: Iterable[Any]) -> tuple[Any, Any]:
        if self.compiled:
            times: Any = self._times.encode_many(ts)
            values: Any = np.ascontiguousarray(_array(vs), self.monoid.input)
            if self.monoid.pairs and values.ndim != 2:
                values = values.reshape(-1, 2)
        else:
            times, values = [self._code(t) for t in ts], list(vs)
        if len(times) != len(values):
            raise DataError(f"as many values as times: got {len(times)} times, {len(values)} values")
        return times, values

    def _refuse(self, status: int, t: Any) -> None:
        if status == DISORDER:
            raise DataError(
                f"{type(self).__name__} takes entries in order of time: got {self._times.decode(t)} "
                f"after {self.times()[-1]}; use FiBA for entries out of order"
            )
        if status == EMPTY:
            raise IndexError("evict from an empty window")
        assert status not in (OK, MISSING)


def _close(p: Any, q: Any) -> bool:
    """Equal, or floats that differ by the order of summation only."""
    if isinstance(p, tuple) and isinstance(q, tuple):
        return len(p) == len(q) and all(map(_close, p, q))
    if isinstance(p, float) and isinstance(q, float):
        return p == q or (p != p and q != q) or math.isclose(p, q, rel_tol=1e-9, abs_tol=1e-9)
    return bool(p == q)


def _array(items: Iterable[Any]) -> npt.NDArray[Any]:
    return items if isinstance(items, np.ndarray) else np.asarray(list(items))


def _coercion(monoid: Monoid, compiled: bool) -> Any:
    """Values as one type for compiled kernels: Numba would compile them again for every other type."""
    if not compiled:
        return lambda v: v
    number = index if monoid.input == "int64" else float
    return (lambda v: (number(v[0]), number(v[1]))) if monoid.pairs else number


def _can_compile(monoid: Monoid, wanted: bool | None) -> bool:
    if wanted is False or not monoid.columns:
        if wanted:
            raise QueryError(f"{monoid!r} names no columns for its partial, so it cannot be compiled")
        return False
    if monoid.named:
        return True
    from muntin.stores.jit_kernels import why_not_compilable

    reason = why_not_compilable(monoid)
    if reason and wanted:
        raise QueryError(f"{monoid!r} cannot be compiled: {reason}")
    return not reason
