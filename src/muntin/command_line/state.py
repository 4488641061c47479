"""`muntin state`: what a stream on Spark holds, read from its checkpoint."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from muntin.display import named_lines
from muntin.errors import QueryError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from muntin.connectors.spark.state_view import StreamState

__all__ = ["state"]

MOST_SHOWN = 40
TABLE = "table"


def state(
    checkpoint: Annotated[
        str, typer.Argument(help="The folder that checkpointLocation names.", show_default=False)
    ],
    batch: Annotated[
        int | None, typer.Option(help="A committed micro-batch; by default the last one.", show_default=False)
    ] = None,
    slices: Annotated[bool, typer.Option("--slices", help="The slices, with their values.")] = False,
    windows: Annotated[
        bool, typer.Option("--windows", help="The open windows, with their values so far.")
    ] = False,
    tuples: Annotated[
        bool, typer.Option("--tuples", help="The tuples that windows still need one by one.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="table, csv, jsonl, parquet or arrow; by default a table on a terminal, else csv.",
            show_default=False,
        ),
    ] = None,
    operator: Annotated[
        int | None,
        typer.Option(help="Spark's number of the query, where a stream has several.", show_default=False),
    ] = None,
) -> None:
    """Print what a stream on Spark holds.

    That is its query, watermark and sizes, or rows of its state.

    \b
    Examples:
      muntin state /checkpoints/shops
      muntin state /checkpoints/shops --windows
      muntin state /checkpoints/shops --batch 41 --slices --format csv > slices.csv
      muntin state s3a://bucket/checkpoints/shops --windows --format jsonl | jq .total

    The stream may run meanwhile. The query is part of the state; one with Python functions is not, and can
    be read in Python: mt.spark.state(spark, checkpoint, query=query).
    """  # noqa: D301  # Click reads \b
    wanted = [
        name for name, is_asked in (("slices", slices), ("windows", windows), ("tuples", tuples)) if is_asked
    ]
    if len(wanted) > 1:
        raise QueryError(f"one table is printed at a time: got --{' and --'.join(wanted)}; choose one")
    _check_format(form, bool(wanted))
    from muntin.connectors import spark
    from muntin.connectors.spark.spark_session import quiet_session

    stream_state = spark.state(quiet_session(), checkpoint, batch, operator=operator)
    if wanted:
        _print(_rows(stream_state, wanted[0]), form or (TABLE if sys.stdout.isatty() else "csv"))
    else:
        typer.echo(_summary(stream_state))


def _check_format(form: str | None, has_rows: bool) -> None:
    from muntin.results.writing import WRITERS

    known = (TABLE, *WRITERS)
    if form is not None and form not in known:
        raise QueryError(f"--format must be one of {', '.join(known)}: got {form}.{nearest(form, known)}")
    if form is not None and not has_rows:
        raise QueryError("--format is for rows: add --slices, --windows or --tuples, or leave it out")


def _rows(stream_state: StreamState, wanted: str) -> pa.Table:
    """The rows of a table by key, window and time."""
    frame, others = {
        "slices": (stream_state.slices, 1),
        "windows": (stream_state.open_windows, 2),
        "tuples": (stream_state.tuples, 1),
    }[wanted]
    return frame().orderBy(*range(1, len(stream_state.query.keys) + others + 1)).toArrow()


def _print(table: pa.Table, form: str) -> None:
    from muntin.results.text_table import TextTable
    from muntin.results.writing import WRITERS

    if form == TABLE:
        typer.echo(TextTable.of_rows(table, MOST_SHOWN).text())
        return
    writer = WRITERS[form](sys.stdout.buffer, False, ",")
    writer.write(table)
    writer.close()


def _summary(stream_state: StreamState) -> str:
    """The query, and the sizes of all key groups together."""
    groups = stream_state.groups().toArrow()
    sizes = {name: sum(groups.column(name).to_pylist()) for name in groups.column_names[1:]}
    return named_lines(
        [*stream_state.summary, *((name.replace("_", " "), f"{n:,}") for name, n in sizes.items())]
    )
