"""The query as frozen data: windows, aggregates, keys, time and policies.

`QuerySpec` validates its arguments in each method, so that an error is raised where
the mistake is written; `validated()` also refuses an incomplete query. `muntin.dsl.Query`,
in a higher layer, runs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

from muntin import foreign_names
from muntin.aggregates.base import Aggregate
from muntin.call_errors import checked_call
from muntin.errors import QueryError, nearest, value_text
from muntin.expressions.foreign import plain_name
from muntin.query.forms import fingerprint_form, source_form
from muntin.query.policies import MAX_WINDOWS, EachBatch, Every, OnChange, OnClose
from muntin.timeline import Micros, SpanLike, format_span, span
from muntin.windows.base import Window

WINDOW_NAME = "window_name"
"""The result column with the name of the window."""
RESERVED = (WINDOW_NAME, "window", "kind", "revision")
"""Columns that every result has in addition to the keys and the aggregates."""
EDGE_PREFIX = "window_"
"""The beginning of the names of edges where they are columns of their own: `window_start`, `window_end`."""
ORDINAL = "ordinal"
"""The field of `window` that numbers the windows of a key with the same edges, from 0 on."""

_ON_CLOSE = OnClose()

FREE_POLICIES: dict[str, Any] = {
    "bad": "fail", "on_error": "fail", "idle_after": None, "max_ahead": None, "max_windows": 2**62,
}  # fmt: skip
"""Policies that no state depends on, each with a value that every query may have.

