"""The choice of the plan: Spark's own operators in the JVM, or packed groups in Python workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import pyarrow as pa
from pyarrow import types as t
from pyspark.sql.types import TimestampType

from muntin.aggregates.base import Aggregate
from muntin.connectors.spark.input_columns import arrow_schema
from muntin.connectors.spark.jvm.aggregates import only_uncombined, unfit
from muntin.connectors.spark.jvm.bounded import is_one_slice
from muntin.connectors.spark.jvm.expressions import UntranslatableError, computes, to_column
from muntin.connectors.spark.jvm.window_columns import TRANSLATED, has_other_periods, is_tumbling
from muntin.connectors.spark.watermark import MARK
from muntin.errors import QueryError, nearest
from muntin.expressions import Expr
from muntin.query import OnChange, QuerySpec
from muntin.slicing.binding import Binding, require
from muntin.windows.base import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Case", "Choice", "PlanName", "choose"]

PlanName: TypeAlias = Literal["auto", "jvm", "packed"]
Kinds: TypeAlias = tuple[pa.DataType, ...]


@dataclass(frozen=True)
class Case:
    """A query and the DataFrame that it is to run on."""

    query: QuerySpec
    frame: DataFrame
    changing: bool = False
    """Whether windows may be added and removed while the stream runs."""

    @cached_property
    def zone(self) -> str:
        """The zone of the session."""
        return str(self.frame.sparkSession.conf.get("spark.sql.session.timeZone"))

    @cached_property
    def checked(self) -> bool:
        """Whether Spark's arithmetic fails on an overflow instead of giving a wrong value."""
        return self.frame.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"

    @cached_property
    def binding(self) -> Binding:
        """The query over the columns of the DataFrame; an error where it does not fit them."""
        schema = arrow_schema(self.frame, self.zone)
        require((self.query.time, *self.query.keys), schema)
        return Binding.of(self.query, dict(self.query.windows), schema)

    def windows(self, wanted: Callable[[Window], object]) -> tuple[str, ...]:
        """The names of the windows with this property."""
        return tuple(name for name, window in self.query.windows if wanted(window))

    def aggregates(self, wanted: Callable[[Aggregate, Kinds], object]) -> tuple[str, ...]:
        """The names of the aggregates with this property, which may depend on the types of the inputs."""
        types = self.binding.types
        kinds = {name: tuple(types[expr] for expr in a.inputs) for name, a in self.query.aggregates}
        return tuple(name for name, a in self.query.aggregates if wanted(a, kinds[name]))

    def can_translate(self, expr: Expr) -> bool:
        """Whether Spark has an expression with the same meaning."""
        try:
            to_column(expr, self.binding.schema)
        except UntranslatableError:
            return False
        return True


@dataclass(frozen=True)
class Rule:
    """A reason why a plan cannot run, and the condition of it, which may return the names it is about."""

    applies: Callable[[Case], tuple[str, ...] | bool]
    reason: str


@dataclass(frozen=True)
class Choice:
    """The plan, and why it is not the other one."""

    plan: Literal["jvm", "packed"]
    reason: str


def _computing(aggregate: Aggregate) -> bool:
    return any(map(computes, aggregate.reads))


def _unchecked(case: Case) -> tuple[str, ...] | bool:
    computed = case.aggregates(lambda a, kinds: _computing(a) or any(map(t.is_decimal, kinds)))
    return not case.checked and computed


def _nested_keys(case: Case) -> tuple[str, ...]:
    keys = zip(case.query.keys, case.binding.keys, strict=True)
    return tuple(name for name, kind in keys if t.is_nested(kind) or t.is_duration(kind))


ALWAYS = (
    Rule(lambda c: c.query.early is not None, "early results are asked for"),
    Rule(lambda c: isinstance(c.query.emit, OnChange), "only changes are emitted"),
    Rule(lambda c: c.query.late == "route", "late tuples are routed"),
    Rule(lambda c: c.query.bad == "route", "bad tuples are routed"),
    Rule(lambda c: c.query.on_error == "skip", "values that cannot be computed are skipped"),
    Rule(lambda c: c.query.max_windows is not None, "the windows of a step are limited"),
    Rule(
        lambda c: c.query.bad == "skip" and c.aggregates(lambda a, _: _computing(a)),
        "tuples for which an expression fails are skipped",
    ),
    Rule(
        lambda c: c.windows(lambda w: not isinstance(w, TRANSLATED)),
        "windows follow the tuples, a measure, or the newest tuple of all keys",
    ),
    Rule(lambda c: c.windows(lambda w: getattr(w, "emit_empty", False)), "empty windows are emitted"),
    Rule(
        lambda c: c.windows(lambda w: has_other_periods(w, c.zone)),
        "calendar windows have an offset, or are not in the zone of the session",
    ),
    Rule(lambda c: c.aggregates(lambda a, _: a.only is not None), "aggregates are over some of the windows"),
    Rule(lambda c: c.aggregates(unfit), "Spark has no such aggregate, or not over these types"),
    Rule(
        lambda c: c.aggregates(lambda a, _: not all(map(c.can_translate, a.reads))),
        "expressions say something that Spark's do not mean in the same way",
    ),
    Rule(_unchecked, "spark.sql.ansi.enabled is off: Spark's arithmetic would hide an overflow"),
    Rule(_nested_keys, "keys are nested, or durations"),
)
"""Why a query cannot run in the JVM."""

BOUNDED = (
    *ALWAYS,
    Rule(lambda c: c.query.max_ahead is not None, "tuples from the future are bad"),
    Rule(
        lambda c: not is_one_slice(c.query) and c.aggregates(lambda a, _: only_uncombined(a)),
        "deviations of several slices cannot be combined in SQL without a loss of digits",
    ),
)
"""The same for a bounded DataFrame."""


def _has_watermark(case: Case) -> bool:
    field = case.frame.schema[case.query.time]
    return isinstance(field.dataType, TimestampType) and MARK in (field.metadata or {})


STREAMING = (
    Rule(lambda c: c.changing, "windows may come and go"),
    Rule(
        lambda c: len(c.query.windows) > 1 or not is_tumbling(c.query.windows[0][1]),
        "Spark's own operator serves a single tumbling window only",
    ),
    Rule(lambda c: bool(c.query.allowed_lateness), "late tuples are allowed to change results"),
    Rule(lambda c: c.query.idle_after is not None, "a silent stream closes its windows"),
    Rule(lambda c: not _has_watermark(c), "there is no watermark on a timestamp column that is the time"),
    *ALWAYS,
)
"""Why a streaming query cannot be handed to Spark's own `window()`."""


def choose(case: Case, plan: str = "auto") -> Choice:
    """The plan that runs; an error if the wanted one cannot."""
    if plan not in get_args(PlanName):
        raise QueryError(
            f'plan must be "auto", "jvm" or "packed": got {plan!r}.{nearest(str(plan), get_args(PlanName))}'
        )
    case.binding  # noqa: B018  # an error where the query does not fit the columns
    if plan == "packed":
        return Choice("packed", 'plan="packed" says so')
    reason = _refusal(case)
    if reason is None:
        return Choice("jvm", "the windows and the aggregates are such that Spark has them itself")
    if plan == "jvm":
        raise QueryError(f'plan="jvm" cannot run this query: {reason}; leave plan= out, or change the query')
    return Choice("packed", reason)


def _refusal(case: Case) -> str | None:
    """The first reason why it cannot run in the JVM."""
    for rule in STREAMING if case.frame.isStreaming else BOUNDED:
        if names := rule.applies(case):
            return rule.reason + (f" ({', '.join(names)})" if isinstance(names, tuple) else "")
    return None
