"""States under test beside the tuples that they stand for."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume

from muntin.aggregates.base import Aggregate, Bound, Groups, with_needs
from muntin.errors import DataError

sys.path.insert(0, str(Path(__file__).parent))  # what follows lies beside this file, not installed
from catalogue import RESULT, STATISTICS, TYPES, makes_sense
from meanings import Near, Rows


@dataclass
class Rowset:
    """Rows of all partials of an aggregate, and the tuples that each row stands for."""

    bound: Bound
    states: dict[Any, Any]
    content: list[list[tuple[int, int, tuple[Any, ...]]]]
    expected: Callable[[Rows], Any] = field(repr=False)

    @property
    def partials(self) -> tuple[Any, ...]:
        return with_needs(self.bound.partials)

    def of(self, states: dict[Any, Any], content: list[Any]) -> "Rowset":
        for partial, state in states.items():
            assert partial.size(state) == len(content)
            assert partial.nbytes(state) >= 0
            weights = partial.weights(state)
            assert weights is None or len(weights) == len(content)
        return Rowset(self.bound, states, content, self.expected)

    def join(self, other: "Rowset") -> "Rowset":
        states = {p: p.concat([self.states[p], other.states[p]]) for p in self.partials}
        return self.of(states, self.content + other.content)

    def take(self, index: list[int]) -> "Rowset":
        rows = np.array(index, dtype=np.int64)
        states = {p: p.take(self.states[p], rows) for p in self.partials}
        return self.of(states, [self.content[i] for i in index])

    def cut(self, low: int, high: int) -> "Rowset":
        states = {p: p.cut(self.states[p], low, high) for p in self.partials}
        return self.of(states, self.content[low:high])

    def reduce(self, rows: list[int] | None, ranges: list[tuple[int, int]]) -> "Rowset":
        lo, hi = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
        index = None if rows is None else np.array(rows, dtype=np.int64)
        after: dict[Any, Any] = {}
        windows: dict[Any, Any] = {}
        for p in self.partials:
            before = tuple(self.states[q] for q in p.needs)
            then = tuple(after[q] for q in p.needs)
            after[p] = p.reduce(self.states[p], index, lo.copy(), hi.copy(), before, then)
            windows[p] = p.window(self.states[p], index, lo.copy(), hi.copy(), before, then)
        places = list(range(len(self.content))) if rows is None else rows
        content = [[item for r in places[b:e] for item in self.content[r]] for b, e in ranges]
        Rowset(self.bound, windows, content, self.expected).check()
        return self.of(after, content)

    def snapshot(self) -> "Rowset":
        states = {}
        for p in self.partials:
            columns = p.to_arrow(self.states[p])
            sink = pa.BufferOutputStream()
            batch = pa.record_batch(columns)
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write(batch)
            table = pa.ipc.open_stream(sink.getvalue()).read_all().combine_chunks()
            back = {
                name: table[name].chunk(0) if table[name].num_chunks else pa.array([], table[name].type)
                for name in table.column_names
            }
            states[p] = p.from_arrow(back)
        return self.of(states, self.content)

    def check(self) -> None:
        want, overflow = [], False
        for row in self.content:
            try:
                want.append(self.expected([values for _, _, values in sorted(row, key=lambda r: r[:2])]))
            except DataError:
                overflow = True
        states = tuple(self.states[p] for p in self.bound.partials)
        if overflow:
            with pytest.raises(DataError, match="overflow"):
                self.bound.lower(states)
            return
        found = self.bound.lower(states)
        assert found.type == self.bound.type
        found.validate(full=True)
        spread = max(
            (abs(float(v[0])) for row in self.content for *_, v in row if v and is_finite(v[0])), default=1.0
        )
        for one, other in zip(found.to_pylist(), want, strict=True):
            assert same(one, other, spread), (one, other)


def is_finite(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and math.isfinite(value)


def same(one: Any, other: Any, spread: float) -> bool:
    if isinstance(other, Near):
        return bool(abs(one - other.value) <= other.error) or same(one, other.value, 0.0)
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12 * spread)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, [spread] * len(one)))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key], spread) for key in one)
    return bool(one == other)


@st.composite
def rowsets(draw: st.DrawFn, aggregate: Aggregate, name: str, expected: Any) -> Rowset:
    one_by_one = name in STATISTICS  # each of its inputs by itself decides
    sensible = [type_ for type_ in TYPES if not one_by_one or makes_sense(name, [type_])]
    types = [draw(st.sampled_from(sensible)) for _ in aggregate.inputs]
    assume(makes_sense(name, types))
    bound = aggregate.bind(tuple(types))
    plain = types[0].value_type if types and pa.types.is_dictionary(types[0]) else (types or [None])[0]
    if name != "aggregate":
        assert bound.type == RESULT.get(name, lambda t: t)(plain)
    seqs = iter(draw(st.permutations(range(60))))
    rowset = None
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(0, 4))
        m = draw(st.integers(0, 12))
        group = [draw(st.integers(-1, n - 1)) for _ in range(m)]
        time = [draw(st.integers(-3, 3)) for _ in range(m)]
        seq = [next(seqs) for _ in range(m)]
        nulls = st.none() if draw(st.booleans()) else st.nothing()
        columns = [[draw(TYPES[type_] | nulls) for _ in range(m)] for type_ in types]
        shape = draw(st.sampled_from(["scatter", "ordered", "offsets"]))
        if shape != "scatter":
            order = sorted(range(m), key=lambda i: (group[i], time[i], seq[i]))
            group, time, seq, *columns = ([c[i] for i in order] for c in (group, time, seq, *columns))
        lifted = _lift(aggregate, bound, types, n, group, time, seq, columns, shape, expected)
        rowset = lifted if rowset is None else rowset.join(lifted)
    assert rowset is not None
    return rowset


def _lift(aggregate, bound, types, n, group, time, seq, columns, shape, expected):
    numbers = {k: np.array(v, dtype=np.int64) for k, v in (("group", group), ("time", time), ("seq", seq))}
    offsets = np.searchsorted(numbers["group"], np.arange(n + 1)) if shape == "offsets" else None
    # One entry before, one after, sliced away: arrays may start anywhere in their buffers.
    padded = [
        pa.array([None, *c, None], type_).slice(1, len(c)) for c, type_ in zip(columns, types, strict=True)
    ]
    values = dict(zip(aggregate.inputs, padded, strict=True))
    group_or_none = None if shape == "offsets" else numbers["group"]
    g = Groups(n, group_or_none, shape != "scatter", numbers["time"], numbers["seq"], values, offsets)
    states: dict[Any, Any] = {}
    for p in with_needs(bound.partials):
        states[p] = p.lift(g, tuple(states[q] for q in p.needs))
    content: list[list[Any]] = [[] for _ in range(n)]
    rows = list(zip(*(array.to_pylist() for array in padded), strict=True)) if padded else [()] * len(group)
    for i, k in enumerate(group):
        if k >= 0:
            content[k].append((time[i], seq[i], rows[i]))
    first = types[0] if types else None
    return Rowset(bound, {}, [], lambda rows: expected(rows, first)).of(states, content)
