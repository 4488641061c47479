"""The command line: `muntin run`, `explain`, `replay`, `doctor`, `warmup`, `demo`, `dashboard`, `state`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from muntin.command_line import run_options as options
from muntin.command_line.state import state
from muntin.errors import MuntinError, QueryError

if TYPE_CHECKING:
    from muntin.command_line.settings import InputSettings
    from muntin.dsl import Query

EXIT_CODES = """\b
Exit codes:
  0    all is well
  1    `replay` or `doctor` found something wrong
  2    a mistake in the query, the data or the options; the message says which
  130  stopped with Ctrl-C
  141  the program that read the output has ended"""

app = typer.Typer(
    help=f"Many window aggregates in one pass over a stream.\n\n{EXIT_CODES}",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,  # it would join the lines of the examples
)


QueryFile = Annotated[Path, typer.Argument(help="The query as a TOML file.", show_default=False)]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"muntin {version('muntin')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command()
def run(
    query: QueryFile,
    inputs: options.Inputs,
    output: options.Output = "-",
    form: options.Form = None,
    input_format: options.InputForm = None,
    delimiter: options.Delimiter = None,
    time_format: options.TimeFormat = None,
    time_unit: options.TimeUnit = None,
    column_types: options.ColumnTypes = None,
    watermark_lag: options.WatermarkLag = None,
    in_order: options.InOrder = False,
    follow: options.Follow = False,
    engine: options.OnEngine = options.Engine.EMBEDDED,
    resume: options.Resume = False,
    snapshot: options.Snapshot = None,
    late: options.Late = None,
    bad: options.Bad = None,
    quiet: options.Quiet = False,
) -> None:
    """Run a query over files or the standard input.

    They hold CSV, JSON Lines, Parquet or Arrow, also compressed, as in .csv.gz.

    \b
    Examples:
      muntin run sales.toml sales.csv
      muntin run sales.toml 'days/*.parquet' --output windows.parquet
      muntin run sales.toml us.csv --time-format '%m/%d/%Y %H:%M'
      cat events.jsonl | muntin run sales.toml - --format jsonl | jq .total
      muntin run sales.toml live.jsonl --follow --watermark-lag '10 seconds'
      muntin run sales.toml sales.csv --output windows.csv --bad bad.jsonl

    A line {"watermark": "2024-01-31T12:00:00"} in JSON Lines promises that all tuples before that time
    have arrived, and closes windows. Without watermarks all windows close at the end of the input.

    Ctrl-C saves the state; --resume continues from it.
    """
    with _errors_reported():
        from muntin.command_line.inputs import sources
        from muntin.command_line.run_command import Outputs, routing_query, run_embedded, run_on_spark

        settings = _settings(
            query,
            delimiter=delimiter,
            time_format=time_format,
            time_unit=time_unit,
            watermark_lag=watermark_lag,
            in_order=in_order or None,
            types=options.types_of(column_types),
        )
        input_files = sources(inputs, None if input_format is None else str(input_format))
        results_format = None if form is None else str(form)
        if engine is options.Engine.SPARK:
            if follow or resume or late or bad or settings.time_format is not None:
                raise QueryError(
                    "--engine spark reads files to their end, with times in ISO format; "
                    "leave out --follow, --resume, --late, --bad and --time-format"
                )
            run_on_spark(_query(query), input_files, settings, output, results_format)
            return
        routing, side_outputs = routing_query(_query(query), late, bad)
        path = query.with_suffix(".snapshot") if snapshot is None else snapshot
        outputs = Outputs(output, results_format, side_outputs)
        ended = run_embedded(
            routing, input_files, settings, outputs, path, quiet, follow=follow, resume=resume
        )
    if not ended:
        print(f"stopped; the state is in {path}: go on with --resume", file=sys.stderr)
        raise typer.Exit(130)


@app.command()
def explain(
    query: QueryFile,
    in_order: Annotated[bool, typer.Option("--in-order", help="The stream is ordered by time.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every decision and its reason, too.")
    ] = False,
) -> None:
    """Print what a query computes, keeps in memory and emits.

    \b
    Examples:
      muntin explain sales.toml
      muntin explain sales.toml --in-order --verbose
    """
    with _errors_reported():
        print(_query(query).explain(in_order=in_order, verbose=verbose))


@app.command()
def replay(
    transcripts: Annotated[
        list[Path], typer.Argument(help="Files of transcripts, or directories.", exists=True)
    ],
) -> None:
    """Replay transcripts and compare the rows.

    A transcript lists input, watermarks and expected rows; it is replayed in all its variants.

    \b
    Examples:
      muntin replay late_sale.yaml
      muntin replay tests/transcripts
    """
    from muntin.command_line.replaying import replayed

    wrong = total = 0
    with _errors_reported():
        for path in transcripts:
            for name, difference in replayed(path):
                total += 1
                wrong += bool(difference)
                print(f"{'failed' if difference else 'ok'}  {name}{f': {difference}' if difference else ''}")
        print(f"{total - wrong} of {total} transcripts are as expected")
    if wrong:
        raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Check Python, the compiled code, Java and Spark.

    For each problem it prints the command that solves it.

    \b
    Examples:
      muntin doctor
    """
    from muntin.command_line.doctor import findings

    checked = list(findings())
    print("\n".join(map(str, checked)))
    if any(finding.state == "wrong" for finding in checked):
        raise typer.Exit(1)


