"""`query.explain(df)`: the plan that runs on a DataFrame, its reason, and its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import TimestampType

from muntin.connectors.spark.guard import with_watermark
from muntin.connectors.spark.jvm.blocks import block_size
from muntin.connectors.spark.jvm.bounded import is_one_slice
from muntin.connectors.spark.plan_choice import Case, Choice, choose
from muntin.connectors.spark.spark_session import PROVIDER
from muntin.connectors.spark.watermark import watermarks
from muntin.planning import plan as planning
from muntin.planning.plan import Explanation
from muntin.query import MAX_AHEAD, QuerySpec
from muntin.timeline import format_span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["explain"]

PARTITIONS = "spark.sql.shuffle.partitions"


def explain(query: QuerySpec, frame: DataFrame, plan: str = "auto", verbose: bool = False) -> Explanation:
    """The steps of the query on this DataFrame; for packed groups the engine's plan as well."""
    if frame.isStreaming and not watermarks(frame) and _is_timestamp(query, frame):
        frame = with_watermark(query, frame, "0 seconds")  # `transform` sets one, too
    case = Case(query, frame)
    choice = choose(case, plan)
    types = {field.name: field.type for field in case.binding.schema}
    engine = planning.explain(query, types=types)
    lines = ["spark", f"  input: a {'streaming' if frame.isStreaming else 'bounded'} DataFrame"]
    lines += [f"  plan: {line}" for line in _named(case, choice)]
    if frame.isStreaming:
        lines.append(f"  watermark: {_watermark(query)}")
    lines += ["steps", *(f"  {i}. {step}" for i, step in enumerate(_steps(case, choice), 1))]
    lines += ["settings", *(f"  {name}: {value}" for name, value in _settings(case))]
    if choice.plan == "packed":
        lines.append(engine.details)
    else:
        lines += ["query", *(f"  {name}: {value}" for name, value in planning.settings(query))]
    return Explanation(engine.plan, _summary(case, choice, engine), "\n".join(lines), verbose)


def _summary(case: Case, choice: Choice, engine: Explanation) -> tuple[tuple[str, str], ...]:
    """As of the embedded engine, with the place where the query runs, and what differs there."""
    texts, streaming = dict(engine.summary), case.frame.isStreaming
    if choice.plan == "packed":
        where = "in Python workers, a group of keys each"
    elif streaming:
        where = "with Spark's own window()"
        texts["keeps"] = "one row per key and window that is open"
    else:
        where = "in Spark's own operators"
    if not streaming:
        texts["keeps"] = "nothing: the input is read once, and aggregated in each partition first"
        texts["emits"] = "every window, at the end of the input; no tuple is late"
    return (("runs", f"{where}: {choice.reason}"), *texts.items())


def _is_timestamp(query: QuerySpec, frame: DataFrame) -> bool:
    return query.time in frame.columns and isinstance(frame.schema[query.time].dataType, TimestampType)


def _named(case: Case, choice: Choice) -> list[str]:
    if choice.plan == "packed":
        return [f"packed groups in Python workers, not the JVM: {choice.reason}"]
    if not case.frame.isStreaming:
        return [f'Spark\'s own operators in the JVM: {choice.reason}; plan="packed" forces Python workers']
    return [
        f"Spark's own window(): {choice.reason}",
        'plan="packed" forces Python workers; faster with tens of thousands of keys',
        "only in the output mode append, since window() shows windows that are not complete in the others",
    ]


def _watermark(query: QuerySpec) -> str:
    limit = format_span(query.max_ahead or MAX_AHEAD)
    return (
        'Spark\'s, on the time column; transform(query, watermark="10 seconds") sets it, and tuples more '
        f"than {limit} ahead of the clock do not move it and are bad"
    )


def _steps(case: Case, choice: Choice) -> list[str]:
    if choice.plan == "packed":
        return _packed_steps(case)
    key = ", ".join(case.query.keys) or "no key"
    if case.frame.isStreaming or is_one_slice(case.query):
        return [
            f"JVM: tuples are aggregated by ({key}, window), in each partition first",
            "shuffle: one row per partition, key and window that has tuples",
            "JVM: rows of one window are combined, and results are read off"
            + (" when the watermark passes its end" if case.frame.isStreaming else ""),
        ]
    windows = [window for _, window in case.query.windows]
    steps = [
        f"JVM: the input is read once, and tuples are aggregated by ({key}, slice), in each partition first",
        "shuffle: one row per partition, key and slice, cut at the edges of all windows; no tuples",
    ]
    if any(window.session_gap is not None for window in windows):
        steps.append(
            "shuffle and JVM: slices are sorted by key and time; longer silences end sessions of all gaps"
        )
    if any(map(block_size, windows)):
        steps.append("JVM and shuffle: slices are combined into blocks too, for windows of many slices")
    return [
        *steps,
        "JVM: each slice or block is given to the windows that hold it",
        "shuffle: one row per partition, key and window",
        "JVM: rows of one window are combined, and results are read off",
    ]


def _packed_steps(case: Case) -> list[str]:
    groups = case.frame.sparkSession.conf.get(PARTITIONS) if case.query.keys else "1"
    plan = planning.make_plan(case.query)
    if plan.sends_slices:
        before = "Python, mapInArrow: each partition slices its tuples and combines them"
        crossing = "slices, packed; one row per partition and key group, and no tuples"
    else:
        before = "Python, mapInArrow: each partition packs its tuples"
        crossing = f"tuples, packed, since {plan.shuffle.reason}"
    by = f"of {', '.join(case.query.keys)}" if case.query.keys else "of the only stream"
    after, last = "Python, applyInArrow: slices of a key group become windows", []
    if case.frame.isStreaming:
        after = "Python, transformWithStateInPandas: one stateful call per key group and micro-batch"
        last = ["JVM: columns become results; Python, mapInArrow, where one holds lists or structs"]
    return [before, f"shuffle: {crossing}", f"{after}; {groups} key groups {by}", *last]


def _settings(case: Case) -> list[tuple[str, str]]:
    names = [PARTITIONS, "spark.sql.session.timeZone", "spark.sql.ansi.enabled"]
    names += [PROVIDER] if case.frame.isStreaming else []
    return [(name, str(case.frame.sparkSession.conf.get(name))) for name in names]
