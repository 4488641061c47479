"""The plot of `python -m benchmarks core`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.comparison import PEERS, Comparison
from benchmarks.core import Measurement
from muntin.errors import QueryError

__all__ = ["check_place", "draw"]

FORMS = (".svg", ".png", ".pdf")


def check_place(path: Path) -> None:
    """A QueryError if nothing can be drawn there: raised before anything is measured.

    >>> check_place(Path("rates.txt"))
    Traceback (most recent call last):
    muntin.errors.QueryError: a plot must be a file with .svg, .png or .pdf: got rates.txt
    """
    if path.suffix not in FORMS:
        raise QueryError(f"a plot must be a file with {', '.join(FORMS[:-1])} or {FORMS[-1]}: got {path}")
    if not path.absolute().parent.is_dir():
        raise QueryError(f"there is no folder {path.parent} for the plot; make it first, or choose another")
    if find_spec("matplotlib") is None:
        raise QueryError('a plot needs matplotlib, which is not installed: pip install ".[bench]"')


def draw(found: Sequence[Measurement], others: Sequence[Comparison], path: Path) -> None:
    """A bar for each workload, beside its limits, Scotty and the others, on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.45 * len(found) + 1.5), layout="constrained")
    places = range(len(found))
    axes.barh(places, [m.best for m in found], color="#9fbfd9", label="Muntin")
    rates = {(c.workload, c.engine): c.cpu for c in others}
    best = {m.workload: _best_technique(others, m.workload) for m in found}
    marks: dict[str, tuple[list[float | None], str, str]] = {
        "Scotty (Java)": ([m.scotty for m in found], "x", "black"),
        "goal": ([m.goal for m in found], "|", "black"),
        "np.add.reduceat": ([m.reduceat for m in found], ".", "black"),
        "copy of the columns": ([m.copy for m in found], "+", "black"),
        "polars": ([rates.get((m.workload, "polars")) for m in found], "^", "#b5541c"),
        "DuckDB": ([rates.get((m.workload, "DuckDB")) for m in found], "s", "#8a6d00"),
        "best technique of the papers": ([best[m.workload] for m in found], "d", "#4d7d3a"),
    }
    for label, (values, marker, color) in marks.items():
        known = [(value, place) for value, place in zip(values, places, strict=True) if value]
        if known:
            axes.scatter(*zip(*known, strict=True), marker=marker, color=color, label=label, zorder=2)
    axes.set_yticks(places, [m.workload for m in found])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("million tuples per second of CPU time")
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path)
    pyplot.close(figure)


def _best_technique(others: Sequence[Comparison], workload: str) -> float | None:
    return max((c.cpu for c in others if c.workload == workload and c.engine not in PEERS), default=None)
