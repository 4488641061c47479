"""`muntin demo`: a query, its slices, a late tuple, twenty windows at once; without Java, in seconds."""

from __future__ import annotations

import inspect
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax

from muntin.demo import program
from muntin.demo.twenty_windows import Race, Timing, race
from muntin.drawing import observe, terminal
from muntin.result_view import show_table

__all__ = ["FILE", "show"]

FILE = "muntin_demo.py"
WIDTH = 100


def show(console: Console, folder: Path) -> None:
    """Print the query, its picture, what a late tuple changes and a comparison; write the program."""
    source = inspect.getsource(program)
    console.rule("A query: three windows over one stream")
    console.print(Syntax(_query_alone(source), "python", background_color="default"))
    width = min(console.width, WIDTH)
    console.rule("The stream is cut into slices, and all windows are combined from them")
    console.print(terminal(observe(program.query, program.sales, label="amount"), width))
    console.rule("A sale of second 21 arrives late: one slice changes, and the windows over it")
    console.print(terminal(observe(program.query, program.sales, program.late, label="amount"), width))
    operator = program.query.operator()
    operator.process(program.sales)
    operator.advance(61)
    operator.process(program.late)
    show_table(operator.advance(62), console)
    console.rule("Twenty windows, of 1 to 20 seconds, over one stream")
    with console.status("running ..."):
        timings = race()
    console.print(compared(timings), highlight=False)
    console.rule("Next")
    console.print(written(source, folder), highlight=False, markup=False)


def _query_alone(source: str) -> str:
    """The lines of the program that make the query."""
    lines = source.splitlines()
    return "\n".join(lines[lines.index("query = (") : lines.index("sales = {")])


def compared(timings: Race) -> str:
    """The outcome in words."""
    what = (
        f"{timings.tuples / 1e6:g} million tuples, {timings.windows:,} windows; ms of wall-clock and CPU time"
    )
    ours = f"Muntin, one pass on one core  {_times(timings.ours)}"
    if timings.polars is None:
        return f"{what}\n{ours}\npolars is not installed; pip install polars adds it to this comparison."
    theirs = f"polars, twenty on all cores   {_times(timings.polars)}"
    sooner, less = timings.polars.passed / timings.ours.passed, timings.polars.cpu / timings.ours.cpu
    ratio = f"[bold]{sooner:.0f} times as fast, {less:.0f} times less CPU time[/bold]; the totals are equal."
    return f"{what}\n{ours}\n{theirs}\n{ratio}"


def _times(timings: Timing) -> str:
    return f"{timings.passed * 1000:6.0f} {timings.cpu * 1000:6.0f}"


def written(source: str, folder: Path) -> str:
    """Write the program into the folder, unless it is there already; what to do next, in words."""
    path = folder / FILE
    more = "muntin demo --spark streams a year of flights through Spark; it needs Java."
    try:
        with path.open("x") as file:
            file.write(source)
    except FileExistsError:
        return f"Edit {FILE}, which is here already, and run it:\n  python {FILE}\n{more}"
    except OSError:
        return f"The program of this demo is {inspect.getsourcefile(program)}: copy it and edit it.\n{more}"
    return f"Edit {FILE}, which is the program of this demo, and run it:\n  python {FILE}\n{more}"
