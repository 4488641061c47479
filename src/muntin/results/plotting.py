"""Results as a picture: a line for each key, or bars where windows differ in length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError, MuntinError, nearest
from muntin.results.flat_table import Columns, flat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_KEYS = 10
"""The most keys that the legend names."""


def plot(table: pa.Table, column: str | None) -> list[Axes]:
    """Draw an aggregate over the start of its windows, with axes for each name of a window.

    `table` has the struct `window`, and each window once.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MuntinError(
            'plot() needs matplotlib, which is not installed; install it with pip install "muntin[plot]"'
        ) from error
    columns = Columns.of(table.schema)
    column = _number_column(table.schema, columns, column)
    rows = flat(table)
    names = pc.unique(rows["window_name"]).to_pylist()
    height = 1 + 2.2 * max(1, len(names))
    figure, grid = pyplot.subplots(
        max(1, len(names)), 1, sharex=True, squeeze=False, figsize=(9, height), layout="constrained"
    )
    every: list[Axes] = list(grid[:, 0])
    colours = {label: f"C{number}" for number, (label, _) in enumerate(_by_key(rows, columns.keys))}
    for axes, name in zip(every, names, strict=False):
        _draw(axes, rows.filter(pc.equal(rows["window_name"], name)), columns.keys, column, colours)
        axes.set_title(name, loc="left")
        axes.set_ylabel(column)
    if pa.types.is_timestamp(rows.schema.field("window_start").type):
        figure.autofmt_xdate()
    return every


def _number_column(schema: pa.Schema, columns: Columns, wanted: str | None) -> str:
    """The aggregate to draw: the given one, or the first one of numbers."""
    drawn = [name for name in columns.aggregates if _is_number(schema.field(name).type)]
    if wanted is None and drawn:
        return drawn[0]
    if wanted in drawn:
        return wanted
    raise DataError(
        f"plot() draws an aggregate of numbers ({', '.join(drawn) or 'there is none'}): got {wanted!r}."
        + nearest(wanted, drawn)
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _draw(axes: Axes, rows: pa.Table, keys: list[str], column: str, colours: dict[str, str]) -> None:
    """Draw one window: lines where all its instances have the same length, bars otherwise.

    A key has the same colour in all axes.
    """
    starts, ends = _values(rows["window_start"]), _values(rows["window_end"])
    heights = _values(rows[column].cast(pa.float64()))
    same_length = len(np.unique(ends - starts)) == 1
    for number, (label, mine) in enumerate(_by_key(rows, keys)):
        shown: dict[str, Any] = {"color": colours[label]}
        if number < MOST_KEYS:
            shown["label"] = label
        mine = mine[np.argsort(starts[mine], kind="stable")]
        if same_length:
            axes.plot(starts[mine], heights[mine], marker=".", **shown)
        else:
            widths = ends[mine] - starts[mine]
            axes.bar(starts[mine], heights[mine], width=widths, align="edge", alpha=0.5, **shown)
    if keys:
        axes.legend(title=", ".join(keys), loc="upper right", fontsize="small")


def _by_key(rows: pa.Table, keys: list[str]) -> list[tuple[str, Any]]:
    """The rows of each key, by the text of its values."""
    if not keys:
        return [("", np.arange(rows.num_rows))]
    positions: dict[str, list[int]] = {}
    for row, values in enumerate(zip(*(rows[key].to_pylist() for key in keys), strict=True)):
        positions.setdefault(", ".join(map(str, values)), []).append(row)
    return [(label, np.array(mine)) for label, mine in positions.items()]


def _values(column: pa.ChunkedArray) -> Any:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(column.type.unit))  # matplotlib draws UTC
    return column.to_numpy()
