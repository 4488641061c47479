"""The newest rows of what a stream takes in or gives, in bounded memory."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["RecentRows"]

MOST_TABLES = 64
"""Small tables are joined when there are more: reading 64 takes less than a millisecond."""


class RecentRows:
    """The last `limit` rows of tables that are appended; older ones are dropped.

    `append` costs O(1) and every 64 times O(limit); `table` costs O(limit) after an `append`.

    >>> rows = RecentRows(limit=3)
    >>> for number in range(5):
    ...     rows.append(pa.table({"n": [number]}))
    >>> rows.table()["n"].to_pylist(), len(rows)
    ([2, 3, 4], 3)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._joined: pa.Table | None = None
        self._new: list[pa.Table] = []
        self._rows = 0

    def __len__(self) -> int:
        return min(self.limit, self._rows)

    def append(self, rows: pa.Table) -> None:
        """Remember these rows, and forget the oldest ones beyond the limit."""
        if not rows.num_rows:
            return
        self._new.append(rows)
        self._rows += rows.num_rows
        if len(self._new) > MOST_TABLES or self._rows > 2 * self.limit:
            self.table()

    def table(self) -> pa.Table | None:
        """The rows, oldest first; None before the first ones."""
        if self._new:
            parts = self._new if self._joined is None else [self._joined, *self._new]
            # Types may become wider while a stream runs; `combine_chunks` lets go of older rows.
            whole = pa.concat_tables(parts, promote_options="permissive")
            start = max(0, whole.num_rows - self.limit)
            self._joined, self._new = whole.slice(start).combine_chunks(), []
            self._rows = self._joined.num_rows
        return self._joined

    def clear(self) -> None:
        """Forget all rows."""
        self._joined, self._new, self._rows = None, [], 0
