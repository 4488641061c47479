"""The slicing operator: holds the plan and the state of one query, and runs its steps."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from muntin.errors import SnapshotError
from muntin.query import WINDOW_NAME, EachBatch, QuerySpec
from muntin.slicing.aggregate_changes import check_aggregates
from muntin.slicing.arrivals import Arrivals, Misfit, Times
from muntin.slicing.batch import numbers
from muntin.slicing.binding import Binding, kind_of_time, require, unbound_schema
from muntin.slicing.bound_plan import BoundPlan, Settings
from muntin.slicing.emission.deferred_rows import DeferredRows
from muntin.slicing.eviction import evict
from muntin.slicing.next_result import latest_result
from muntin.slicing.parallel.steps import ParallelSteps
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.plan_cache import plan_for
from muntin.slicing.retyping import learned
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.side_outputs import one_table, with_column
from muntin.slicing.slice_manager import add_slices
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.state import Header, State
from muntin.slicing.stats import Stats
from muntin.slicing.step import early_table, step
from muntin.slicing.window_changes import Added, Change, adapted, change, check_change
from muntin.timeline import INF, NEG_INF, Micros, bare_number, instant
from muntin.timeline.extent_kernels import extent

__all__ = ["SlicingOperator"]


class SlicingOperator:
    """One operator serves all keys and all windows of a query.

    Times and watermarks are in the internal unit: microseconds, or units of an integer time column.
    The plan and the state are values: a caller that stores both can restore them.
    """

    def __init__(
        self, spec: QuerySpec, settings: Settings | None = None, threads: Threads | None = None
    ) -> None:
        self.spec = spec
        self.settings = Settings() if settings is None else settings
        self.arrivals = Arrivals(spec.bad)
        self.parallel: ParallelSteps | None = None
        self.use_threads(threads)
        self.served = ServedWindows(tuple(ServedWindow(name, window) for name, window in spec.windows))
        self.plan: BoundPlan | None = None
        """None before the types of the input are known."""
        self.binding: Binding | None = None
        """The types of the input, once they are known."""
        self.header = Header()
        """The plain values of the state; the `State` itself, once the types of the input are known."""

    @property
    def state(self) -> State:
        """The state, once the types of the input are known."""
        assert isinstance(self.header, State)
        return self.header

    def twin(self) -> SlicingOperator:
        """An operator with the same plan and state: neither notices the steps of the other."""
        new = copy(self)
        new.header = self.header.draft()
        if self.plan is not None:
            new.state.store = None  # one that persists follows the slices of one state
        return new

    def use_threads(self, threads: Threads | None) -> None:
        """Run large steps on these threads, or on the caller's alone."""
        if threads is not None:
            self.parallel = ParallelSteps(threads)
            self.arrivals.look = self.parallel.extent

    def release_threads(self) -> None:
        """End the threads of this operator; later steps run on the caller's alone."""
        if self.parallel is not None:
            self.parallel.threads.pool.shutdown(wait=False)
            self.parallel, self.arrivals.look = None, extent

    # The plan and the state as values. ---------------------------------------------------------------

    def keep(self, plan: BoundPlan, state: State) -> None:
        """Go on with another plan and state."""
        if plan is not self.plan:
            self.plan, self.spec, self.served, self.binding = plan, plan.spec, plan.served, plan.binding
        self.header = state

    def bind(self, schema: pa.Schema, records: tuple[str, ...] | None = None) -> BoundPlan:
        """Fix the types of the input; user code sees all columns as records unless given."""
        if self.plan is None:
            plan = self._bound(schema, records)
            self.keep(plan, State(plan, self.header))
        assert self.plan is not None
        return self.plan

    def _bound(self, schema: pa.Schema, records: tuple[str, ...] | None = None) -> BoundPlan:
        plan = plan_for(self.spec, self.settings, self.served, schema, records)
        follows = self.settings.follows_data or self.settings.in_order
        self.arrivals.set_max_ahead(self.spec, follows, plan.binding.time)
        return plan

    def read_columns(self, schema: pa.Schema, records: tuple[str, ...]) -> None:
        """Go on with other columns; those that are read have the same types."""
        assert self.plan is not None
        plan = BoundPlan.of(self.spec, self.settings, self.served, schema, records)
        self.keep(plan, adapted(self.state.draft(), self.plan, plan))

    def _for_input(self, schema: pa.Schema) -> tuple[BoundPlan, State]:
        """The plan and the state for a batch of this schema."""
        if self.plan is None:
            plan = self._bound(schema)
            state = State(plan, self.header)
        else:
            plan, state = self.plan, self.state
        binding = plan.binding
        if binding.unknown or binding.measures or not schema.equals(binding.schema):
            plan, state = learned(plan, state, schema)
            require((self.spec.time, *self.spec.keys, *plan.binding.measures), schema)
        return plan, state

    # Steps. ------------------------------------------------------------------------------------------

    def process(
        self,
        data: pa.RecordBatch,
        times: Times | None = None,
        misfits: Sequence[Misfit] = (),
        watermark: int | None = None,
        lag: int | None = None,
        looks: bool = True,
        defer: bool = False,
    ) -> pa.Table | DeferredRows:
        """Add a batch, and move the watermark on if one is given: both happen, or nothing does.

        Returns results where each tuple is a watermark, or early ones are asked for. `times`: the times of
        the batch, where all its tuples are known to be good. `misfits`: values that it could not hold.
        `lag`: the watermark follows the newest tuple by this. `looks`: whether early results are emitted
        where they are asked for after each batch. `defer`: the table of results may be made later.
        """
        if self.plan is None:
            header = self.header.draft()
            if self.arrivals.timeless(data, self.spec.time, misfits, header):
                self.header = header
                return self.nothing()
        plan, state = self._for_input(data.schema)
        state, results = step(
            plan, state, self.arrivals, data, watermark,
            times=times, misfits=misfits, lag=lag, looks=looks, parallel=self.parallel, defer=defer,
        )  # fmt: skip
        self.keep(plan, state)
        return results

    def advance(self, watermark: int, defer: bool = False) -> pa.Table | DeferredRows:
        """Move the watermark on and emit what is complete. A lower one is ignored; INF ends the stream.

        `defer`: the table of results may be made later.
        """
        if self.plan is None:
            self.header = self.header.draft()
            self.header.watermark = max(self.header.watermark, watermark)
            return self._untyped
        state = self.state
        if state.is_quiet(watermark):
            self.header = state = state.draft()
            state.watermark = max(watermark, state.watermark)
            return self.plan.results.empty
        self.header, results = step(
            self.plan, state, self.arrivals, watermark=watermark, parallel=self.parallel, defer=defer
        )
        return results

    def finish(self) -> pa.Table:
        """The end of the stream: every window closes."""
        return self.advance(INF)

    def close_idle(self) -> pa.Table:
        """Complete every window over the tuples that have arrived, where a watermark can."""
        if self.plan is None:
            return self.nothing()
        first = self.advance(latest_result(self.plan, self.state))
        # Where windows end may be known only now that their tuples were sliced.
        until = latest_result(self.plan, self.state)
        return pa.concat_tables([first, self.advance(until)]) if until > self.state.watermark else first

    def early_look(self) -> pa.Table:
        """Early results, where they are asked for after each batch."""
        if self.plan is None or not isinstance(self.spec.early, EachBatch):
            return self.nothing()
        self.header, results = early_table(self.plan, self.state)
        return results

    def note_newest(self, newest: int) -> None:
        """Note the newest time of the stream, where other operators have seen it."""
        self.header = self.header.draft()
        self.header.newest = max(self.header.newest, newest)

    def note_bad(self, count: int, tuples: pa.Table) -> None:
        """Note bad tuples that were separated elsewhere; the tuples themselves where they are routed."""
        header = self._changed_header()
        header.metrics.bad += count
        header.bad_output += (tuples,) if len(tuples) else ()

    def take_slices(self, keys: list[pa.Array], rows: SliceTable) -> None:
        """Add tuples that another operator of the same query sliced; `keys` are the values of its keys."""
        assert self.plan is not None
        state = self.state.draft()
        if self.spec.keys:
            ids = state.keys.encode(keys)
            # Key by key: the rows of each follow each other, in order.
            offsets, by_id = rows.offsets(len(ids)), np.argsort(ids)
            if not (np.diff(ids[by_id]) > 0).all():
                raise SnapshotError("each key of the slices must appear once")
            order = numbers(offsets[by_id], offsets[by_id + 1] - offsets[by_id])
            rows = rows.take(order).renumbered(ids)
        state.key_count = len(state.keys)
        add_slices(self.plan, state, rows)
        state.metrics.tuples += int(rows.n.sum())
        self.header = state

    def nothing(self) -> pa.Table:
        """No results."""
        return self._untyped if self.plan is None else self.plan.results.empty

    @cached_property
    def _untyped(self) -> pa.Table:
        return unbound_schema(self.spec).empty_table()

    def to_internal(self, watermark: object) -> int:
        """A watermark in the internal unit."""
        if self.plan is not None:
            return self.plan.binding.time.internal(watermark)
        time = instant(watermark)
        kind = kind_of_time(self.spec, (query.window for query in self.served.all), None)
        if kind == "timestamp" and not isinstance(time, Micros):
            raise bare_number(time)
        return int(time)

    # Side outputs and statistics. --------------------------------------------------------------------

    def _changed_header(self) -> Header:
        """A draft of the header that the operator goes on with."""
        self.header = self.header.draft()
        return self.header

    def take_late(self) -> pa.Table:
        """Late tuples since the last call, each with the window that it missed."""
        header = self._changed_header()
        late, header.late_output = header.late_output, ()
        raw = one_table(part.tuples for part in late) if late else self._no_input()
        missed = pa.array([part.window for part in late for _ in range(len(part.tuples))], pa.string())
        return with_column(raw, WINDOW_NAME, missed)

    def take_bad(self) -> pa.Table:
        """Bad tuples since the last call, each with the reason."""
        header = self._changed_header()
        bad, header.bad_output = header.bad_output, ()
        if bad:
            return one_table(bad)
        return with_column(self._no_input(), "reason", pa.array([], pa.string()))

    def _no_input(self) -> pa.Table:
        return (pa.schema([]) if self.plan is None else self.plan.binding.schema).empty_table()

    def stats(self) -> Stats:
        """What the operator holds and has done; slices are joined where possible first."""
        if self.plan is None:
            return Stats.unbound(self.header, self.served)
        state = self.state.draft()
        evict(self.plan, state, force=True)
        self.header = state
        return Stats.of(self.plan, state)

    # Windows and aggregates that are added and removed. ------------------------------------------------

    def change(self, wanted: Change, after: int = NEG_INF, columns_stay: bool = False) -> Added:
        """Serve other windows and aggregates from now on; a change that fails changes nothing.

        No new window begins by `after`. `columns_stay`: results have the same columns for ever.
        """
        if self.plan is not None:
            plan, state, added = change(self.plan, self.state, wanted, after, columns_stay)
            self.keep(plan, state)
            return added
        gone, dropped = wanted.removed(self.spec, self.served)
        served, spec = self.served, self.spec
        new = tuple(ServedWindow(name, window) for name, window in wanted.windows.items())
        if new or gone:
            served = replace(served, all=(*check_change(spec, served, wanted.windows, gone), *new))
        if wanted.aggregates or dropped:
            spec, served = check_aggregates(spec, served, wanted.aggregates, dropped, columns_stay)
        self.spec, self.served = spec, served
        notes = [f'"{w.name}" ({w.window.describe()}) is served from the beginning' for w in new]
        notes += [
            f'"{name}" ({one}) is computed from the beginning' for name, one in wanted.aggregates.items()
        ]
        self.__dict__.pop("_untyped", None)
        return Added(dict.fromkeys((*wanted.windows, *wanted.aggregates), NEG_INF), notes)
