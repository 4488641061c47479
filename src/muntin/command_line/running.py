"""`muntin run`: sources through an operator into a writer, until they end or Ctrl-C."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

import pyarrow as pa

from muntin.command_line.inputs import StandardInput
from muntin.command_line.progress import Progress
from muntin.command_line.reading import Portion, Reader
from muntin.command_line.writing import Output, RoutedFile
from muntin.connectors.embedded import Operator
from muntin.connectors.input_files import InputFile
from muntin.errors import ColumnError, DataError, RowError
from muntin.results import Results

__all__ = ["Run"]


@dataclass
class Run:
    """One run; `positions` are the rows of each source that were taken in, by its place."""

    operator: Operator
    reader: Reader
    writer: Output
    progress: Progress
    positions: dict[str, int] = field(default_factory=dict)
    late: RoutedFile | None = None
    """Takes late tuples, and `bad` bad ones, where the query routes them."""
    bad: RoutedFile | None = None

    def over(self, sources: list[InputFile]) -> bool:
        """Take all sources in, and the end of the stream; False where Ctrl-C stopped it between two steps."""
        with _interrupts() as interrupt:
            for source in sources:
                skip = 0 if isinstance(source, StandardInput) else self.positions.get(source.place, 0)
                follow = self.reader.follow and source is sources[-1]
                chunks = replace(self.reader, follow=follow).chunks(source, skip)
                while (portion := interrupt.wait_for(chunks)) is not None:
                    self._take(source, portion)
                if interrupt.requested:
                    return False
            self._write(self.operator.finish(), last=True)
        return True

    def _take(self, source: InputFile, portion: Portion) -> None:
        number = len(portion.tuples)
        try:
            if portion.watermark is not None:
                results = self.operator.advance(portion.watermark)
            elif not number:  # a file that is followed has nothing new
                results = self.operator.poll()
            else:
                results = self.operator.process(portion.tuples)
        except DataError as error:
            first, message = portion.rows - number + 1, str(error)
            place = f", row {first} to {portion.rows}" if number > 1 else f", row {portion.rows}"
            if isinstance(error, RowError):
                place, message = f", row {first + error.row}", error.without_row
            elif isinstance(error, ColumnError):
                place = ""
            raise DataError(f"{source}{place}: {_as_options(message)}{_one_column(portion)}") from error
        self._write(results)
        self.positions[source.place] = portion.rows
        self.progress.add(number, self.operator.watermark)

    def _write(self, results: Results, last: bool = False) -> None:
        self.writer.write(results, last=last)
        if self.late is not None:
            self.late.write(self.operator.take_late(), last=last)
        if self.bad is not None:
            self.bad.write(self.operator.take_bad(), last=last)


_SCHEMA = re.compile(r'pass schema=\{"(?P<column>[^"]+)": "(?P<type>[^"]+)"\}')
"""How a message tells to give a type in Python."""


def _as_options(message: str) -> str:
    """The message with the options of the command line in place of arguments of Python."""
    typed = _SCHEMA.sub(lambda match_: f"give its type: --type {match_['column']}={match_['type']}", message)
    return typed.replace(
        'choose bad="skip" or bad="route"', 'write bad = "skip" under [stream], or give --bad bad.jsonl'
    )


def _one_column(portion: Portion) -> str:
    """Advice where a line of CSV was read as one column."""
    names = portion.tuples.schema.names if isinstance(portion.tuples, pa.RecordBatch) else []
    marks = [mark for mark in ",;\t|" if len(names) == 1 and mark in names[0]]
    return f"; if these are several columns, give --delimiter {marks[0]!r}" if marks else ""


class _Interrupt:
    """Ctrl-C, which stops a run between two steps, or while it waits for input."""

    requested = False
    _waiting = False

    def wait_for(self, chunks: Iterator[Portion]) -> Portion | None:
        """The next portion; None at the end, and after Ctrl-C."""
        if self.requested:
            return None
        self._waiting = True
        try:
            return next(chunks, None)
        except KeyboardInterrupt:
            return None
        finally:
            self._waiting = False

    def request(self, _: int, __: FrameType | None) -> None:
        """The handler of the signal; a second Ctrl-C stops at once."""
        again, self.requested = self.requested, True
        if again or self._waiting:
            raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[_Interrupt]:
    interrupt = _Interrupt()
    before = signal.signal(signal.SIGINT, interrupt.request)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
