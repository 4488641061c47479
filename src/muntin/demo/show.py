"""The output of the demonstration with Spark: an introduction, the newest results, a summary."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from muntin.connectors import spark
from muntin.demo import flights as data
from muntin.demo import sharing
from muntin.demo.late_story import CHANGED, LateStory
from muntin.demo.query import ASKED, LATENESS, WATERMARK, ten_windows
from muntin.demo.sharing import Work, each_alone
from muntin.demo.stream import ROWS, SETTINGS, Step, play
from muntin.result_view import STYLES

__all__ = ["Summary", "errors_to", "newest", "show"]

FOLDER = Path("build") / "demo"
LOG = FOLDER / "spark.log"
NUMBERS = ("flights", "mean", "90%", "worst")
HEADINGS = ("window", "of", "until", *NUMBERS, "to", "result")


def show(console: Console, most: int | None = None) -> None:
    """Stream the flights, at most `most` of them, through Spark and print the results."""
    flights = data.load().slice(0, most)
    console.print(_introduction(flights), highlight=False)
    logging.disable()  # py4j logs the traceback of a Ctrl-C, and to the root logger
    with console.status(f"Spark is starting; its log: {LOG}"), errors_to(LOG), _interrupted_after():
        session = spark.session(SETTINGS)
    summary, story = Summary(), LateStory()
    try:
        _watch(console, play(session, flights, ten_windows(), FOLDER), len(flights), summary, story)
    except KeyboardInterrupt:
        console.print("Stopped.")
        raise
    finally:
        session.stop()
    console.print()
    if story.best is not None:
        console.print(story.best.table())
    console.print(summary.table())
    console.print(summary.saved(), highlight=False)
    console.print(f"All results: {FOLDER / 'results'}, as Parquet; the checkpoint is in the same folder.")


@contextmanager
def errors_to(path: Path) -> Iterator[None]:
    """Redirect the stderr of processes that start meanwhile to this file, off the terminal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@contextmanager
def _interrupted_after() -> Iterator[None]:
    """Defer Ctrl-C until this is done: a JVM whose Python ends while they connect would stay alive."""
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


def _introduction(flights: pa.Table) -> str:
    times = flights["scheduled"].cast(pa.int64()).to_numpy()
    return (
        f"{len(flights):,} flights left New York's airports in 2013, or should have. Their time is that of "
        "the schedule; they arrive when they really depart (cancelled ones when they should have).\n"
        f"{data.disorder(times)}.\n"
        f"One streaming query of Spark serves {len(ASKED)} windows per carrier and airport in one pass. "
        f"It reads {ROWS:,} flights at a time.\n"
        f"A window is complete when flights {WATERMARK} past its end have come. Then it takes late flights "
        f"for {LATENESS} more: the windows that they change are emitted again.\n"
    )


class Summary:
    """Counts, over all steps."""

    def __init__(self) -> None:
        self.tuples = self.late = 0
        self.kinds: Counter[str] = Counter()
        self.began = self.last = time.perf_counter()
        self.first: float | None = None
        """When the first step was done: until then, workers start and kernels are compiled or loaded."""
        self.in_first = self.joined = 0
        self.steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Count a step."""
        self.steps.append(step)
        self.tuples += len(step.flights)
        self.late += len(step.late)
        self.kinds.update(step.results["kind"].to_pylist())
        self.joined += pc.sum(step.results.filter(pc.field("kind") == "final")["flights"]).as_py() or 0
        if self.first is None:
            self.first, self.in_first = time.perf_counter(), len(step.flights)
        self.last = time.perf_counter()

    def table(self) -> Table:
        """The summary."""
        seconds = self.last - self.began
        summary = Table(title="Summary", title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
        summary.add_column()
        summary.add_column(justify="right")
        rows = {
            "tuples": self.tuples,
            "windows": self.kinds["final"],
            "late tuples, behind the watermark": self.late,
            "updates by them": self.kinds["update"],
            "retractions: windows that moved": self.kinds["retract"],
            "seconds": seconds,
            "tuples per second": self.tuples / seconds,
        }
        if self.first is not None and self.tuples > self.in_first:
            warm = (self.tuples - self.in_first) / (self.last - self.first)
            rows["after the first step, which starts the workers"] = warm
        for name, number in rows.items():
            summary.add_row(name, f"{number:,.0f}")
        return summary

    def saved(self) -> Group:
        """The work of the stream against that of a query for each window, which run now, without Spark."""
        counts = self.steps[-1].stats
        query = ten_windows()
        alone = each_alone(query, ((step.flights, step.watermark) for step in self.steps))
        shared = Work(counts.tuples, counts.update_combines, counts.merge_combines)
        return sharing.table(alone, shared, len(query.windows), self.joined)


def _watch(console: Console, steps: Iterator[Step], tuples: int, summary: Summary, story: LateStory) -> None:
    """Follow the steps with a bar and the newest result of each window."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console)
    task = bar.add_task("flights", total=tuples)
    shown: dict[str, dict[str, Any]] = {}
    with Live(Group(bar), console=console, refresh_per_second=4) as live:
        for step in steps:
            summary.add(step)
            story.add(step)
            shown |= newest(step.results)
            until = "" if step.watermark is None else f" until {step.watermark:%b %d %H:%M}"
            bar.update(task, advance=len(step.flights), description=f"flights{until}")
            late = "" if story.newest is None else f"Late: {story.newest.told}"
            live.update(Group(results_table(shown), Text(late, style="yellow", no_wrap=True), bar))


def newest(results: pa.Table) -> dict[str, dict[str, Any]]:
    """For each window the result that ends last; one that a late flight changed is preferred."""
    ends = results.append_column("end", pc.struct_field(results["window"], "end"))
    changed = pc.is_in(ends["kind"], pa.array(CHANGED))
    ordered = ends.append_column("changed", changed).sort_by([("changed", "ascending"), ("end", "ascending")])
    last = {name: row for row, name in enumerate(ordered["window_name"].to_pylist())}
    return dict(zip(last, ordered.take(list(last.values())).to_pylist(), strict=True))


def results_table(shown: dict[str, dict[str, Any]]) -> Table:
    """The newest result of each window."""
    table = Table(title="Delays in minutes; times in UTC", box=box.SIMPLE_HEAD, padding=0)
    for name in HEADINGS:
        table.add_column(name, no_wrap=True, justify="right" if name in NUMBERS else "left")
    for name, words in ASKED.items():
        row = shown.get(name)
        if row is None:
            table.add_row(words, style="dim")
            continue
        table.add_row(
            words,
            f"{row['carrier']} {row['airport']}",
            f"{row['window']['end']:%b %d %H:%M}",
            f"{row['flights']:,}",
            _minutes(row["mean_delay"]),
            _minutes(row["p90"]),
            _minutes(row["worst"]),
            row["worst_to"] or "",
            row["kind"],
            style=STYLES.get(row["kind"]),
        )
    return table


def _minutes(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
