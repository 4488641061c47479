"""Recordings: what an operator took in and gave, as a transcript that is compared with later runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from muntin.connectors.streaming import Stream
from muntin.connectors.tables import as_record, to_batch
from muntin.errors import QueryError, value_text
from muntin.slicing.binding import columns_read
from muntin.testing.engines import EmbeddedEngine, Record, rows_of_table
from muntin.testing.rows import Row, compare, same_value, unmatched
from muntin.testing.transcript_files import Step, Transcript, load_transcripts
from muntin.testing.transcript_writing import code_of, transcript_text
from muntin.testing.transcripts import MismatchError, replay, variants_of
from muntin.timeline import NEG_INF

if TYPE_CHECKING:
    from muntin.connectors.embedded import Operator
    from muntin.dsl import Query
    from muntin.results import Results
    from muntin.slicing.window_changes import Added

__all__ = ["RecordedOperator", "record"]


def record(operator: Operator | Query, path: str | Path, *, renew: bool = False) -> RecordedOperator:
    """An operator that records its tuples, watermarks and results in a transcript.

    The first run writes the file. A later one compares with it, and replays it in all its variants; it
    raises a `MismatchError` at the first step that differs. `renew` writes the file again. As a context
    manager it does so at the end of the block, otherwise in `complete()`.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    >>> with record(query, "tens.yaml") as op:  # doctest: +SKIP
    ...     op.process({"t": [1, 12]})
    ...     op.advance(15)
    """
    if find_spec("yaml") is None:
        raise QueryError('a recording needs PyYAML, which is not installed: pip install "muntin[testing]"')
    return RecordedOperator(operator, Path(path), renew=renew)


@dataclass
class _Recorded:
    """One step as it happened."""

    action: str
    value: Any
    rows: list[Row] = field(default_factory=list)
    since: int | None = None


class RecordedOperator:
    """An operator with all calls of `muntin.Operator`; what goes in and comes out is recorded."""

    def __init__(self, operator: Operator | Query, path: Path, *, renew: bool = False) -> None:
        current: Any = operator if hasattr(operator, "process") else operator.operator()
        if current.watermark != NEG_INF or current.stats().tuples:
            raise QueryError("a recording begins before the first tuple: got an operator that has taken some")
        self._operator: Operator = current
        self._spec: Any = current._engine.spec
        self._windows = dict(self._spec.windows)
        self._steps: list[_Recorded] = []
        self._batches: list[pa.RecordBatch] = []
        self._watermark: int = NEG_INF
        self.path = path
        self.renews = renew or not path.exists()
        """Whether this run writes the file, rather than compare with it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._operator.__exit__()
        if kind is None:
            self.complete()

    # What is recorded. ------------------------------------------------------------------------------

    def process(self, data: object) -> Results:
        """Take tuples in, as `Operator.process` does."""
        results = self._operator.process(data)
        one = as_record(data, self._spec.time)
        batch, misfits = to_batch(data if one is None else [one])
        if misfits:
            raise QueryError(
                f"a recording needs one type per column: {misfits[0].reason}; leave the tuple out"
            )
        columns = columns_read(self._spec, self._windows.values())
        if columns is not None:
            batch = batch.select([name for name in batch.schema.names if name in columns])
        self._batches.append(batch)
        if not self._steps or self._steps[-1].action != "input" or self._steps[-1].rows:
            self._steps.append(_Recorded("input", []))
        self._steps[-1].value.append(len(self._batches) - 1)
        return self._noted(results)

    def advance(self, watermark: object) -> Results:
        """Move the watermark, as `Operator.advance` does."""
        return self._noted(self._operator.advance(watermark))

    def flush(self) -> Results:
        """Slice the buffered tuples, as `Operator.flush` does."""
        return self._noted(self._operator.flush())

    def poll(self) -> Results:
        """Close the windows of a silent stream, as `Operator.poll` does."""
        return self._noted(self._operator.poll())

    def finish(self) -> Results:
        """End the stream, as `Operator.finish` does."""
        results = self._operator.finish()
        self._steps.append(_Recorded("finish", True, self._rows(results)))
        return results

    def stream(self, source: object, *, finish: bool = True) -> Stream:
        """The results of a source, part by part, as `Operator.stream` gives them."""
        own: Any = self
        return Stream(own, source, finish)

    def add(self, /, *unnamed: object, **named: Any) -> Added:
        """Serve more windows, as `Operator.add` does."""
        added = self._operator.add(*unnamed, **named)
        for name, window in named.items():
            self._steps.append(_Recorded("add", {name: window}, since=int(added.since[name])))
        self._windows |= named
        return added

    def remove(self, *names: str) -> None:
        """Stop serving windows, as `Operator.remove` does."""
        self._operator.remove(*names)
        self._steps += [_Recorded("remove", name) for name in names]

    def _noted(self, results: Results) -> Results:
        """Note results, and the watermark if it has moved."""
        rows = self._rows(results)
        if self._operator.watermark > self._watermark:
            self._watermark = self._operator.watermark
            self._steps.append(_Recorded("watermark", self._watermark, rows))
        elif rows:
            if not self._steps or self._steps[-1].action == "add":
                self._steps.append(_Recorded("input", []))
            self._steps[-1].rows += rows
        return results

    def _rows(self, results: Results) -> list[Row]:
        return rows_of_table(results.to_arrow(nested=True), self._spec.keys)

    # The end. ---------------------------------------------------------------------------------------

    def complete(self) -> None:
        """Write the transcript, or compare with it."""
        if not self._steps:
            raise QueryError(f"a recording needs a call of the operator: got none for {self.path}")
        current = self._transcript()
        windows, aggregates = self._windows.items(), self._spec.aggregates
        named = code_of(windows, aggregates)
        if not self.renews:
            recorded = load_transcripts(self.path, named)[0]
            _compare(current, recorded, self.path)
            _hold(replace(recorded, query=current.query))
            return
        current = _with_variants(current)
        text = transcript_text(current)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text, "utf-8")
        _hold(load_transcripts(self.path, named)[0])

    def _transcript(self) -> Transcript:
        """What was recorded, and the late tuples that its replay gives."""
        query = replace(self._spec, late="route")
        tables = [pa.Table.from_batches([batch]) for batch in self._batches]
        whole = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
        engine = EmbeddedEngine(query, whole.schema)
        steps = []
        for number, one in enumerate(self._steps):
            value: Any = one.value
            if one.action == "input":
                value = [row for index in value for row in _in_schema(self._batches[index], whole.schema)]
            rows, late = _played(engine, one, value)
            difference = compare(rows, one.rows)
            if difference:
                raise QueryError(
                    "a recording must not depend on a clock or on when a stream is silent: "
                    f"step {number + 1}, {one.action}, gives other rows when it is replayed\n{difference}"
                )
            steps.append(Step(one.action, value, tuple(one.rows), tuple(late), since=one.since))
        return Transcript(self.path.stem, query, whole.schema, tuple(steps))


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> list[dict[str, Any]]:
    table = pa.concat_tables(
        [schema.empty_table(), pa.Table.from_batches([batch])], promote_options="permissive"
    )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _played(engine: EmbeddedEngine, one: _Recorded, value: Any) -> tuple[list[Row], list[tuple[str, Record]]]:
    if one.action == "add":
        for name, window in value.items():
            engine.add(name, window, None)
    elif one.action == "remove":
        engine.remove(value)
    elif one.action == "input":
        return engine.process(value), []
    else:
        rows = engine.finish() if one.action == "finish" else engine.advance(int(value))
        return rows, engine.take_late()
    return [], []