A stream may go on from its state with other ones.
"""

Late: TypeAlias = Literal["drop", "route"]
Bad: TypeAlias = Literal["fail", "skip", "route"]
OnError: TypeAlias = Literal["fail", "skip"]
_CHOICES = {"late": get_args(Late), "bad": get_args(Bad), "on_error": get_args(OnError)}


class _Field(tuple[Any, ...]):
    """The values of a field of a query; calling it like a method is an error that names the method."""

    cure: ClassVar[str]

    if not TYPE_CHECKING:  # type checkers must still report such a call

        def __call__(self, *_: object, **__: object) -> None:
            raise QueryError(self.cure)


class _Windows(_Field):
    cure = (
        "the windows of a query are named in one call: got another call of windows(); write "
        'mt.windows(minute=w.tumbling("1 minute"), hour=w.tumbling("1 hour"))'
    )


class _Aggregates(_Field):
    cure = 'aggregates are added with .aggregate(total=a.sum("amount")): got a call of aggregates()'


class _Keys(_Field):
    cure = 'keys are named with .by("shop"): got a call of keys()'


LISTED = frozenset({_Windows, _Aggregates, _Keys})
"""The types of the fields of a query that hold several values."""


@dataclass(frozen=True)
class QuerySpec:
    """Named windows over one stream, with the aggregates that all of them compute.

    Every method returns a new object; the one it is called on stays as it is.
    """

    windows: tuple[tuple[str, Window], ...]
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    keys: tuple[str, ...] = ()
    time: str = ""
    allowed_lateness: int = 0
    emit: OnClose | OnChange = _ON_CLOSE
    early: Every | EachBatch | None = None
    late: Late = "drop"
    bad: Bad = "fail"
    idle_after: int | None = None
    forget_keys_after: int | None = None
    max_ahead: int | None = None
    max_windows: int | None = None
    on_error: OnError = "fail"

    def __post_init__(self) -> None:
        for name, kind in (("windows", _Windows), ("aggregates", _Aggregates), ("keys", _Keys)):
            object.__setattr__(self, name, kind(getattr(self, name)))
        _check_names(self)
        _check_policies(self)
        _check_lengths(self)

    def aggregate(self, *unnamed: Aggregate, **named: Aggregate) -> Self:
        """Add aggregates; each becomes a column of the result under its name."""
        if unnamed or not named:
            raise QueryError('aggregates need names: write .aggregate(total=a.sum("amount"))')
        query = replace(self, aggregates=(*self.aggregates, *named.items()))
        check_over(query)
        return query

    def by(self, *columns: str) -> Self:
        """Compute separately for each value of these columns; no column means one stream."""
        return replace(self, keys=tuple(c if isinstance(c, str) else plain_name(c) for c in columns))

    @checked_call(foreign=foreign_names.POLICIES)
    def on(
        self,
        time: str,
        *,
        allowed_lateness: SpanLike = 0,
        emit: OnClose | OnChange | None = None,
        early: Every | EachBatch | None = None,
        late: Late = "drop",
        bad: Bad = "fail",
        idle_after: SpanLike | None = None,
        forget_keys_after: SpanLike | None = None,
        max_ahead: SpanLike | None = None,
        max_windows: int | None = None,
        on_error: OnError = "fail",
    ) -> Self:
        """Say which column is the time, and what happens to late, early and bad tuples.

        Args:
            time: A timestamp column, or an integer column whose unit is then the
                unit of integer window lengths.
            allowed_lateness: How long after its end a window still takes late tuples.
            emit: Which complete windows are emitted: `mt.on_close()`, all of them, or `mt.on_change()`,
                those whose values differ from the window before.
            early: Results of open windows: `mt.every("10 seconds")` or `mt.each_batch()`.
            late: Tuples too late for every window are counted and dropped, or also
                routed to the late output.
            bad: Tuples without a usable time, with a value of a wrong type, or that an
                expression or the `lift` of an aggregate refuses, fail the run, are skipped,
                or are routed.
            idle_after: Close the windows of a stream that was silent for this long.
            forget_keys_after: Forget a key that has no tuple for this span of event time. Its open
                windows close after its last tuple, and a later tuple is treated as that of a new
                key, with rank 0. Applies to windows that would otherwise hold every key for ever:
                windows cut by tuples, `emit_empty`, and the values that `mt.on_change()` compares.
                Other windows on time, and sessions, do not change.
            max_ahead: A tuple whose time is further ahead of the clock than this is a bad
                tuple. By default 366 days where the watermark follows the data
                (`watermark_lag`, `in_order=True`), otherwise unlimited; a long duration
                lifts the limit. Not for integer time columns, which have no clock.
            max_windows: The most windows of one name that a step may emit (an `advance`, the
                end of a table, a batch that moves the watermark). A step beyond it is an
                error, raised before it takes memory. By default 10 million, or 1,000 per
                slice or key that the step reads, whichever is more.
            on_error: With "fail", a value that cannot be computed (a sum that overflows, a
                function of an aggregate that raises) is an error. With "skip" it is null, and
                a record on which the code of a window raises opens and closes no window.
        """
        return replace(
            self,
            time=time if isinstance(time, str) else plain_name(time),
            allowed_lateness=span(allowed_lateness, "allowed_lateness"),
            emit=_ON_CLOSE if emit is None else emit,
            early=early,
            late=late,
            bad=bad,
            idle_after=_optional_span(idle_after, "idle_after"),
            forget_keys_after=_optional_span(forget_keys_after, "forget_keys_after"),
            max_ahead=_optional_span(max_ahead, "max_ahead"),
            max_windows=_plain_integer(max_windows),
            on_error=on_error,
        )

    def validated(self) -> Self:
        """The query itself, if it is complete; otherwise a QueryError says what is missing."""
        if not self.aggregates:
            raise QueryError('the query has no aggregate: add .aggregate(total=a.sum("amount"))')
        if not self.time:
            raise QueryError('the query has no time column: add .on("ts")')
        return self

    def shown_aggregates(self) -> tuple[tuple[str, Aggregate], ...]:
        """The aggregates that some window has; the others cost nothing."""
        names = [name for name, _ in self.windows]
        return tuple((n, one) for n, one in self.aggregates if any(map(one.is_over, names)))

    def fingerprint(self) -> str:
        """A text that is the same for equal queries, in every process and on every machine.

        User-defined functions count by module and name, not by what they do.
        """
        import hashlib  # here, as it loads OpenSSL

        text = json.dumps(fingerprint_form(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        return source_form(self)


def check_over(query: QuerySpec) -> None:
    """Check that aggregates are over windows of the query, and those that end windows (`until`) over none.

    Not checked after windows were removed: an aggregate over a removed window is null everywhere.
    """
    names = [name for name, _ in query.windows]
    for aggregate_name, aggregate in query.aggregates:
        for window in aggregate.only or ():
            if window not in names:
                raise QueryError(
                    f'the aggregate "{aggregate_name}" must be over windows of the query: got "{window}"; '
                    f"there are {', '.join(names)}.{nearest(window, names)}"
                )
    for name, item in query.windows:
        for aggregate in item.aggregates:
            if aggregate.only is not None:
                raise QueryError(
                    f'the aggregate that ends the windows of "{name}" must not be over some windows: got '
                    f"{aggregate}; leave .over() out"
                )


def _optional_span(value: object, name: str) -> int | None:
    return None if value is None else span(value, name)


def _plain_integer(value: Any) -> Any:
    """An integer of NumPy as one of Python; anything else as it is."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _check_names(spec: QuerySpec) -> None:
    """Windows, aggregates and keys are of their kind, and no two columns of a result have one name."""
    if not spec.windows:
        raise QueryError('a query needs a window: write mt.windows(minute=w.tumbling("1 minute"))')
    for name, window in spec.windows:
        if not (isinstance(window, Window) and isinstance(name, str) and name):
            raise _not_an_item(name, window, "a window", 'w.tumbling("1 minute")')
    for name, aggregate in spec.aggregates:
        if not (isinstance(aggregate, Aggregate) and isinstance(name, str) and name):
            raise _not_an_item(name, aggregate, "an aggregate", 'a.sum("amount")')
    for key in spec.keys:
        if not (isinstance(key, str) and key):
            raise QueryError(f'by() takes names of columns, .by("shop"): got {value_text(key)}')
    windows, aggregates = dict(spec.windows), dict(spec.aggregates)
    for what, names, distinct in (
        ("window", [name for name, _ in spec.windows], windows),
        ("key column", spec.keys, set(spec.keys)),
        ("aggregate", [name for name, _ in spec.aggregates], aggregates),
    ):
        if len(names) > len(distinct):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise QueryError(f'the name of each {what} must be unique: got "{twice}" twice; rename one')
        columns = (*RESERVED, *(EDGE_PREFIX + edge for edge in edge_names(windows.values())))
        reserved = [name for name in names if name in columns]
        if reserved and what != "window":
            raise QueryError(
                f'the {what} "{reserved[0]}" has the name of a result column '
                f"({', '.join(columns)}); rename it, for example to {reserved[0]}_1"
            )
    for key in spec.keys:
        if key in aggregates:
            raise QueryError(f'"{key}" is a key column and an aggregate; rename the aggregate')
    ranked = [name for name, window in windows.items() if window.counts_tuples]
    named = [name for name, window in windows.items() if window.measure == "rank"]
    if ranked and named:
        raise QueryError(
            f'a measure must not be named "rank" beside windows that count tuples: got "{named[0]}" and '
            f'"{ranked[0]}", whose edges would both be start_rank and end_rank; rename the column'
        )