@app.command()
def warmup() -> None:
    """Compile what the library of kernels lacks.

    It runs small queries of every kind, once per machine.

    \b
    Examples:
      muntin warmup
    """
    from muntin.warming import warm_up

    warm_up(Console())


@app.command()
def demo(
    spark: Annotated[
        bool, typer.Option("--spark", help="Stream a year of flights through local Spark; needs Java.")
    ] = False,
    flights: Annotated[
        int | None, typer.Option(help="The number of flights to stream, with --spark.", min=1)
    ] = None,
) -> None:
    """Show slices, a late tuple and twenty windows in one pass.

    It takes seconds and writes its program to muntin_demo.py in the current folder, for you to edit.

    \b
    Examples:
      muntin demo
      muntin demo --spark --flights 50000
    """
    from muntin.demo import first_look

    with _errors_reported():
        if spark or flights is not None:
            from muntin.demo import show

            show.show(Console(), flights)
        else:
            first_look.show(Console(), Path.cwd())


@app.command()
def dashboard(
    query: Annotated[
        Path | None,
        typer.Argument(help="The query as a TOML file; by default one over flights.", show_default=False),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT...]", help="Files of tuples, as for `muntin run`.", show_default=False
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(help="A file of transcripts to play step by step.", exists=True, show_default=False),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Stream the flights through local Spark; needs Java.")
    ] = False,
    speed: Annotated[float, typer.Option(help="The speed, 1 for normal.", min=0.1, max=100)] = 1,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 chooses a free one.", min=0, max=65535)] = 8765,
    token: Annotated[
        str | None,
        typer.Option(help="The token; random by default.", envvar="MUNTIN_TOKEN", show_default=False),
    ] = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve a live page of a stream: slices, windows, results; the query can be changed on it.

    \b
    Examples:
      muntin dashboard
      muntin dashboard sales.toml sales.csv --speed 4
      muntin dashboard --replay late_sale.yaml
      muntin dashboard --spark

    Ctrl-C ends it.
    """
    with _errors_reported():
        from muntin.dashboard.command import Place, show

        settings = None if query is None else _settings(query, types=None)
        loaded = None if query is None else _query(query)
        place = Place(host, port, token, browser)
        show(loaded, inputs or [], settings, replay, place, spark=spark, speed=speed)


def _query(path: Path) -> Query:
    from muntin.query_file import load

    return load(path)


def _settings(path: Path, **given: Any) -> InputSettings:
    """The table [input] of the query file, with the options in place of its values."""
    from muntin.command_line.settings import read_settings
    from muntin.query.files import read_toml

    _query(path)  # its errors come first
    table = read_toml(path.read_text("utf-8"), str(path)).get("input", {})
    if given["types"] is not None:
        given["types"] = table.get("types", {}) | given["types"]
    return read_settings(table, given)


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Print the message of an error of Muntin, and end the program with the status of the error."""
    try:
        yield
    except BrokenPipeError:
        from muntin.command_line.writing import discard_standard_output

        discard_standard_output()
        raise typer.Exit(141) from None
    except MuntinError as error:
        Console(stderr=True, soft_wrap=True).print(
            f"error: {error}", style="red", highlight=False, markup=False
        )
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


app.command()(_errors_reported()(state))
