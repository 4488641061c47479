"""A column of state is declared once: what holds for all columns of a table is a loop over its schema."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.emission.emitted_windows import EmittedWindows
from muntin.slicing.emission.key_extents import KeyExtents
from muntin.slicing.schema import Role, Table
from muntin.slicing.tuple_tables import Positions, Progress

OF_WINDOWS = [ClosedWindows, ExpiredWindows, EmittedWindows]
PER_KEY = [KeyExtents, Positions, Progress]
KEYS = 6


def filled(kind: type[Table]) -> Any:
    """A table with other numbers in each column: a row per key, or two rows for each key."""
    schema = kind.SCHEMA
    rows = KEYS if schema.blank else 2 * KEYS
    columns: dict[str, Any] = {
        name: np.arange(rows) // 2 if role is Role.KEY else np.arange(rows) + 100 * i
        for i, (name, role) in enumerate(schema.columns.items())
        if not (schema.blank and role is Role.KEY)
    }
    for i, name in enumerate(schema.per_window):
        columns[name] = {window: np.arange(rows) + 1000 * (i + 1) for window in ("x", "y")}
    return kind(**columns)


def numbers(table: Any) -> dict[tuple[str, str], list[int]]:
    columns = {(name, ""): column.tolist() for name, column in table.columns.items()}
    return columns | {(one, window): column.tolist() for one, window, column in table.of_windows()}


@pytest.mark.parametrize("kind", [*OF_WINDOWS, *PER_KEY])
def test_schema_names_the_fields(kind: Any) -> None:
    declared = {*kind.SCHEMA.columns, *kind.SCHEMA.per_window}
    assert declared == {one.name for one in fields(kind)} - {"values"}
    numbered = {name for name, role in kind.SCHEMA.per_window.items() if role is not Role.CONTEXT}
    if kind in PER_KEY:
        assert set(kind.SCHEMA.blank) == {*kind.SCHEMA.columns, *numbered} - {"key"}


@pytest.mark.parametrize("kind", [*OF_WINDOWS, *PER_KEY])
def test_shares_of_keys_are_the_whole(kind: Any) -> None:
    whole = filled(kind)
    shares = [whole.of_keys(begin, end) for begin, end in ((0, 2), (2, 3), (3, KEYS))]
    if kind in OF_WINDOWS:
        assert [share.key.min() for share in shares] == [0, 0, 0]
    one, two, three = (
        share.among_all(*at) for share, at in zip(shares, ((0, 2), (2, 3), (3, 6)), strict=True)
    )
    assert numbers(one.join(two).join(three)) == numbers(whole)


@pytest.mark.parametrize("kind", [*OF_WINDOWS, *PER_KEY])
def test_forgotten_keys_leave_every_column(kind: Any) -> None:
    whole = filled(kind)
    ids = np.array([-1, 0, -1, 1, 2, -1])
    left = whole.renumbered(ids)
    rows = np.flatnonzero(ids >= 0) if kind in PER_KEY else np.flatnonzero(ids[whole.key] >= 0)
    expected = {name: np.array(column)[rows].tolist() for name, column in numbers(whole).items()}
    if kind in OF_WINDOWS:
        expected["key", ""] = [0, 0, 1, 1, 2, 2]
    assert numbers(left) == expected


@pytest.mark.parametrize("kind", [*OF_WINDOWS, *PER_KEY])
def test_copy_shares_no_array(kind: Any) -> None:
    whole = filled(kind)
    before = numbers(whole)
    copy = whole.copy()
    assert numbers(copy) == before
    for column in [*copy.columns.values(), *(column for _, _, column in copy.of_windows())]:
        column[:] = -7
    assert numbers(whole) == before


@pytest.mark.parametrize("kind", PER_KEY)
def test_new_keys_are_blank_in_every_column(kind: Any) -> None:
    whole = filled(kind)
    grown = numbers(whole.grown(KEYS + 2))
    assert whole.grown(KEYS) is whole
    for (one, window), column in numbers(whole).items():
        blank = kind.SCHEMA.blank.get(one)
        assert grown[one, window] == (column if blank is None else [*column, blank, blank])
