"""The benchmark `core`: every workload in Muntin and in the other engines, and the report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.case import Case
from benchmarks.comparison import ENGINES, PEERS, Comparison, answering, compare, missing
from benchmarks.core import Measurement, measure
from benchmarks.core_tables import (
    COUNTS,
    RATES,
    core_grid,
    core_legend,
    fewer_tuples,
    others_grid,
    others_legend,
)
from benchmarks.workloads import chosen
from muntin.errors import DataError

__all__ = ["Report", "as_markdown", "read_report", "run_core", "show"]

TECHNIQUES = tuple(engine for engine in ENGINES if engine not in PEERS)
_WIDE = 110
"""The width of a terminal, in characters, that has room for descriptions of the workloads and all engines."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, and what was not and why."""

    muntin: list[Measurement]
    others: list[Comparison]
    notes: list[str]


def run_core(tuples: int, only: tuple[str, ...], batch: int, console: Console, alone: bool = False) -> Report:
    """Measure the workloads that are asked for; `alone`: in Muntin only."""
    workloads = chosen(only)
    report = Report([], [], [] if alone else missing())
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        steps = [1 if alone else 1 + len(answering(workload)) for workload in workloads]
        task = progress.add_task("", total=sum(steps))
        for workload in workloads:
            progress.update(task, description=f"{workload.name}: {workload.told}")
            case = Case.of(workload, tuples * workload.times_tuples)
            report.muntin.append(measure(case, batch))
            progress.advance(task)
            for one in () if alone else compare(case, batch):
                report.others.append(one)
                progress.advance(task)
    return report


def show(report: Report, console: Console, form: str = "table") -> None:
    """Print a report as `table`, `json` or `markdown`."""
    if form == "json":
        console.print_json(json.dumps(asdict(report)))
    elif form == "markdown":
        console.print(as_markdown(report), highlight=False, markup=False, soft_wrap=True)
    else:
        _show_tables(report, console)


def read_report(path: Path) -> Report:
    """What `--json` wrote."""
    try:
        read = json.loads(path.read_text())
        if not isinstance(read, dict):
            raise TypeError(f"got a {type(read).__name__}, not an object")
        muntin = [Measurement(**one) for one in read["muntin"]]
        return Report(muntin, [Comparison(**one) for one in read["others"]], read["notes"])
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} must hold what `python -m benchmarks core --json` wrote: {error}") from error


def as_markdown(report: Report) -> str:
    """The tables of the documentation, none wider than its pages."""
    parts = [
        core_grid(report.muntin, columns=RATES).as_markdown(),
        core_grid(report.muntin, told=False, columns=COUNTS).as_markdown(),
    ]
    if report.others:
        parts += [
            others_grid(report.muntin, report.others, engines).as_markdown()
            for engines in (tuple(PEERS), TECHNIQUES)
        ]
    parts += [fewer_tuples(report.muntin, report.others), *report.notes]
    return "\n\n".join(part for part in parts if part)


def _show_tables(report: Report, console: Console) -> None:
    wide = console.width >= _WIDE
    console.print(core_grid(report.muntin, told=wide).as_table())
    console.print(core_legend(report.muntin))
    if report.others:
        for engines in [tuple(ENGINES)] if wide else [tuple(PEERS), TECHNIQUES]:
            console.print(others_grid(report.muntin, report.others, engines).as_table())
        console.print(f"{others_legend()} {fewer_tuples(report.muntin, report.others)}")
    for note in report.notes:
        console.print(note, style="yellow", highlight=False, markup=False)
