"""Transcripts: YAML files with input, watermarks and the expected rows.

    columns: [t, v]
    stream: {time: t}
    transcripts:
      - name: half_open
        windows: {ten: {type: tumbling, length: 10}}
        aggregates: {n: {function: count}}
        steps:
          - input: [[0, 1], [9, 1], [10, 1]]
          - watermark: 10
            expect: [{window: [0, 10], n: 2}]

`stream`, `windows` and `aggregates` have the keys of a query file. The keys at the
top of a file apply to all its transcripts; a transcript adds to `stream`,
`aggregates` and `types` and replaces the rest.

A step does one thing (`input`, `watermark`, `finish`, `add`, `remove`) and names
its *complete* outcome: rows under `expect`, late tuples under `expect_late`, an
error under `expect_error` (a pattern). `window` is [start, end], and for windows
on ranks or another measure [start, end, low, high]; `kind` is final and
`revision` 0 unless given. Times are integers, or ISO texts for timestamp columns.
`since` of an `add` is the latest start that an engine may choose for the new
window.

`must_fail: true` marks a transcript whose expectation is wrong: replaying it must
find that out. `shuffle: false` marks one that depends on the order of arrival,
`split: false` one that depends on the batches.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from muntin.errors import MuntinError
from muntin.testing.engines import Engine, Record
from muntin.testing.rows import Row, compare, same_value, unmatched
from muntin.testing.scenarios import Action, play
from muntin.testing.transcript_files import Step, Transcript, load_transcripts
from muntin.timeline import INF

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["VARIANTS", "MismatchError", "Step", "Transcript", "load_transcripts", "replay", "variants_of"]

VARIANTS = (
    "as given",
    "one record at a time",
    "shuffled within the watermark",
    "reversed within the watermark",
    "through a snapshot",
)
"""The variants in which a transcript can be replayed."""


_VERBS = {"input": "process", "watermark": "advance"}


class MismatchError(AssertionError):
    """The results of an engine differ from the transcript."""


def variants_of(transcript: Transcript) -> tuple[str, ...]:
    """The variants in which a transcript must hold."""
    left_out = set()
    if not transcript.split:
        left_out |= {"one record at a time", "shuffled within the watermark", "reversed within the watermark"}
    if not transcript.shuffle:
        left_out |= {"shuffled within the watermark", "reversed within the watermark"}
    return tuple(variant for variant in VARIANTS if variant not in left_out)


def replay(
    transcript: Transcript, engine_factory: Callable[[Any, pa.Schema], Engine], variant: str = "as given"
) -> None:
    """Play a transcript on an engine; a `MismatchError` shows where they differ.

    A transcript that must fail passes if the engine differs from it.
    """
    try:
        _play(transcript, engine_factory, variant)
    except MismatchError:
        if not transcript.must_fail:
            raise
    else:
        if transcript.must_fail:
            raise MismatchError(f"{transcript.name} ({variant}): must fail, but every result is as it says")


def _play(transcript: Transcript, engine_factory: Callable[[Any, pa.Schema], Engine], variant: str) -> None:
    if transcript.error is not None:
        if transcript.query is not None:
            raise MismatchError(
                f'{transcript.name}: expected an error like "{transcript.error}", but there is none'
            )
        return
    engine = engine_factory(transcript.query, transcript.schema)
    for step in _steps(transcript, variant):
        where = f"{transcript.name} ({variant}), at {step}"
        _check_step(engine, step, where)
        if variant == "through a snapshot":
            engine = engine.restored(engine.snapshot())


def _steps(transcript: Transcript, variant: str) -> Iterator[Step]:
    """The steps of a transcript, with its input batched and ordered for the variant."""
    for action, group in groupby(transcript.steps, key=lambda step: step.action):
        steps = list(group)
        if action != "input" or variant not in VARIANTS[1:4]:
            yield from steps
        elif variant == "one record at a time":
            for step in steps:
                yield from _one_by_one(step)
        else:
            rows = [row for step in steps for row in step.value]
            if variant.startswith("shuffled"):
                random.Random(transcript.name).shuffle(rows)
            else:
                rows.reverse()
            for step in steps:
                yield replace(step, value=rows[: len(step.value)])
                rows = rows[len(step.value) :]


def _one_by_one(step: Step) -> Iterator[Step]:
    """A step for each row; the last one has the outcome."""
    for row in step.value[:-1]:
        yield Step("input", [row])
    yield replace(step, value=step.value[-1:])


def _check_step(engine: Engine, step: Step, where: str) -> None:
    try:
        rows = _perform(engine, step)
    except MuntinError as error:
        if step.error is None:
            raise MismatchError(f"{where}\nunexpected error: {error}") from error
        if not re.search(step.error, str(error), re.IGNORECASE):
            raise MismatchError(f'{where}\nexpected an error like "{step.error}": {error}') from error
        return
    if step.error is not None:
        raise MismatchError(f'{where}\nexpected an error like "{step.error}", but there was none')
    difference = compare(rows, step.expect)
    if difference:
        raise MismatchError(f"{where}\n{difference}")
    if step.action in ("watermark", "finish"):
        difference = _compare_late(engine.take_late(), list(step.late))
        if difference:
            raise MismatchError(f"{where}\n{difference}")


def _perform(engine: Engine, step: Step) -> list[Row]:
    if step.action != "add":
        return play(engine, Action(_VERBS.get(step.action, step.action), step.value))
    for name, window in step.value.items():
        since = engine.add(name, window, step.since)
        if since > (INF if step.since is None else step.since):
            raise MismatchError(f'"{name}" starts at {since}, later than {step.since}')
    return []


def _compare_late(actual: list[tuple[str, Record]], expected: list[tuple[str, Record]]) -> str:
    """The differences between two lists of late tuples, in any order; empty without one."""
    unexpected, missing = unmatched(
        actual, expected, lambda one, other: one[0] == other[0] and same_value(one[1], other[1])
    )
    lines = [f"not late    {name} {dict(row)}" for name, row in missing]
    lines += [f"late        {name} {dict(row)}" for name, row in unexpected]
    return "\n".join(lines)
