"""naive_bayes: a classifier that is an aggregate.

Training an *algebraic classifier* is a homomorphism of monoids: the model of two sets of tuples is
the combination of their models (Izbicki, ICML 2013; [fiba, Table 1] counts them among the
mergeable sketches). So a model over a sliding window is always trained on the tuples of that window alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from muntin.aggregates.accepted_types import NUMBERS, Accepted, require
from muntin.aggregates.arguments import Rule, must
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State, with_needs
from muntin.aggregates.extremes import rank
from muntin.aggregates.joining import list_array
from muntin.aggregates.partials.codes import has_codes, order_codes
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.labels import Labelled, PerLabel
from muntin.aggregates.partials.moments import CentralMoment, deviating, total_of

__all__ = ["NaiveBayes"]

Class: TypeAlias = tuple[Any, int, tuple[float, ...], tuple[float, ...]]
"""A label, n, the means and the sums of squared deviations of the columns."""

Classes: TypeAlias = dict[Any, Class]
"""By the rank of the label."""

_SMALLEST = 1e-9
"""Least variance, as a fraction of the model's largest: a constant column must not decide alone."""

_LABELS = Accepted("labels that can be compared", has_codes)
_COLUMNS = Rule(
    'be a list such as ["height", "weight"]',
    lambda columns: isinstance(columns, list | tuple) and bool(columns),
)


@dataclass(frozen=True, slots=True)
class NaiveBayes(Aggregate):
    """Gaussian naive Bayes: how often each label occurs, and mean and variance of each column under it.

    Tuples with a null in one of the columns are skipped; the empty list over none. `classify` gives the
    likeliest label of new values by such a model.

    >>> species = NaiveBayes("species", columns=["length", "width"])
    >>> cats = species.combine(species.lift("cat", 40, 9), species.lift("cat", 50, 11))
    >>> mice = species.combine(species.lift("mouse", 8, 2), species.lift("mouse", 10, 3))
    >>> model = species.lower(species.combine(cats, mice))
    >>> model[0]
    {'label': 'cat', 'count': 2, 'means': [45.0, 10.0], 'variances': [25.0, 1.0]}
    >>> species.classify(model, 12, 3)
    'mouse'
    """

    label: ColumnLike
    columns: Sequence[ColumnLike] = field(metadata=must(_COLUMNS))

    column_fields: ClassVar[tuple[str, ...]] = ("label",)
    column_list = "columns"
    empty: ClassVar[Classes] = {}

    def lift(self, label: Any, *values: Any, at: Order = ORIGIN) -> Classes:
        if label is None or None in values:
            return {}
        return {rank(label): (label, 1, tuple(map(float, values)), (0.0,) * len(values))}

    def combine(self, p: Classes, q: Classes) -> Classes:
        return p | {key: _joined(p[key], one) if key in p else one for key, one in q.items()}

    def lower(self, p: Classes) -> list[dict[str, Any]]:
        return [
            {"label": label, "count": n, "means": list(means), "variances": [s / n for s in squares]}
            for _, (label, n, means, squares) in sorted(p.items())
        ]

    @staticmethod
    def classify(model: Sequence[Mapping[str, Any]], *values: float) -> Any:
        """The label under which these values, one per column, are likeliest; null without any label.

        `model` is a result of this aggregate.
        """
        largest = max((v for one in model for v in one["variances"]), default=0.0) or 1.0

        def likelihood(one: Mapping[str, Any]) -> float:
            log_likelihood = math.log(one["count"])
            for value, mean, variance in zip(values, one["means"], one["variances"], strict=True):
                spread = max(variance, _SMALLEST * largest)
                log_likelihood -= (math.log(spread) + (value - mean) ** 2 / spread) / 2
            return log_likelihood

        return max(model, key=likelihood)["label"] if model else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (label, *columns), label_type = self.inputs, require(self, types, _LABELS)
        totals = [total_of(expr, require(self, types, NUMBERS, k)) for k, expr in enumerate(columns, 1)]
        moments = [CentralMoment(e, total, 2) for e, total in zip(columns, totals, strict=True)]
        apart = PerLabel(label, tuple(columns), with_needs(moments))
        numbers = pa.list_(pa.float64())
        model = pa.struct({"label": label_type, "count": pa.int64(), "means": numbers, "variances": numbers})

        def lower(of_rows: tuple[Labelled]) -> pa.Array:
            (state,) = of_rows
            row = np.repeat(np.arange(len(state.offsets) - 1, dtype=np.int64), np.diff(state.offsets))
            order = np.lexsort((order_codes(state.labels), row))
            states: dict[Any, State] = dict(zip(apart.partials, state.states, strict=True))
            n = states[Values(columns[0])]
            means, variances = [], []
            for total, moment in zip(totals, moments, strict=True):
                sums, squares = states[total], states[moment]
                means.append(total.means(sums, n))
                variances.append(np.where(deviating(squares, total, sums, n), squares, 0.0) / n)
            offsets = pa.array(np.arange(len(n) + 1, dtype=np.int32) * len(totals))
            lists = (
                pa.ListArray.from_arrays(offsets, np.column_stack(part)[order].ravel())
                for part in (means, variances)
            )
            labels = state.labels.take(pa.array(order))
            items = pa.StructArray.from_arrays([labels, pa.array(n[order]), *lists], fields=list(model))
            return list_array("naive_bayes", state.offsets, items, pa.list_(model))

        return Bound(pa.list_(model), (apart,), lower)


def _joined(p: Class, q: Class) -> Class:
    """Two partial models of one class combined, by Chan's formula."""
    (label, m, p_means, p_squares), (_, n, q_means, q_squares) = p, q
    apart = [y - x for x, y in zip(p_means, q_means, strict=True)]
    means = (x + d * n / (m + n) for x, d in zip(p_means, apart, strict=True))
    squares = (s + t + d * d * m * n / (m + n) for s, t, d in zip(p_squares, q_squares, apart, strict=True))
    return label, m + n, tuple(means), tuple(squares)