def edge_names(windows: Iterable[Window]) -> list[str]:
    """The fields of `window` in results: start and end in time, on ranks or measures, and the ordinal."""
    names = {"start": None, "end": None}
    ordinal = False
    for window in windows:
        if window.on_measure:
            measure = window.measure or "rank"
            names |= {f"start_{measure}": None, f"end_{measure}": None}
        ordinal = ordinal or window.repeats
    return [*names, *([ORDINAL] if ordinal else [])]


def _not_an_item(name: object, item: object, what: str, example: str) -> QueryError:
    if not (isinstance(name, str) and name):
        return QueryError(f"the name of {what} must be a text: got {value_text(name)}")
    cure = f"write {name}={example}"
    if callable(item):  # a class, or a constructor
        cure = f"did you forget to call it? {cure}"
    return QueryError(f'"{name}" must be {what}: got {value_text(item)}; {cure}')


def _check_policies(spec: QuerySpec) -> None:
    if not isinstance(spec.time, str):
        raise QueryError(f'on() takes the name of the time column, .on("ts"): got {value_text(spec.time)}')
    if spec.allowed_lateness < 0:
        raise QueryError(
            f"allowed_lateness must not be negative: got {value_text(format_span(spec.allowed_lateness))}; "
            "0 drops every late tuple"
        )
    if not isinstance(spec.emit, OnClose | OnChange):
        raise QueryError(
            f"emit must be mt.on_close() or mt.on_change(): got {value_text(spec.emit)}"
            + ("; did you forget to call it?" if callable(spec.emit) else "; early results go to early=")
        )
    if spec.early is not None and not isinstance(spec.early, Every | EachBatch):
        raise QueryError(
            f'early must be mt.every("10 seconds") or mt.each_batch(): got {value_text(spec.early)}'
            + ("; did you forget to call it?" if callable(spec.early) else "")
        )
    for name, choices in _CHOICES.items():
        value = getattr(spec, name)
        if not isinstance(value, str) or value not in choices:
            raise QueryError(
                f"{name} must be {' or '.join(json.dumps(choice) for choice in choices)}: "
                f"got {value_text(value)}." + nearest(value, choices)
            )
    for name, length, example in (
        ("idle_after", spec.idle_after, "30 seconds"),
        ("max_ahead", spec.max_ahead, "1 hour"),
    ):
        if length is not None and (not isinstance(length, Micros) or length <= 0):
            raise QueryError(
                f"{name} must be a positive duration of wall-clock time: got "
                f'{format_span(length)!r}; write {name}="{example}"'
            )
    if spec.forget_keys_after is not None and spec.forget_keys_after <= 0:
        raise QueryError(
            "forget_keys_after must be a positive length of event time: got "
            f'{format_span(spec.forget_keys_after)!r}; write forget_keys_after="7 days", '
            "or leave it out to forget no key"
        )
    if spec.max_windows is not None and (type(spec.max_windows) is not int or spec.max_windows < 1):
        raise QueryError(
            f"max_windows must be a whole number from 1 on: got {value_text(spec.max_windows)}; "
            f"leave it out for {MAX_WINDOWS:_}"
        )


