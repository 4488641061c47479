"""What the benchmark `aggregates` must find: every window recomputed with NumPy from the sorted stream.

Nothing here uses the aggregates themselves. The tuples of a window are a range of the stream in event-time
order, so each function below gets slices of the columns: `v` the values, `p` the prices, `c` the names as
the codes 0 to 6.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.testing.oracle.bloom import xxh64
from muntin.testing.rows import same_value

__all__ = [
    "DISTINCT",
    "EXPECTED",
    "NAMES",
    "Ranges",
    "Stream",
    "check",
    "count_ranges",
    "session_ranges",
    "tumbling_ranges",
]

NAMES = "abcdefg"

DISTINCT = 84_232
"""Distinct values of the football data, over which the paper measures. [scotty §10.3.2]"""

_FILTER = 64 * math.ceil(-10_000 * math.log(0.01) / math.log(2) ** 2 / 64)
"""Bits of a Bloom filter."""

Array = npt.NDArray[Any]
Recomputed = Callable[[Array, Array, Array], Any]


@dataclass(frozen=True, slots=True)
class Stream:
    """The columns of the whole stream in event-time order."""

    time: Array
    value: Array
    price: Array
    code: Array


@dataclass(frozen=True, slots=True)
class Ranges:
    """The windows of a query: where they start in time, and which tuples of the stream they hold."""

    start: Array
    begin: Array
    end: Array


def tumbling_ranges(stream: Stream, length: int) -> Ranges:
    """The ranges of tumbling windows; `length` is in microseconds."""
    start = stream.time // length * length
    begin = np.flatnonzero(np.append(True, np.diff(start) > 0))
    return Ranges(start[begin], begin, np.append(begin[1:], len(start)))


def count_ranges(stream: Stream, n: int) -> Ranges:
    """Of windows of n tuples; the last ones are too few."""
    begin = np.arange(0, len(stream.time) - n + 1, n)
    return Ranges(stream.time[begin], begin, begin + n)


def session_ranges(stream: Stream) -> Ranges:
    """One session: no gap is so long."""
    return Ranges(stream.time[:1], np.array([0]), np.array([len(stream.time)]))


def check(results: pa.Table, names: list[str], ranges: dict[str, Ranges], stream: Stream) -> None:
    """An AssertionError if the windows that came out are not those expected, or if a result is wrong."""
    for query, wanted in ranges.items():
        mine = results.filter(pc.equal(results["window_name"], query))
        starts = mine["window_start"].cast(pa.int64()).to_numpy()
        if not np.array_equal(starts, wanted.start):
            raise AssertionError(f"{query}: {len(starts)} windows from {starts} on, not {wanted.start}")
        for name in names:
            _check_column(name, mine[name], wanted, stream)


def _check_column(name: str, column: pa.ChunkedArray, ranges: Ranges, stream: Stream) -> None:
    expected = EXPECTED[name]
    for found, b, e in zip(column, ranges.begin.tolist(), ranges.end.tolist(), strict=True):
        columns = stream.value[b:e], stream.price[b:e], stream.code[b:e]
        if isinstance(expected, Within):
            right, wanted = expected.holds(found.as_py(), *columns), "within its bounds"
        else:
            wanted = expected(*columns)
            right = _same(_plain(found), wanted)
        if not right:
            shown = f"{found.as_py()!r:.200}, not {wanted!r:.200}"
            raise AssertionError(f"{name} of the tuples {b} to {e} is {shown}")


def _plain(found: pa.Scalar) -> Any:
    if isinstance(found, pa.ListScalar) and not pa.types.is_nested(found.type.value_type):
        return found.values.to_numpy(zero_copy_only=False)
    return found.as_py()


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, np.ndarray):
        return found.shape == np.shape(wanted) and np.allclose(found, wanted, rtol=1e-9, atol=0.0)
    if isinstance(wanted, np.generic):
        wanted = wanted.item()
    if isinstance(wanted, float):  # skewness is near 0
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    return same_value(found, wanted)


# --- exact results ------------------------------------------------------------------------------------


def _central(x: Array, power: int) -> float:
    deviations = x - x.mean()
    squares = deviations * deviations
    return float(np.mean(squares if power == 2 else squares * (deviations if power == 3 else squares)))


def _first_of_each(v: Array) -> Array:
    """The distinct values by their first occurrence: of equal ones the earliest writes last."""
    place = np.empty(int(v.max()) + 1, dtype=np.int64)
    place[v[::-1]] = np.arange(len(v))[::-1]
    first: Array = v[place[v] == np.arange(len(v))]
    return first


def _histogram(v: Array, bins: int) -> list[dict[str, Any]]:
    low, high = float(v.min()), float(v.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.append(low + np.arange(bins) * (high / bins - low / bins), high)
    inner = np.searchsorted(np.sort(v), edges[1:-1])
    counts = np.diff(np.concatenate([[0], inner, [len(v)]]))
    rows = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return [{"start": start, "end": end, "count": count} for start, end, count in rows]


def _model(p: Array, c: Array) -> list[dict[str, Any]]:
    classes = [(code, p[c == code]) for code in np.unique(c).tolist()]
    return [
        {"label": NAMES[code], "count": len(x), "means": [x.mean()], "variances": [x.var()]}
        for code, x in classes
    ]


@functools.cache
def _positions() -> Array:
    """The bits that each value sets in a filter for 10,000 values and an error of 1%, as in DataSketches."""
    found = []
    for value in range(DISTINCT):
        data = struct.pack("<q", value)
        first = xxh64(data, 9001)
        second = xxh64(data, first)
        found.append([((first + i * second) % 2**64 >> 1) % _FILTER for i in range(1, 8)])
    return np.array(found)


def _bloom(found: bytes, v: Array) -> bool:
    bits = np.zeros(_FILTER, dtype=np.bool_)
    bits[_positions()[v]] = True
    return found[32:] == np.packbits(bits, bitorder="little").tobytes()


def _distinct(v: Array) -> int:
    return int(np.count_nonzero(np.bincount(v)))


# --- estimates ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Within:
    """A result that may be off, by a known bound."""

    holds: Callable[[Any, Array, Array, Array], bool]


def _near_rank(found: float, v: Array, q: float) -> bool:
    """Three times the documented error of a KLL sketch, since thousands of windows are looked at."""
    slack = 3 * 0.0133
    return bool(np.mean(v < found) - slack <= q <= np.mean(v <= found) + slack)


def _near_count(found: int, true: int) -> bool:
    """Six standard errors of the sketches of distinct values."""
    return abs(found - true) <= 6 * 1.04 / math.sqrt(2**12) * true


def _counts(found: list[dict[str, Any]], v: Array) -> bool:
    """Never too few, and too many by at most three times what the sketch is allowed mostly."""
    true = [int(np.sum(v == one["item"])) for one in found]
    return all(t <= one["count"] <= t + 0.03 * len(v) for one, t in zip(found, true, strict=True))


def _frequent(found: list[dict[str, Any]], v: Array) -> bool:
    """All bounds hold, and whatever is more frequent than they are apart is there."""
    counts = np.bincount(v)
    apart = 3.5 / 2**10 * len(v)
    bounds = all(one["lower"] <= counts[one["item"]] <= one["upper"] <= one["lower"] + apart for one in found)
    return bounds and set(np.flatnonzero(counts > apart).tolist()) <= {one["item"] for one in found}


EXPECTED: dict[str, Recomputed | Within] = {
    "approx_count_distinct": Within(lambda found, v, p, c: _near_count(found, _distinct(v))),
    "approx_quantile": Within(lambda found, v, p, c: _near_rank(found, v, 0.9)),
    "arg_max": lambda v, p, c: v[np.argmax(p)],
    "arg_min": lambda v, p, c: v[np.argmin(p)],
    "bit_and": lambda v, p, c: np.bitwise_and.reduce(v),
    "bit_or": lambda v, p, c: np.bitwise_or.reduce(v),
    "bit_xor": lambda v, p, c: np.bitwise_xor.reduce(v),
    "bloom": Within(lambda found, v, p, c: _bloom(found, v)),
    "collect": lambda v, p, c: v,
    "collect_set": lambda v, p, c: _first_of_each(v),
    "concat": lambda v, p, c: (c + ord(NAMES[0])).astype(np.uint8).tobytes().decode(),
    "correlation": lambda v, p, c: np.corrcoef(v, p)[0, 1],
    "count": lambda v, p, c: len(v),
    "count_distinct": lambda v, p, c: _distinct(v),
    "count_if": lambda v, p, c: np.sum(v < 1000),
    "count_min": Within(lambda found, v, p, c: _counts(found, v)),
    "covariance": lambda v, p, c: np.cov(v, p)[0, 1],
    "every": lambda v, p, c: np.all(v < 1000),
    "first": lambda v, p, c: v[0],
    "frequent_items": Within(lambda found, v, p, c: _frequent(found, v)),
    "geometric_mean": lambda v, p, c: np.exp(np.mean(np.log(p))),
    "histogram": lambda v, p, c: _histogram(v, 10),
    "kurtosis": lambda v, p, c: _central(v, 4) / _central(v, 2) ** 2 - 3,
    "last": lambda v, p, c: v[-1],
    "m4": lambda v, p, c: {"min": v.min(), "max": v.max(), "first": v[0], "last": v[-1]},
    "max": lambda v, p, c: v.max(),
    "max_count": lambda v, p, c: np.sum(v == v.max()),
    "mean": lambda v, p, c: v.mean(),
    "median": lambda v, p, c: np.median(v),
    "min": lambda v, p, c: v.min(),
    "min_count": lambda v, p, c: np.sum(v == v.min()),
    "mode": lambda v, p, c: np.argmax(np.bincount(v)),
    "naive_bayes": lambda v, p, c: _model(p, c),
    "nth": lambda v, p, c: v[-10],
    "own sum, compiled": lambda v, p, c: v.sum(),
    "own sum, interpreted": lambda v, p, c: v.sum(),
    "own weighted mean, compiled": lambda v, p, c: np.sum(v * p) / np.sum(p),
    "percentiles": lambda v, p, c: np.quantile(v, [0.5, 0.9]),
    "quantile": lambda v, p, c: np.quantile(v, 0.9),
    "skewness": lambda v, p, c: _central(v, 3) / _central(v, 2) ** 1.5,
    "some": lambda v, p, c: np.any(v < 1000),
    "stddev": lambda v, p, c: v.std(ddof=1),
    "sum": lambda v, p, c: v.sum(),
    "theta": Within(lambda found, v, p, c: _near_count(found, _distinct(v))),
    "top_k": lambda v, p, c: np.sort(v)[:-11:-1],
    "variance": lambda v, p, c: v.var(ddof=1),
    "weighted_mean": lambda v, p, c: np.average(v, weights=p),
}
"""For each aggregate of the benchmark, what its result is over a window."""
