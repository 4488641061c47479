"""The arguments and options of `muntin run`: their names, types and lines of help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from muntin.errors import QueryError


class OutputFormat(StrEnum):
    """The forms of results."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


class InputFormat(StrEnum):
    """The formats of inputs."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


class Engine(StrEnum):
    """Where a query runs."""

    EMBEDDED = "embedded"
    SPARK = "spark"


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Files, patterns, directories, or - for the standard input.",
        show_default=False,
    ),
]
Output = Annotated[str, typer.Option("--output", "-o", help="A file, or - for the standard output.")]
Form = Annotated[
    OutputFormat | None,
    typer.Option(
        "--format",
        help="The format of the output; by default by its ending, a table on a terminal, else csv.",
        show_default=False,
    ),
]
InputForm = Annotated[
    InputFormat | None,
    typer.Option(
        "--input-format", help="The format of inputs with another ending; jsonl for -.", show_default=False
    ),
]
Delimiter = Annotated[str | None, typer.Option(help="The delimiter of CSV.", show_default=False)]
TimeFormat = Annotated[
    str | None, typer.Option(help='The format of times, like "%m/%d/%Y %H:%M".', show_default=False)
]
TimeUnit = Annotated[
    str | None, typer.Option(help="The unit of integer times: s, ms, us or ns.", show_default=False)
]
ColumnTypes = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="COLUMN=TYPE", help="The type of a column.", show_default=False),
]
WatermarkLag = Annotated[
    str | None, typer.Option(help="Close windows this long behind the newest tuple.", show_default=False)
]
InOrder = Annotated[bool, typer.Option("--in-order", help="The tuples are ordered by time.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Wait for more lines at the end of the last input.")
]
OnEngine = Annotated[Engine, typer.Option(help="In this process, or on local Spark.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the state that Ctrl-C saved.")]
Snapshot = Annotated[
    Path | None,
    typer.Option(help="Where Ctrl-C saves the state; by default next to the query.", show_default=False),
]
Late = Annotated[
    str | None, typer.Option(help="A file for tuples that are too late for a window.", show_default=False)
]
Bad = Annotated[str | None, typer.Option(help="A file for bad tuples, with the reasons.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def types_of(given: list[str] | None) -> dict[str, str] | None:
    """The types that `--type` gives to columns; None: it was not given.

    >>> types_of(["amount=float64"])
    {'amount': 'float64'}
    """
    if not given:
        return None
    types = dict(one.partition("=")[::2] for one in given)
    for name, kind in types.items():
        if not kind:
            raise QueryError(f'--type takes COLUMN=TYPE, like amount=float64: got "{name}"')
    return types