def _check_lengths(spec: QuerySpec) -> None:
    """Lengths of event time are all durations or all integers (0 is both), and windows overlap within bounds.

    The bound is `max_windows`: no tuple may lie in more windows of one name than a step may emit. It is
    checked once `.on()` has been called.
    """
    lengths: list[tuple[str, Any]] = [
        (f'window "{name}"', length)
        for name, window in spec.windows
        if window.measure is None
        for length in window.spans()
    ]
    lengths.append(("allowed_lateness", spec.allowed_lateness))
    if isinstance(spec.early, Every):
        lengths.append(("early", spec.early.period))
    lengths.append(("forget_keys_after", spec.forget_keys_after))
    durations = [(where, length) for where, length in lengths if length and isinstance(length, Micros)]
    integers = [(where, length) for where, length in lengths if length and not isinstance(length, Micros)]
    if durations and integers:
        raise QueryError(
            "lengths must be all durations (for a timestamp column) or all integers (for an integer "
            f'column): got "{format_span(durations[0][1])}" in {durations[0][0]} '
            f"and {integers[0][1]} in {integers[0][0]}"
        )
    if integers and spec.max_ahead is not None:
        where, length = integers[0]
        raise QueryError(
            "max_ahead needs a timestamp column, since an integer time column has no clock: got "
            f'max_ahead="{format_span(spec.max_ahead)}" and {length} in {where}; leave max_ahead out, '
            "and filter tuples from the future before they reach the query"
        )
    most = MAX_WINDOWS if spec.max_windows is None else spec.max_windows
    for name, window in spec.windows if spec.time else ():
        if (per_tuple := window.per_tuple) > most:
            raise QueryError(
                f'a tuple must not lie in more than {most:,} windows of one name: got "{name}" '
                f"({window.describe()}), of which {per_tuple:,} hold each tuple; let fewer of them "
                f"overlap, or allow more with .on(..., max_windows={per_tuple:_})"
            )
