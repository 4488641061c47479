"""`muntin demo --embedded`: a small shop's stream, four kinds of windows, a late tuple."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
from rich.console import Console

from muntin import aggregates as a
from muntin import windows as w
from muntin.dsl import Query, windows
from muntin.result_view import show_table

START = dt.datetime(2026, 3, 1, 9, 0)


def dashboard() -> Query:
    """Four windows of different kinds over one stream of sales."""
    return (
        windows(
            minute=w.tumbling("1 minute"),
            smooth=w.sliding("2 minutes", every="30 seconds"),
            visit=w.session("20 seconds"),
            ten=w.count(10),
        )
        .aggregate(
            sales=a.count(),
            total=a.sum("amount"),
            middle=a.median("amount"),
            best=a.arg_max("customer", by="amount"),
        )
        .by("shop")
        .on("ts", allowed_lateness="1 minute")
    )


def sales(count: int = 60, seed: int = 7) -> list[dict[str, Any]]:
    """Sales of three minutes in two shops, in bursts, in order."""
    rng = np.random.default_rng(seed)
    pauses = np.where(rng.random(count) < 0.12, 25, rng.integers(0, 4, count))
    seconds = np.cumsum(pauses)
    names = ["Ada", "Bo", "Cleo", "Dan", "Eve"]
    return [
        {
            "ts": START + dt.timedelta(seconds=int(second)),
            "shop": ["north", "south"][int(rng.integers(2))],
            "customer": names[int(rng.integers(len(names)))],
            "amount": int(rng.integers(5, 80)),
        }
        for second in seconds
    ]


def show(console: Console) -> None:
    """Play the stream and print the results of each step."""
    query = dashboard()
    console.rule("The query")
    console.print(repr(query), highlight=False, markup=False)
    console.rule("The plan")
    console.print(str(query.explain()), highlight=False, markup=False)
    tuples = sales()
    operator = query.operator()
    half = [t for t in tuples if t["ts"] < START + dt.timedelta(minutes=2)]
    operator.process(half)
    first = operator.advance(START + dt.timedelta(minutes=2))
    console.rule(f"{len(half)} sales, watermark at {START + dt.timedelta(minutes=2):%H:%M}")
    show_table(first, console)
    late = {"ts": START + dt.timedelta(seconds=75), "shop": "north", "customer": "Zoe", "amount": 500}
    operator.process([late, *tuples[len(half) :]])
    console.rule(f"The rest, and one sale of {late['ts']:%H:%M:%S} that comes late: only its windows change")
    changed = operator.advance(START + dt.timedelta(minutes=2, seconds=1))
    show_table(changed, console)
    console.rule("The end of the stream closes every window")
    last = operator.finish()
    show_table(last, console)
    console.rule("What it took")
    console.print(str(operator.stats()), highlight=False)
    rows = len(first) + len(changed) + len(last)
    console.print(f"{len(tuples) + 1} tuples, {rows} result rows, one pass")
