"""`op.stream(source)`: the results of a source, part by part, for `for` and `async for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from os import PathLike
from typing import TYPE_CHECKING

from muntin.connectors.expected_input import wanted
from muntin.connectors.files import Wanted
from muntin.connectors.sources import Part, parts_of
from muntin.errors import DataError
from muntin.results import Results

if TYPE_CHECKING:
    from muntin.connectors.embedded import Operator


class Stream:
    """The results of an operator over a source; each loop over it reads from the source."""

    __slots__ = ("_finish", "_operator", "_source")

    def __init__(self, operator: Operator, source: object, finish: bool) -> None:
        self._operator, self._source, self._finish = operator, source, finish

    def __iter__(self) -> Iterator[Results]:
        if isinstance(self._source, AsyncIterator) or hasattr(self._source, "__aiter__"):
            raise DataError(
                f"an asynchronous source needs async for: got {type(self._source).__name__} in a for loop; "
                "write async for results in op.stream(source)"
            )
        for part in self._parts():
            with part.located():
                results = self._operator.process(part.data)
            if results:
                yield results
        if self._finish and (results := self._operator.finish()):
            yield results

    def _parts(self) -> Iterator[Part]:
        source, engine = self._source, self._operator._engine

        def columns() -> Wanted:
            return wanted(engine, self._operator._connection)

        if isinstance(source, Iterator):  # live: each item is processed when it arrives
            for item in source:
                if isinstance(item, str | PathLike):
                    yield from parts_of(item, engine.spec.time, columns) or ()
                else:
                    yield Part(item)
            return
        parts = parts_of(source, engine.spec.time, columns)
        yield from [Part(source)] if parts is None else parts

    async def __aiter__(self) -> AsyncIterator[Results]:
        if not hasattr(self._source, "__aiter__"):
            raise DataError(
                f"async for needs an asynchronous source: got {type(self._source).__name__}; "
                "write for results in op.stream(source)"
            )
        operator, source = self._operator, aiter(self._source)
        patience = operator._engine.spec.idle_after
        waiting = asyncio.ensure_future(anext(source, _END))
        try:
            while True:
                done, _ = await asyncio.wait(
                    {waiting}, timeout=None if patience is None else patience / 1_000_000
                )
                item = None
                if done and (item := waiting.result()) is _END:
                    break
                if done:
                    waiting = asyncio.ensure_future(anext(source, _END))
                if results := operator.process(item) if done else operator.poll():
                    yield results
        finally:
            waiting.cancel()
        if self._finish and (results := operator.finish()):
            yield results


_END = object()
