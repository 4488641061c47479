"""The workloads as an expert writes them in DuckDB's SQL, a statement for each window.

Each is as fast as we could write it: sliding windows are made of groups as long as their slide, tuples find
their session with an `asof join`, and ranks are counted over a sorted subquery.
"""

from __future__ import annotations

from math import ceil

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.case import Ask, Case
from benchmarks.expected import Sums
from benchmarks.streams import LATENESS
from muntin.windows.base import Window
from muntin.windows.count import Count
from muntin.windows.periodic import Periodic
from muntin.windows.session import Session

__all__ = ["ask_duckdb", "statement"]

_RESULTS = {"sum": "sum(value)", "mean": "avg(value)", "median": "median(value)"}
_PARTS = {"sum": "sum(value) total", "mean": "count(value) n"}
_WHOLE = {"sum": "sum(total)", "mean": "sum(total) / sum(n)"}


def ask_duckdb(case: Case) -> Ask:
    """How DuckDB answers the queries of a case."""
    import duckdb

    query = case.workload.query
    asked = {name: one.constructor for name, one in query.aggregates}
    statements = {name: statement(window, query.keys, asked) for name, window in query.windows}
    connection = duckdb.connect()
    connection.register("given", pa.Table.from_batches(case.arrivals.batches(len(case.arrivals))))
    connection.execute('create table tuples as select * exclude "at", epoch_us("at") us from given')

    def run() -> dict[str, pa.Table]:
        return {name: connection.sql(text).to_arrow_table() for name, text in statements.items()}

    def sums(tables: dict[str, pa.Table]) -> Sums:
        return {
            name: (float(len(table)), *(float(pc.sum(table[column]).as_py()) for column in asked))
            for name, table in tables.items()
        }

    return Ask(run, sums)


def statement(window: Window, keys: tuple[str, ...], asked: dict[str, str]) -> str:
    """A row for each window; `asked` has the name of each result and its aggregate over `value`.

    >>> from muntin.windows import tumbling
    >>> print(statement(tumbling("10 s"), ("key",), {"total": "sum"}))
    select key, (us + 10000000) // 10000000 w, sum(value) total from tuples group by key, w
    """
    by = "".join(f"{key}, " for key in keys)
    results = _named(_RESULTS, asked)
    match window:
        case Periodic(length=length, slide=slide) if length == slide:
            return f"select {by}{_number(slide)} w, {results} from tuples group by {by}w"
        case Periodic(length=length, slide=slide) if length % slide == 0 and _WHOLE.keys() >= set(
            asked.values()
        ):
            parts = ", ".join(_PARTS[how] for how in sorted({"sum", *asked.values()}))
            return f"""
                with slices as (select {by}{_number(slide)} s, {parts} from tuples group by {by}s),
                held as (select *, unnest(range(s - {length // slide - 1}, s + 1)) w from slices)
                select {by}w, {_named(_WHOLE, asked)} from held group by {by}w
            """
        case Session(gap=gap):
            partition = f"partition by {', '.join(keys)}" if keys else ""
            return f"""
                with paused as (
                    select {by}us, us - lag(us) over ({partition} order by us) pause from tuples
                ), starts as (select {by}us, us w from paused where pause is null or pause > {gap})
                select {by}w, {results} from tuples asof join starts using ({by}us) group by {by}w
            """
        case Count(n=n, every=every) if every == n and not keys:
            return f"""
                with ordered as (select value from tuples order by us, rowid),
                numbered as (select value, (row_number() over () - 1) // {n} w from ordered)
                select w, {results} from numbered group by w having count(*) = {n}
            """
        case _:
            raise NotImplementedError(window.describe())


def _named(how: dict[str, str], asked: dict[str, str]) -> str:
    return ", ".join(f"{how[aggregate]} {name}" for name, aggregate in asked.items())


def _number(slide: int) -> str:
    """Of the group that a tuple is in. `//` rounds towards zero, so the earliest times are moved above it."""
    return f"(us + {ceil(LATENESS / slide) * slide}) // {slide}"
