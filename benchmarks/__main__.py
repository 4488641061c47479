"""The command line of the benchmarks, in a checkout: `python -m benchmarks core`, for example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from muntin.errors import MuntinError

app = typer.Typer(
    help="Measure Muntin on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


@app.command("core")
def bench_core(
    tuples: Annotated[int, typer.Option(help="How many tuples a workload reads.", min=1_000)] = 4_194_304,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Names of workloads, or prefixes of names such as W2; repeat for several."),
    ] = None,
    batch: Annotated[int, typer.Option(help="Tuples in a batch; M1 and M2 have 65,536.", min=1)] = 1_048_576,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables in Markdown.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the rates into this file (.svg, .png, .pdf).")
    ] = None,
    read: Annotated[
        Path | None, typer.Option(help="Show what --json wrote instead of measuring.", exists=True)
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Measure only Muntin and the limits of the machine.")
    ] = False,
) -> None:
    """Throughput of the core, compared with limits of the machine, polars, DuckDB and older techniques."""
    from benchmarks.core_plot import check_place, draw
    from benchmarks.core_report import read_report, run_core, show

    console = Console()
    quiet = Console(stderr=True)  # progress goes to stderr: stdout may be a file
    try:
        if plot is not None:
            check_place(plot)
        report = read_report(read) if read else run_core(tuples, tuple(only or ()), batch, quiet, alone)
    except MuntinError as error:
        _fail(error)
    else:
        show(report, console, "json" if json else "markdown" if markdown else "table")
        if plot is not None:
            draw(report.muntin, report.others, plot)


@app.command("profile")
def bench_profile(
    workload: Annotated[
        list[str] | None, typer.Argument(help="Names of workloads, or prefixes of names.")
    ] = None,
    tuples: Annotated[int, typer.Option(help="How many tuples a workload reads.", min=1_000)] = 4_194_304,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table in Markdown.")] = False,
) -> None:
    """The time of each step of the engine in a workload of `core`; by default W2 N=20."""
    from benchmarks.profile import run_profile

    form = "json" if json else "markdown" if markdown else "table"
    try:
        run_profile(tuples, workload or ["W2 N=20"], form, Console())
    except MuntinError as error:
        _fail(error)


@app.command("latency")
def bench_latency(
    slices: Annotated[
        list[int] | None, typer.Option(help="Slices in a window; repeat for several.", min=1)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The latency from a watermark to its results, for each store, and the cost of steps of few tuples."""
    from benchmarks.latency import run_latency

    run_latency(tuple(slices or ()), json, Console())


@app.command("flights")
def bench_flights(
    batch: Annotated[
        list[int] | None, typer.Option(help="Flights in a batch; repeat for several.", min=1)
    ] = None,
    on_spark: Annotated[
        bool, typer.Option("--spark", help="A stream on Spark instead, 20,000 flights in a micro-batch.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The demo's query embedded, over a year of flights in small and large batches; or on Spark."""
    from benchmarks.flights import run_flights, run_on_spark

    try:
        if on_spark:
            run_on_spark(json, Console())
            return
        run_flights(tuple(batch or ()), json, Console())
    except MuntinError as error:
        _fail(error)


@app.command("start")
def bench_start(
    on_spark: Annotated[
        bool, typer.Option("--spark", help="New Python workers of a stream on Spark instead.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What the first query of a fresh process costs: time, memory and compiled functions."""
    if on_spark:
        from benchmarks.spark_start import run_spark_start

        run_spark_start(Console(), json)
        return
    from benchmarks.start import run_start

    run_start(Console(), json)


@app.command("spark")
def bench_spark(
    rows: Annotated[int, typer.Option(help="How many tuples a workload reads.", min=1_000)] = 2_000_000,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Prefixes of workload names, such as B or S2; repeat for several."),
    ] = None,
    per_second: Annotated[
        int, typer.Option(help="Tuples per second of event time.", min=1, max=1_000_000)
    ] = 5_000,
    rounds: Annotated[int, typer.Option(help="How often both run, in turn.", min=1)] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Muntin on local Spark, compared with Spark's own windows."""
    from benchmarks.spark import run_spark

    try:
        run_spark(rows, tuple(only or ()), json, Console(), per_second, rounds)
    except MuntinError as error:
        _fail(error)


@app.command("micro-batch")
def bench_micro_batch(
    batches: Annotated[int, typer.Option(help="Micro-batches of a stream.", min=8)] = 32,
    rounds: Annotated[int, typer.Option(help="How often both run, in turn.", min=1)] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """A warm micro-batch of 1,000 tuples on local Spark, in Muntin and in Spark's own window()."""
    from benchmarks.micro_batch import run_micro_batches

    run_micro_batches(batches, rounds, json, Console())


@app.command("threads")
def bench_threads(
    tuples: Annotated[
        int, typer.Option(help="The most tuples that a query reads.", min=100_000)
    ] = 16_000_000,
    threads: Annotated[int, typer.Option(help="The number of threads that is compared with one.", min=2)] = 2,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table in Markdown.")] = False,
) -> None:
    """A table on one thread and on several; fails if their results differ."""
    from benchmarks.threads import run_threads

    run_threads(tuples, threads, "json" if json else "markdown" if markdown else "table", Console())


@app.command("aggregates")
def bench_aggregates(
    tuples: Annotated[int, typer.Option(help="How many tuples each query reads.", min=100_000)] = 1_000_000,
    in_order: Annotated[bool, typer.Option(help="No tuple is late.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Throughput of every aggregate, compared with sum in the same run."""
    from benchmarks.aggregates import run_aggregates

    run_aggregates(tuples, in_order, json, Console())


@app.command("stores")
def bench_stores(
    size: Annotated[
        list[int] | None, typer.Option(help="Window sizes in entries; repeat for several.", min=2)
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="Also measure the baselines that the stores are compared with.")
    ] = True,
    operator: Annotated[bool, typer.Option(help="Measure the stores in the operator, not alone.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Throughput of each store over the size of its window."""
    if operator:
        from benchmarks.stores_in_operator import run_in_operator

        run_in_operator(tuple(size or ()), json, Console())
        return
    from benchmarks.stores import run_stores

    run_stores(tuple(size or ()), json, Console(), baselines=baselines)


def _fail(error: MuntinError) -> None:
    Console(stderr=True).print(f"error: {error}", style="red", highlight=False, markup=False)
    raise typer.Exit(2)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
