"""The command line: `muntin demo`, `run`, `explain`, `warmup`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from muntin.errors import MuntinError

app = typer.Typer(
    help="Many window aggregates in one pass over a stream.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

QueryFile = Annotated[Path, typer.Argument(help="The query as a TOML file.", exists=True, dir_okay=False)]


@app.command()
def demo(
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Without Spark: a small shop, one late tuple, step by step.")
    ] = False,
    flights: Annotated[int | None, typer.Option(help="The number of flights to stream.", min=1)] = None,
) -> None:
    """Stream a year of flights through Spark: ten windows, late tuples and what they change."""
    from muntin.demo import shop, show

    with _errors_reported():
        if embedded:
            shop.show(Console())
        else:
            show.show(Console(), flights)


@app.command()
def run(
    query: QueryFile,
    data: Annotated[
        Path, typer.Argument(help="A CSV, Parquet or Arrow IPC file.", exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path | None, typer.Option(help="Write the results here (.csv, .parquet, .arrow).")
    ] = None,
) -> None:
    """Run the query of a file over the tuples of another."""
    from muntin.connectors.files import read_table, write_table
    from muntin.query_file import load
    from muntin.result_view import show_table

    with _errors_reported():
        results = load(query).run(read_table(data))
        if output is None:
            show_table(results, Console())
        else:
            write_table(results, output)
            Console().print(f"{results.num_rows:,} windows written to {output}")


@app.command()
def explain(
    query: QueryFile,
    in_order: Annotated[bool, typer.Option(help="The stream is ordered by time.")] = False,
) -> None:
    """Print the plan of a query and the reason for each decision."""
    from muntin.query_file import load

    with _errors_reported():
        Console().print(str(load(query).explain(in_order=in_order)), highlight=False, markup=False)


@app.command()
def warmup() -> None:
    """Run small queries of every kind, which compiles what the library of kernels lacks, once per machine."""
    from muntin.warming import warm_up

    warm_up(Console())


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Print the message of an error of Muntin, and end the program with the status of the error."""
    try:
        yield
    except MuntinError as error:
        Console(stderr=True).print(f"error: {error}", style="red", highlight=False, markup=False)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
