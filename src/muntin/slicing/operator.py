"""The slicing operator: record batches and watermarks in, tables of window results out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.errors import SnapshotError
from muntin.expressions import Expr
from muntin.metrics import Metrics
from muntin.planning.plan import Plan, make_plan
from muntin.query import EachBatch, Every, QuerySpec
from muntin.slicing.arrivals import Arrivals, Misfit, out_of_order
from muntin.slicing.batch import Batch, numbers
from muntin.slicing.binding import ARRIVAL, Binding, require, unbound_schema, window_inputs
from muntin.slicing.combining.base import Lazy
from muntin.slicing.combining.choosing import combiner
from muntin.slicing.compaction import FEW, compact
from muntin.slicing.emission import WindowManager
from muntin.slicing.failing_tuples import accepted
from muntin.slicing.filling import Emission
from muntin.slicing.flood import Limit, check_overlapping, check_unprompted
from muntin.slicing.judging import Late
from muntin.slicing.keys import KeyTable
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.manager import SliceManager
from muntin.slicing.portions import LEAST, Held, stops
from muntin.slicing.results import Results
from muntin.slicing.routed import one_table, with_column
from muntin.slicing.stats import Stats
from muntin.slicing.table import SliceTable
from muntin.slicing.undo import whole_or_nothing
from muntin.slicing.widening import learn
from muntin.slicing.window_values import report_errors
from muntin.timeline import INF, LIMIT, NEG_INF, TimeExtent, instant

Times = tuple[npt.NDArray[np.int64], TimeExtent | None]
"""The times of tuples, all of them good, and their extent, if it is known."""


class SlicingOperator:
    """One operator instance serves all keys and all queries.

    Times and watermarks are in the unit inside: microseconds, or units of an integer time column.
    `shares`: how many operators share the keys of the stream. `follows_data`: whether tuples move the
    watermark.
    """

    IN_PLACE: ClassVar[tuple[str, ...]] = ("late",)

    def __init__(
        self, spec: QuerySpec, in_order: bool = False, store: str | None = None, follows_data: bool = False
    ) -> None:
        self.spec = spec
        self.in_order = in_order
        self.forced_store = store
        self.follows_data = follows_data or in_order
        self.in_step = False
        self.shares = 1
        self.metrics = Metrics()
        self.live = LiveSet(tuple(LiveQuery(name, window) for name, window in spec.windows))
        self.binding: Binding | None = None
        self.keys = KeyTable(())
        self.arrivals = Arrivals(spec.bad)
        self.late: list[Late] = []
        self.crowded = FEW
        self.watermark = NEG_INF
        """Every tuple before it has been seen."""
        self._due: tuple[LiveSet | None, int] = (None, NEG_INF)
        self._seq = 0

    # Input. -----------------------------------------------------------------------------------------

    def bind(self, schema: pa.Schema, records: tuple[str, ...] | None = None) -> Binding:
        """Fix the types of the input; records show all of its columns unless given."""
        if self.binding is None:
            windows = tuple(q.window for q in self.live.queries)
            self.open_with(Binding.of(self.spec, windows, schema, records, self.in_order))
        assert self.binding is not None
        return self.binding

    def open_with(self, binding: Binding) -> None:
        """Begin with input of these types."""
        from muntin.compiling_kernels import announce_compiling

        announce_compiling()
        self._read_inputs(self.live, binding)
        self.begin(binding, self._plan(self.live, binding))
        self.keys = KeyTable(binding.keys)
        self.results = Results(binding, self.live.queries)

    def begin(self, binding: Binding, plan: Plan) -> None:
        """Begin without any slices, to be combined as the plan says."""
        lateness = int(self.spec.allowed_lateness)
        forget = self.spec.forget_keys_after
        if forget is not None:
            forget = min(int(forget), LIMIT - 1)  # a time plus this span must fit into 64 bits
        self.slices = SliceManager(self.live, binding.partials, lateness, self.metrics, self.in_order, forget)
        self.windows = WindowManager(self.slices, self.spec.early is not None, combiner(plan))
        self.slices.watermark = self.watermark
        self.slices.limit = Limit(self.spec.max_windows, self.shares, binding.time.is_integer)
        self.arrivals.set_max_ahead(self.spec, self.follows_data, binding.time)
        self.slices.skips_errors = self.spec.on_error == "skip"
        self.binding, self.plan = binding, plan

    def _plan(self, live: LiveSet, binding: Binding) -> Plan:
        windows = tuple((q.name, q.window) for q in live.queries)
        spec = self.spec if windows == self.spec.windows else replace(self.spec, windows=windows)
        return make_plan(spec, self.in_order, self.forced_store, binding.partials.bound)

    def _read_inputs(self, live: LiveSet, binding: Binding) -> None:
        for query in live.queries:
            query.inputs = window_inputs(query.window, binding.records)

    def process(
        self, data: pa.RecordBatch, times: Times | None = None, misfits: Sequence[Misfit] = ()
    ) -> pa.Table:
        """Take a batch in. Returns results where each tuple is a watermark, or early ones are asked for.

        `times`: where all tuples are known to be good. `misfits` are values that the batch could not hold.
        """
        with whole_or_nothing(self, sliced=self.in_order or isinstance(self.spec.early, EachBatch)):
            return self._process(data, times, misfits)

    def step(self, data: pa.RecordBatch, times: Times, watermark: int) -> pa.Table:
        """Take a batch of good tuples in and move the watermark on: both happen, or nothing does.

        For whoever sets the watermark: it does not follow from the tuples, and nothing comes out early.
        """
        with whole_or_nothing(self, sliced=True):
            self.take_in(data, times)
            return self._advance(max(watermark, self.watermark), closing=False)

    def _process(self, data: pa.RecordBatch, times: Times | None, misfits: Sequence[Misfit]) -> pa.Table:
        batch, _ = self.take_in(data, times, misfits)
        results = self.look()
        if batch is not None and self.in_order:
            complete = self._advance(max(int(batch.time[-1]), self.watermark), closing=False)
            return pa.concat_tables([results, complete]) if results.num_rows else complete
        return results

    def look(self) -> pa.Table:
        """Early results, where they are asked for after each batch: what is in now is one."""
        if self.binding is None or not isinstance(self.spec.early, EachBatch):
            return self.nothing()
        return self.table(self.look_early())

    def take_in(
        self, data: pa.RecordBatch, times: Times | None = None, misfits: Sequence[Misfit] = ()
    ) -> tuple[Batch | None, pa.RecordBatch]:
        """Slice or keep the usable tuples of a batch; returns them as they are inside and as they came.

        A column ARRIVAL says how to order tuples of one time; without it they follow in the order in
        which they come.
        """
        if self.binding is None and self.arrivals.timeless(data, self.spec.time, misfits):
            self.metrics.bad = self.arrivals.bad
            return None, data
        binding = self.bind(data.schema)
        if binding.unknown or binding.measures or not data.schema.equals(binding.schema):
            binding = learn(self, data.schema)
            require((self.spec.time, *self.spec.keys, *binding.measures), data.schema)
        if times is None:
            data, times = self.arrivals.good(data, binding, misfits)
        values: dict[Expr, pa.Array] = {}
        if data.num_rows:
            data, times, values = accepted(self, data, times)
        self.metrics.bad = self.arrivals.bad
        (time, extent), rows = times, data.num_rows
        if not rows:
            return None, data
        ids = self._encode(data)
        keys = len(self.keys)
        batch = Batch(ids, time, self._arrival(data), values, None, extent, keys)
        if self.in_order and (not batch.extent.ordered or batch.extent.low < self.slices.newest):
            raise out_of_order(time, self.slices.newest)
        self.slices.keys = keys
        self.add(batch, data if self.spec.late == "route" else None)
        self._seq += rows
        self.metrics.tuples += rows
        return batch, data

    def add(self, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
        """Slice or keep these tuples; `raw` are the same as they came, for the late output."""
        self.slices.add(batch, raw)
        if self.slices.live.spanned:
            final = self.slices.final
            on_time = batch if batch.extent.low >= final else batch.take(np.flatnonzero(batch.time >= final))
            self.windows.observe(on_time.key, on_time.time, on_time.time)

    def notice(self, data: pa.RecordBatch) -> None:
        """Note how far the stream has come, without taking the tuples in."""
        binding = self.bind(data.schema)
        time, valid, _ = binding.time.to_internal(data.column(self.spec.time), strict=False)
        time = time if valid is None else time[valid]
        if len(time) and self.arrivals.is_too_far_ahead(int(time.max())):
            time = time[time <= self.arrivals.latest_allowed]
        if len(time):
            self.slices.newest = max(self.slices.newest, int(time.max()))

    def take_slices(self, keys: list[pa.Array], rows: SliceTable) -> None:
        """Take in what another operator of the same query sliced; `keys` are the values of its keys."""
        if self.spec.keys:
            ids = self.keys.encode(keys)
            # Key by key as they are: the rows of each stand together, in order.
            offsets, by_id = rows.offsets(len(ids)), np.argsort(ids)
            if not (np.diff(ids[by_id]) > 0).all():
                raise SnapshotError("each key of the slices must appear once")
            order = numbers(offsets[by_id], offsets[by_id + 1] - offsets[by_id])
            rows = rows.take(order, self.slices.partials).renumbered(ids)
        self.slices.keys = len(self.keys)
        self.slices.add_slices(rows)
        self.metrics.tuples += int(rows.n.sum())

    def _arrival(self, data: pa.RecordBatch) -> npt.NDArray[np.int64] | int:
        if data.schema.get_field_index(ARRIVAL) >= 0:
            given: npt.NDArray[np.int64] = data.column(ARRIVAL).to_numpy()
            return given
        return self._seq

    def _encode(self, data: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        if not self.spec.keys:
            return None
        return self.keys.encode([data.column(k) for k in self.spec.keys])

    # Watermarks. ------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> pa.Table:
        """Move the watermark on and emit what is complete. A lower one is ignored."""
        if self.binding is None:
            self.watermark = max(self.watermark, watermark)
            return self._untyped
        if self.is_quiet(watermark):
            self.slices.watermark = self.watermark = max(watermark, self.watermark)
            return self.results.empty
        with whole_or_nothing(self, sliced=True):
            return self._advance(max(watermark, self.watermark), closing=False)

    def is_quiet(self, watermark: int) -> bool:
        """Whether nothing can come out or change: no window begins or ends on the way, no tuple is late."""
        live, due = self._due
        return watermark < due and live is self.slices.live and not self.slices.waiting

    def _next_due(self) -> tuple[LiveSet, int]:
        """For these queries the watermark that ends the quiet; the smallest there is where none can tell."""
        slices, spec = self.slices, self.spec
        simple = slices.live.only_edges and not slices.lateness and spec.early is None
        told = simple and abs(self.watermark) < LIMIT
        return slices.live, slices.live.edges.after(self.watermark) if told else NEG_INF

    def finish(self) -> pa.Table:
        """The end of the stream: every window closes."""
        if self.binding is None:
            self.watermark = INF
            return self._untyped
        with whole_or_nothing(self, sliced=True):
            return self._advance(INF, closing=True)

    def _advance(self, watermark: int, closing: bool) -> pa.Table:
        table = self.emitted(watermark, closing)
        compact(self)
        self._due = self._next_due()
        return table

    def emitted(self, watermark: int, closing: bool = False, more: bool = False) -> pa.Table:
        """The results of moving the watermark on; `more` as in `complete`."""
        on_the_way = self.stops(watermark)
        if not on_the_way:
            return self.table(self.complete(watermark, closing, more))
        check_overlapping(self.slices, self.slices.watermark, watermark)
        portions = [self.table(self.complete(stop, False, True)) for stop in on_the_way]
        return pa.concat_tables([*portions, self.table(self.complete(watermark, closing, more))])

    def stops(self, watermark: int) -> list[int]:
        """Where to stop on the way to a watermark that completes very many windows.

        Nowhere if it may change windows that have come out, or if their values would depend on it.
        """
        slices = self.slices
        if len(slices.table.fresh) < LEAST or slices.touched or slices.waiting or not self.divides:
            return []
        return stops(slices.live, Held.of(slices), slices.watermark, watermark)

    @property
    def divides(self) -> bool:
        """Whether windows may come out apart from others: for the first time, and with the same values."""
        return self.alike and not self.windows.early

    @property
    def alike(self) -> bool:
        """Whether a window has the same value, bit for bit, whatever other slices there are beside its own.

        A tree over all slices combines those of a window in an order that depends on where they lie.
        """
        return self.plan.workload.exact or isinstance(self.windows.store, Lazy)

    def complete(self, watermark: int, closing: bool, more: bool = False) -> list[Emission]:
        """Move the watermark on; the windows that this completes, with their results.

        `more`: nothing is tidied up, since it moves on again at once, or nothing else comes. For windows
        that come out for the first time.
        """
        slices, windows = self.slices, self.windows
        before = slices.watermark
        if watermark > before:
            self._judge()
        check_unprompted(self, before, watermark)
        if slices.kept is not None and closing:
            slices.kept.slice(before)
        slices.watermark = self.watermark = watermark
        if slices.kept is not None:
            slices.kept.slice(watermark)
            if windows.early:
                slices.kept.slice(INF)
        emissions = windows.emit(before, closing)
        if slices.kept is not None:
            slices.kept.emitted()
        if more:
            return emissions
        looked = self._crossed_period(before, watermark)
        if looked:
            emissions += windows.emit_early()
        # Until the next early look, fresh means: changed since the last one.
        slices.settle(fresh=looked or self.spec.early is None)
        slices.evict()
        windows.forget()
        return emissions

    def _judge(self) -> None:
        """Decide about the tuples that came late since the watermark last moved, all of them together."""
        if self.slices.waiting:
            late, rows = self.slices.judge()
            self.late += late
            self.windows.observe(rows.key, rows.first, rows.last)

    def _crossed_period(self, before: int, watermark: int) -> bool:
        early = self.spec.early
        if not isinstance(early, Every) or watermark in (before, INF):
            return False
        return before == NEG_INF or before // early.period < watermark // early.period

    def look_early(self) -> list[Emission]:
        """The windows that have changed since they were last emitted, complete or not."""
        check_unprompted(self, self.slices.watermark, self.slices.watermark)
        if self.slices.kept is not None:
            self.slices.kept.slice(self.slices.watermark)
            self.slices.kept.slice(INF)
        emissions = self.windows.emit_early()
        self.slices.settle()
        return emissions

    def table(self, emissions: list[Emission]) -> pa.Table:
        """These windows as rows of results; skipped errors are counted and logged."""
        report_errors(self)
        return self.results.table(emissions, self.keys)

    def nothing(self) -> pa.Table:
        """No results."""
        return self._untyped if self.binding is None else self.results.empty

    @cached_property
    def _untyped(self) -> pa.Table:
        return unbound_schema(self.spec).empty_table()

    def to_internal(self, watermark: object) -> int:
        """A watermark in the unit inside."""
        if self.binding is not None:
            return self.binding.time.internal(watermark)
        return int(instant(watermark))

    # Side outputs and state. ------------------------------------------------------------------------

    def take_late(self) -> pa.Table:
        """Late tuples since the last call, each with the query that it missed."""
        late, self.late = self.late, []
        raw = one_table(part.raw for part in late) if late else self._no_input()
        missed = pa.array([part.query for part in late for _ in range(len(part.raw))], pa.string())
        return with_column(raw, "query", missed)

    def take_bad(self) -> pa.Table:
        """Bad tuples since the last call, each with the reason."""
        bad, self.arrivals.routed = self.arrivals.routed, []
        if bad:
            return one_table(bad)
        return with_column(self._no_input(), "reason", pa.array([], pa.string()))

    def _no_input(self) -> pa.Table:
        return (pa.schema([]) if self.binding is None else self.binding.schema).empty_table()

    def stats(self) -> Stats:
        """What the operator holds and has done; slices are folded to the fewest first."""
        if self.binding is not None:
            with whole_or_nothing(self, sliced=True):
                self.slices.evict(force=True)
        return Stats.of(self)

    # Queries that come and go. ----------------------------------------------------------------------

    def serve(self, live: LiveSet) -> None:
        """Go on with other queries."""
        if self.binding is not None:
            windows = tuple(q.window for q in live.queries)
            binding = Binding.of(self.spec, windows, self.binding.schema, self.binding.records, self.in_order)
            self.rebind(live, binding)
        self.live = live

    def rebind(self, live: LiveSet, binding: Binding) -> None:
        """Go on with other queries, or with types that are known by now."""
        self._read_inputs(live, binding)
        self.slices.adapt(live, binding.partials, binding.types)
        self.binding, self.plan = binding, self._plan(live, binding)
        self.windows.store = combiner(self.plan)
        self.results = Results(binding, live.queries)
