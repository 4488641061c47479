"""`muntin run` as a whole: a query over sources, embedded or on Spark, its outputs and its saved state."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from muntin.command_line.inputs import STDIN
from muntin.command_line.progress import Progress
from muntin.command_line.reading import Reader
from muntin.command_line.running import Run
from muntin.command_line.saved_run import SavedRun, check_place, forget_run, load_run, save_run
from muntin.command_line.settings import InputSettings
from muntin.command_line.times import TimeReader
from muntin.command_line.writing import RoutedFile, opened_output, output_format
from muntin.connectors.embedded import Operator
from muntin.connectors.input_files import InputFile
from muntin.dsl import Query
from muntin.errors import QueryError
from muntin.slicing.binding import columns_read, kind_of_time

__all__ = ["Outputs", "routing_query", "run_embedded", "run_on_spark"]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the results of a run go, and its late and bad tuples."""

    results: str
    form: str | None
    """The format of the results; None: by the ending."""
    side_outputs: dict[str, str] = field(default_factory=dict)
    """The files of "late" and "bad" tuples."""

    def check(self) -> None:
        """A QueryError if two of them are one file."""
        paths = [self.results, *self.side_outputs.values()]
        if len({Path(path).resolve() for path in paths}) < len(paths):
            raise QueryError(f"the outputs must be different files: got {', '.join(paths)}")


def run_embedded(
    query: Query,
    input_files: list[InputFile],
    settings: InputSettings,
    outputs: Outputs,
    snapshot: Path,
    quiet: bool,
    *,
    follow: bool,
    resume: bool,
) -> bool:
    """Run in this process; False where Ctrl-C has stopped the run, whose state is then in the snapshot."""
    windows = [window for _, window in query.windows]
    saved = load_run(snapshot, query.fingerprint()) if resume else None
    check_place(snapshot)
    if saved is None:
        lag, in_order = settings.watermark_lag, settings.in_order
        operator = query.operator(watermark_lag=lag, in_order=in_order, schema=settings.types)
    else:
        operator = Operator.restore(saved.operator)
    inputs = [source.path for source in input_files]
    outputs.check()
    chosen = output_format(outputs.results, outputs.form, inputs)
    kind = kind_of_time(query, windows, None)
    times = TimeReader(query.time, kind, settings.time_format, settings.time_unit, query.bad == "fail")
    progress = Progress(not quiet)
    reads = None if outputs.side_outputs else columns_read(query, windows)  # routed tuples have all columns
    reader = Reader(settings, times, reads, follow)
    live = follow or (STDIN in inputs and outputs.results != STDIN)
    with ExitStack() as files:
        writer = files.enter_context(opened_output(outputs.results, chosen, again=resume, live=live))
        sides = {
            name: files.enter_context(
                RoutedFile(path, output_format(path, None, inputs), again=resume, live=live)
            )
            for name, path in outputs.side_outputs.items()
        }
        positions = {} if saved is None else dict(saved.positions)
        task = Run(operator, reader, writer, progress, positions, sides.get("late"), sides.get("bad"))
        ended = task.over(input_files)
    if not ended:
        save_run(snapshot, SavedRun(query.fingerprint(), task.positions, operator.snapshot()))
    elif resume:
        snapshot.unlink()
    else:
        forget_run(snapshot, task.positions)
    progress.finish(operator.stats(), writer.rows)
    return ended


def routing_query(query: Query, late: str | None, bad: str | None) -> tuple[Query, dict[str, str]]:
    """The query that routes tuples into the files that were given, and these files."""
    given = {name: path for name, path in (("late", late), ("bad", bad)) if path is not None}
    for name, other in (("late", "drop"), ("bad", "skip")):
        if getattr(query, name) == "route" and name not in given:
            raise QueryError(
                f'{name} = "route" needs a file for these tuples: give --{name} {name}.jsonl, '
                f'or write {name} = "{other}" under [stream]'
            )
        if given.get(name) == STDIN:
            raise QueryError(f"--{name} must be a file: got -; give --{name} {name}.jsonl")
    if late is not None:
        query = replace(query, late="route")
    return query if bad is None else replace(query, bad="route"), given


def run_on_spark(
    query: Query, input_files: list[InputFile], settings: InputSettings, output: str, form: str | None
) -> None:
    """Run on local Spark, over files to their end."""
    from muntin.connectors.spark.files import errors_of_spark, read_files
    from muntin.connectors.spark.spark_session import quiet_session

    session = quiet_session()  # its error names what is missing
    paths = [(source.path, source.form) for source in input_files]
    chosen = output_format(output, form, [source.path for source in input_files])
    strict = query.bad == "fail"
    with opened_output(output, chosen) as writer, errors_of_spark():
        frame = read_files(
            session, paths, settings.delimiter, query.time, settings.time_unit, settings.schema, strict=strict
        )
        writer.write(frame.transform(query).toArrow(), last=True)
