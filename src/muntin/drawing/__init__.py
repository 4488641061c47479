"""Pictures of tuples, slices and windows, drawn from a real run of the engine: SVG and terminal.

>>> import muntin as mt
>>> from muntin import windows as w, aggregates as a
>>> query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t", allowed_lateness=100)
>>> run = observe(query, {"t": [1, 4, 12], "v": [3, 1, 4]}, late={"t": [8], "v": [5]})
>>> [(bar.start, bar.end, bar.before, bar.value) for bar in run.windows]
[(0, 10, 4, 9), (10, 20, 4, 4)]
>>> svg(run).startswith("<svg")
True
"""

from __future__ import annotations

from muntin.drawing.observed_run import DrawnSlice, DrawnTuple, DrawnWindow, ObservedRun, observe
from muntin.drawing.svg_picture import Shape, svg
from muntin.drawing.terminal_picture import terminal

__all__ = [
    "DrawnSlice", "DrawnTuple", "DrawnWindow", "ObservedRun", "Shape", "observe", "svg", "terminal",
]  # fmt: skip
