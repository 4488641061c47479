"""Tuples older than the final time: which queries they still count for, and for which they are late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.listing_kernels import sessions
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.routed import one_table
from muntin.slicing.table import SliceTable
from muntin.slicing.table_kernels import merge_order
from muntin.timeline import NEG_INF
from muntin.windows.base import ContextFreeWindow

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Late:
    """Tuples that came too late for one query."""

    query: str
    raw: pa.RecordBatch


@dataclass(slots=True)
class Waiting:
    """Tuples that wait to be judged: as slices, and as they came where late ones are routed."""

    rows: SliceTable
    raw: Raw | None = None


@dataclass(slots=True)
class Raw:
    """Tuples as they came, and where they belong."""

    key: Column
    time: Column
    tuples: pa.RecordBatch


def levels(table: SliceTable, rows: SliceTable, gaps: Column, final: int) -> Column:
    """How many session classes each row is too late for: its session there has expired."""
    level = np.zeros(len(rows), dtype=np.int64)
    for c, gap in enumerate(gaps):
        mine = np.flatnonzero(table.level <= c)
        key = np.concatenate([table.key[mine], rows.key])
        first = np.concatenate([table.first[mine], rows.first])
        last = np.concatenate([table.last[mine], rows.last])
        order = np.empty(len(key), dtype=np.int64)
        merge_order(key[: len(mine)], first[: len(mine)], rows.key, rows.first, order)
        out = np.empty((5, len(order)), dtype=np.int64)
        count = sessions(order, key, first, last, gap, NEG_INF, out)
        dead = out[2, :count] + gap < final
        members = order[np.repeat(dead, out[4, :count] - out[3, :count])] - len(mine)
        level[members[members >= 0]] = c + 1
    return level


def verdicts(
    rows: SliceTable, queries: tuple[LiveQuery, ...], live: LiveSet, final: int
) -> tuple[Mask, list[tuple[LiveQuery, Mask]]]:
    """Which rows some of these queries take, and for each query which rows it is too late for."""
    accepted = np.zeros(len(rows), dtype=np.bool_)
    late: list[tuple[LiveQuery, Mask]] = []
    for query in queries:
        mine = rows.first >= query.since
        if isinstance(query.window, ContextFreeWindow):
            ends = query.window.last_end(rows.first)
            takes = mine & (ends > final)
            refuses = mine & (ends > NEG_INF) & ~takes
        elif query in live.sessions:
            takes = mine & (rows.level <= live.session_class(query))
            refuses = mine & ~takes
        else:
            takes = np.zeros(len(rows), dtype=np.bool_)
            refuses = mine
        accepted |= takes
        query.late += int(rows.n[refuses].sum())
        late.append((query, refuses))
    return accepted, late


def late_output(rows: SliceTable, late: list[tuple[LiveQuery, Mask]], waiting: list[Waiting]) -> list[Late]:
    """The tuples of the rows that each query refuses, in order of arrival."""
    raws = [part.raw for part in waiting if part.raw is not None]
    if not raws:
        return []
    tuples = one_table(raw.tuples for raw in raws).combine_chunks().to_batches()[0]
    key = np.concatenate([raw.key for raw in raws])
    holder = rows.holding(key, np.concatenate([raw.time for raw in raws]))
    result = []
    for query, refuses in late:
        which = np.flatnonzero(refuses[holder])
        if len(which):
            result.append(Late(query.name, tuples.take(pa.array(which))))
    return result