def _with_variants(transcript: Transcript) -> Transcript:
    """The transcript with marks for the variants in which it does not hold."""
    shuffle = _holds(transcript, "shuffled within the watermark", "reversed within the watermark")
    return replace(transcript, shuffle=shuffle, split=_holds(transcript, "one record at a time"))


def _holds(transcript: Transcript, *variants: str) -> bool:
    try:
        for variant in variants:
            replay(transcript, EmbeddedEngine, variant)
    except MismatchError:
        return False
    return True


def _hold(transcript: Transcript) -> None:
    for variant in variants_of(transcript):
        replay(transcript, EmbeddedEngine, variant)


def _compare(current: Transcript, recorded: Transcript, path: Path) -> None:
    """A MismatchError for the first step that is not as it was recorded."""
    for number, (one, other) in enumerate(zip(current.steps, recorded.steps, strict=False), 1):
        where = f"{path}, step {number}"
        if one.action != other.action or not _same_value(one, other):
            raise MismatchError(
                f"{where}: the input is not as it was recorded: got {value_text(str(one))}, recorded "
                f"{value_text(str(other))}; if it is right, record again: pytest --muntin-record"
            )
        difference = compare(one.expect, other.expect)
        late = unmatched(list(one.late), list(other.late), lambda a, b: a == b)
        if any(late):
            difference += f"\nlate tuples: got {list(one.late)}, recorded {list(other.late)}"
        if difference:
            raise MismatchError(f"{where}, {one.action}\n{difference}")
    if len(current.steps) != len(recorded.steps):
        raise MismatchError(
            f"{path} has {len(recorded.steps)} steps: got {len(current.steps)}; "
            "if that is right, record again: pytest --muntin-record"
        )


def _same_value(one: Step, other: Step) -> bool:
    if one.action != "input":
        return one.action == "finish" or one.value == other.value
    rows = [{name: row.get(name) for name in each} for row, each in zip(one.value, other.value, strict=False)]
    return len(one.value) == len(other.value) and not any(unmatched(rows, list(other.value), same_value))
