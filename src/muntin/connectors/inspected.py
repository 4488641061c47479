"""What an operator holds, as tables: open windows, slices, any range of time.

Each call reads the state as a step would, and changes nothing.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from muntin.connectors.buffer import InputBuffer
from muntin.connectors.embedded_snapshot import Connection
from muntin.connectors.exclusive import exclusive
from muntin.errors import QueryError, value_text
from muntin.results import Rows
from muntin.slicing import inspection, range_query
from muntin.slicing.operator import SlicingOperator


class Inspected:
    """The tables that an embedded operator shows of itself."""

    _free: list[None]
    _engine: SlicingOperator
    _connection: Connection
    _buffer: InputBuffer

    def _slice_waiting(self) -> None:
        """Slice the tuples that wait in the buffer."""
        raise NotImplementedError

    @exclusive
    def open_windows(self) -> Rows:
        """The windows that contain a tuple and are not complete, with the value of each aggregate so far.

        All tuples count that have arrived, late ones as if the watermark moved now. The operator
        does not change. `window_count` is the number of tuples in the window. `window_end` is the end that
        the window has if no more tuples arrive, and null where it depends on a later tuple.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(ten=w.tumbling(10), three=w.count(3)).aggregate(total=a.sum("v")).on("t")
        >>> op = query.operator()
        >>> _ = op.process([{"t": 3, "v": 1}, {"t": 12, "v": 5}])
        >>> op.open_windows()
        window_name  window_start  window_end  window rank  window_count  total
        ten                     0          10            -             1      1
        ten                    10          20            -             1      5
        three                   3           -       [0, 3)             2      6
        3 rows
        """
        engine = self._with_waiting()
        if engine.plan is None:
            return Rows(inspection.no_open_windows(engine.spec))
        return Rows(inspection.open_windows(engine.plan, engine.state))

    @exclusive
    def slices(self) -> Rows:
        """The slices that some window still needs, with the value of each aggregate over the slice alone.

        A slice holds the tuples of a key from `slice_first` to `slice_last` and covers the time from
        `slice_start` to `slice_end`, where these are known. `slice_separator` is the kind of its end:
        "fixed", the edge of a window on time; "flexible", the end of a session or an edge between two
        tuples, which later tuples may move; "combined", both. Tuples that were not sliced yet are in the
        slices that they would go into now; the operator does not change.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(ten=w.tumbling(10), visit=w.session(3)).aggregate(total=a.sum("v")).on("t")
        >>> op = query.operator()
        >>> _ = op.process([{"t": 1, "v": 1}, {"t": 6, "v": 2}, {"t": 8, "v": 4}, {"t": 11, "v": 8}])
        >>> op.slices().to_arrow().drop_columns(["slice_first", "slice_last"]).to_pandas()
           slice_start  slice_end  slice_count slice_separator  total
        0            0          4            1        flexible      1
        1            6         10            2           fixed      6
        2           10         14            1        flexible      8
        """
        engine = self._with_waiting()
        if engine.plan is None:
            return Rows(inspection.no_slices(engine.spec))
        return Rows(inspection.slices(engine.plan, engine.state))

    @exclusive
    def query(self, start: object, end: object, *, key: object = None) -> Rows:
        """The aggregates over the tuples with times in [start, end), from the slices that it holds.

        A slice is not divided, and slices that no window needs are dropped. So each row says which range
        it answers, exactly: the largest one in [start, end) whose edges divide no slice. `range_count` is
        the number of its tuples. A key without a tuple in its range has no row. Like `open_windows`, it
        includes all tuples that have arrived, and does not change the operator.

        >>> import muntin as mt
        >>> from muntin import windows as w, aggregates as a
        >>> query = mt.windows(hour=w.sliding(60, every=10)).aggregate(total=a.sum("v")).on("t")
        >>> op = query.operator()
        >>> _ = op.process({"t": [1, 12, 25, 27, 38], "v": [1, 2, 4, 8, 16]})
        >>> op.query(10, 30)
        range_start  range_end  range_count  total
                 10         30            3     14
        1 row
        >>> op.query(10, 26)  # the slice of [20, 30) has tuples on both sides of 26
        range_start  range_end  range_count  total
                 10         25            1      2
        1 row

        Args:
            start: The beginning of the range, as a watermark of `advance`.
            end: The end of the range, which does not belong to it.
            key: The value of the key, or a tuple of values of several key columns; by default all
                keys, a row each.
        """
        engine = self._with_waiting()
        low, high = engine.to_internal(start), engine.to_internal(end)
        if low >= high:
            raise QueryError(
                f"a range begins before its end: got {value_text(start)} and {value_text(end)}; exchange them"
            )
        if engine.plan is None:
            return Rows(range_query.no_range(engine.spec))
        number = None if key is None else range_query.key_number(engine.plan, engine.state, key)
        rows = range_query.range_values(engine.plan, engine.state, low, high, number)
        return Rows(rows if key is None or number is not None else rows.slice(0, 0))

    def _with_waiting(self) -> SlicingOperator:
        """The engine after a step over the tuples that wait; in the operator itself they go on waiting."""
        if self._buffer.is_empty:
            return self._engine
        twin = copy(self)
        twin._engine, twin._connection = self._engine.twin(), replace(self._connection, pending_results=[])
        twin._buffer = self._buffer.for_engine(twin._engine)
        twin._slice_waiting()
        return twin._engine
