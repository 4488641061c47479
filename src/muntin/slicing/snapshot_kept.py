"""Restores kept tuples from a snapshot, and checks that ranks, contexts and closed windows agree."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.encoding import decode
from muntin.slicing.batch import Batch
from muntin.slicing.binding import Binding
from muntin.slicing.closed import Closed, Past
from muntin.slicing.kept import KeptSlicer
from muntin.slicing.listing_kernels import rank_ranges
from muntin.slicing.live import LiveQuery
from muntin.slicing.table_kernels import key_offsets
from muntin.slicing.tuples import STAGES, KeptTuples, Progress
from muntin.slicing.validation import Bounds, check_schema, read_columns, refuse_unless
from muntin.timeline import INF, NEG_INF
from muntin.windows.context_checks import KeyPositions
from muntin.windows.tuple_driven import TupleDriven

__all__ = ["load_kept"]

Column = npt.NDArray[np.int64]


def load_kept(kept: KeptSlicer, binding: Binding, tables: dict[str, pa.Table], bounds: Bounds) -> None:
    """Load the kept tuples, the progress of each key and the closed windows into `kept`."""
    tuples = kept.tuples = _load_tuples(binding, tables, bounds)
    queries = {q.name: q for q in kept.manager.live.driven}
    for path, table in tables.items():
        kind, _, name = path.partition("/")
        stage, _, query = name.partition("/") if kind in ("contexts", "firsts") else ("", "", name)
        if kind in ("contexts", "firsts", "skipped", "closed", "past"):
            refuse_unless(query in queries, f'no query of kept tuples is called "{query}"')
        if kind == "contexts":
            tuples.stage(stage).contexts[query] = _load_contexts(
                table.column("context").combine_chunks(), queries[query]
            )
        elif kind == "firsts":
            tuples.stage(stage).firsts[query] = read_columns(kind, table, bounds)["first"]
        elif kind == "skipped":
            tuples.skipped[name] = read_columns(kind, table, bounds)["rank"]
        elif kind == "closed":
            columns: dict[str, Any] = read_columns(
                kind, table, bounds, binding.edge_dtype(queries[name].window)
            )
            marks = [mark for mark in ("low", "high") if mark in columns]
            on_measure = ["low", "high"] if queries[name].window.on_measure else []
            refuse_unless(
                not len(table) or marks == on_measure,
                f'"{name}" must have edges on its measure, and only there',
            )
            kept.closed[name] = Closed(**columns)
        elif kind == "past":
            columns = read_columns(kind, table, bounds, binding.edge_dtype(queries[name].window))
            kept.past[name] = Past(**columns)
    _check_slices(kept)
    _check_lives(tuples)
    for query_ in queries.values():
        _check_query(kept, query_, binding)


def _load_tuples(binding: Binding, tables: dict[str, pa.Table], bounds: Bounds) -> KeptTuples:
    progress = read_columns("progress", tables["progress"], bounds)
    tuples = KeptTuples(base=progress["base"], reached=progress["reached"])
    for stage in STAGES:
        lives = read_columns("lives", tables[f"lives/{stage}"], bounds)
        setattr(tuples, stage, Progress(progress[stage], life=lives["life"], last=lives["last"]))
    keys = len(tuples.base)
    refuse_unless(keys <= max(bounds.keys, 1), f"progress must cover at most {bounds.keys} keys: got {keys}")
    for path, table in tables.items():
        if path.startswith("arrived/"):
            tuples.arrived.append(_load_batch(read_columns("arrived", table, bounds), table, binding))
    if "tuples" in tables:
        columns = read_columns("tuples", tables["tuples"], Bounds(keys, bounds.time))
        tuples.batch, tuples.fresh = _load_batch(columns, tables["tuples"], binding), columns["fresh"]
        tuples._index(keys)
    else:
        tuples.offsets = np.zeros(keys + 1, dtype=np.int64)
    behind = tuples.base + np.diff(tuples.offsets)
    ranks = (np.zeros(keys), tuples.base, tuples.committed.rank, tuples.sliced.rank, behind)
    in_order = all((low <= high).all() for low, high in pairwise(ranks))
    refuse_unless(in_order, "ranks must not decrease from base, committed and sliced to arrived")
    return tuples


def _load_batch(columns: dict[str, Any], table: pa.Table, binding: Binding) -> Batch:
    kinds = [(str(i), binding.types[e]) for i, e in enumerate(binding.inputs)]
    check_schema("kept tuples", table, pa.schema(kinds))
    values = {e: table.column(str(i)).combine_chunks() for i, e in enumerate(binding.inputs)}
    return Batch(columns["key"], columns["time"], columns["seq"], values)


def _load_contexts(saved: pa.Array, query: LiveQuery) -> npt.NDArray[Any]:
    kind = _window(query).initial(0).dtype
    wanted = pa.string() if kind.hasobject else pa.binary(kind.itemsize)
    refuse_unless(
        saved.type == wanted and not saved.null_count, f"contexts must be {wanted}: got {saved.type}"
    )
    if kind.hasobject:
        values = [decode(text) for text in saved.to_pylist()]
        contexts = np.empty(len(values), dtype=object)
        contexts[:] = values
        return contexts
    raw = saved.buffers()[1]
    return np.frombuffer(raw, dtype=kind, count=len(saved), offset=saved.offset * kind.itemsize).copy()


def _check_slices(kept: KeptSlicer) -> None:
    """Slices of ranked tuples end where their key is sliced, and closed windows where some slice does."""
    tuples, table = kept.tuples, kept.manager.table
    keys = len(tuples.base)
    ranked = np.flatnonzero(table.rank >= 0)
    key, rank, n = table.key[ranked], table.rank[ranked], table.n[ranked]
    refuse_unless(
        (key < keys).all() and (rank + n <= tuples.sliced.rank[key]).all(), "slices must hold sliced tuples"
    )
    follows = (key[1:] > key[:-1]) | (rank[1:] >= rank[:-1] + n[:-1])
    refuse_unless(follows.all(), "the slices of a key must hold its tuples in turn")
    for closed in kept.closed.values():
        refuse_unless(
            (closed.key < keys).all() and (closed.begin < closed.end).all(), "closed windows must hold tuples"
        )
        lo, hi = np.empty((2, len(closed)), dtype=np.int64)
        offsets = key_offsets(key, keys)
        rank_ranges(offsets, rank, closed.key, closed.begin, closed.end, lo, hi)
        there = (lo < hi) & (closed.end <= tuples.sliced.rank[closed.key])
        refuse_unless(there.all() and (rank[lo] == closed.begin).all(), "a closed window must have slices")
    for past in kept.past.values():
        refuse_unless(
            (past.key < keys).all() and (past.begin <= past.end).all(),
            "expired windows must end after their begin",
        )


def _check_lives(tuples: KeptTuples) -> None:
    """Where keys are forgotten, every key has a life, and the life began with a tuple that was seen."""
    keys = len(tuples.base)
    for progress in map(tuples.stage, STAGES):
        sizes = {len(progress.life), *map(len, progress.firsts.values())}
        refuse_unless(sizes <= {0, keys}, f"there must be {keys} lives: got {max(sizes)}")
        some = progress.rank[: len(progress.life)]
        refuse_unless((progress.life <= some).all(), "a life must begin with a tuple that was seen")


def _check_query(kept: KeptSlicer, query: LiveQuery, binding: Binding) -> None:
    """The contexts of a query have seen the tuples that came, from the first one that it counts."""
    tuples, window = kept.tuples, _window(query)
    keys = len(tuples.base)
    skipped = np.zeros(keys, dtype=np.int64)
    if query.since > NEG_INF:
        known = tuples.skipped.get(query.name, skipped[:0])
        refuse_unless(
            len(known) <= keys, f"a query must skip tuples of at most {keys} keys: got {len(known)}"
        )
        skipped[: len(known)] = known
        skipped[len(known) :] = -1
    refuse_unless(
        (skipped <= tuples.base + np.diff(tuples.offsets)).all(),
        "a query must not skip more tuples than arrived",
    )
    time = np.full(keys, INF, dtype=np.int64)
    if tuples.batch is not None:
        some = np.flatnonzero(np.diff(tuples.offsets))
        time[some] = tuples.batch.time[tuples.offsets[some]]
    floating = binding.edge_dtype(window) is np.float64
    for progress in map(tuples.stage, STAGES):
        contexts = progress.contexts.get(query.name)
        refuse_unless(contexts is not None or not keys, f'"{query.name}" must have contexts')
        if contexts is None:
            continue
        refuse_unless(len(contexts) == keys, f"there must be {keys} contexts: got {len(contexts)}")
        seen = np.where(skipped < 0, 0, np.maximum(progress.rank - skipped, 0))
        positions = KeyPositions(seen, np.minimum(np.maximum(tuples.base - skipped, 0), seen), time, floating)
        refuse_unless(
            window.contexts_fit(contexts, positions), f'the contexts of "{query.name}" do not fit its tuples'
        )


def _window(query: LiveQuery) -> TupleDriven:
    assert isinstance(query.window, TupleDriven)
    return query.window
