"""How `muntin bench core` shows what it measured: a table, JSON, Markdown for the documentation, a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from muntin.bench.core import ROUNDS, Measurement, measure
from muntin.bench.streams import BATCH, PER_SECOND
from muntin.bench.workloads import chosen
from muntin.errors import QueryError

__all__ = ["as_markdown", "draw", "read_measurements", "run_core", "show"]

COLUMNS = ("M/s", "goal", "Scotty", "reduceat", "copy", "slices", "windows", "combines", "MB")
_WIDE = 110
"""A terminal of so many characters has room for what the workloads are."""


def run_core(tuples: int, only: tuple[str, ...], batch: int, console: Console) -> list[Measurement]:
    """Measure the workloads that are asked for."""
    workloads = chosen(only)
    if not workloads:
        raise QueryError(f"no workload begins with {', '.join(only)}; there are M1, M2 and W1 to W7")
    found = []
    for workload in workloads:
        if console.is_terminal:
            console.print(f"{workload.name}: {workload.told}", style="dim", end="\r", soft_wrap=True)
        found.append(measure(workload, tuples, batch))
    return found


def show(found: Sequence[Measurement], console: Console, form: str = "table") -> None:
    """Print measurements as a `table`, `json` or `markdown`."""
    if form == "json":
        console.print_json(json.dumps([asdict(m) for m in found]))
    elif form == "markdown":
        console.print(as_markdown(found), highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(_table(found, told=console.width >= _WIDE))
        console.print(_legend(found))


def read_measurements(path: Path) -> list[Measurement]:
    """What `--json` wrote."""
    return [Measurement(**one) for one in json.loads(path.read_text())]


def as_markdown(found: Sequence[Measurement]) -> str:
    """A table for the documentation."""
    head = f"| workload | queries | {' | '.join(COLUMNS)} |"
    rule = "|---|---|" + "---:|" * len(COLUMNS)
    rows = [f"| {m.workload} | {m.told} | {' | '.join(_cells(m))} |" for m in found]
    return "\n".join([head, rule, *rows])


def draw(found: Sequence[Measurement], path: Path) -> None:
    """A bar for each workload, beside Scotty's and its limits, on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.45 * len(found) + 1.5), layout="constrained")
    places = range(len(found))
    axes.barh(places, [m.best for m in found], color="#2f6f9f", label="Muntin")
    marks: dict[str, tuple[Sequence[float | None], str]] = {
        "Scotty (Java)": ([m.scotty for m in found], "x"),
        "goal": ([m.goal for m in found], "|"),
        "np.add.reduceat": ([m.reduceat for m in found], "."),
        "copy of the columns": ([m.copy for m in found], "+"),
    }
    for label, (values, marker) in marks.items():
        known = [(value, place) for value, place in zip(values, places, strict=True) if value]
        if known:
            axes.scatter(*zip(*known, strict=True), marker=marker, color="black", label=label, zorder=2)
    axes.set_yticks(places, [m.workload for m in found])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("million tuples per second of CPU time")
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path)
    pyplot.close(figure)


def _table(found: Sequence[Measurement], told: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    for name in ("workload", "queries") if told else ("workload",):
        table.add_column(name, no_wrap=True)
    for name in COLUMNS:
        table.add_column(name, no_wrap=True, justify="right")
    for m in found:
        table.add_row(*((m.workload, m.told) if told else (m.workload,)), *_cells(m))
    return table


def _cells(m: Measurement) -> tuple[str, ...]:
    return (
        _number(m.best),
        _number(m.goal),
        _number(m.scotty),
        f"{m.best / m.reduceat:.3f}",
        f"{m.best / m.copy:.3f}",
        f"{m.slices:,}",
        f"{m.windows:,}",
        f"{m.update_combines + m.merge_combines:.3f}",
        "" if m.memory is None else f"{m.memory / 1e6:.0f}",
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _legend(found: Sequence[Measurement]) -> str:
    tuples, batch = min(m.tuples for m in found), max(m.batch for m in found)
    return (
        f"M/s: million tuples per second of CPU time, the best of {ROUNDS} runs after one that compiles. "
        f"{tuples:,} tuples (W6 twice as many), {PER_SECOND:,} per second of event time (W6: one per key), "
        f"batches of {batch:,} (M1 and M2: {BATCH:,}). reduceat: ours as a part of the rate of "
        "np.add.reduceat over the sorted tuples with the slices known. copy: as a part of the rate "
        "of a copy of the columns. slices: at most, between two batches. combines: per tuple. "
        "MB: growth of resident memory at the peak, results of a batch included. "
        "The windows and the sum of their results were checked for every query of every run that was timed."
    )
