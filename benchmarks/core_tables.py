"""The tables of `python -m benchmarks core`, and what their columns mean."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparison import ENGINES, PEERS, Comparison
from benchmarks.comparison import ROUNDS as OTHER_ROUNDS
from benchmarks.core import ROUNDS, Measurement
from benchmarks.grid import Grid
from benchmarks.streams import BATCH, PER_SECOND

__all__ = ["COUNTS", "RATES", "core_grid", "core_legend", "fewer_tuples", "others_grid", "others_legend"]

RATES = ("M/s", "goal", "Scotty", "reduceat", "copy")
COUNTS = ("slices", "windows", "combines", "MB")
COLUMNS = RATES + COUNTS


def core_grid(found: Sequence[Measurement], told: bool = True, columns: Sequence[str] = COLUMNS) -> Grid:
    """Muntin by itself, all columns or some; `told`: with a description of each workload."""
    cells = [dict(zip(COLUMNS, _cells(m), strict=True)) for m in found]
    rows = [
        (m.workload, *((m.told,) if told else ()), *(row[name] for name in columns))
        for m, row in zip(found, cells, strict=True)
    ]
    words = ("workload", "query") if told else ("workload",)
    return Grid((*words, *columns), rows, len(words))


def others_grid(
    found: Sequence[Measurement], others: Sequence[Comparison], engines: Sequence[str] = ENGINES
) -> Grid:
    """Muntin beside these engines: rates by CPU time, in brackets by time that passed. The best is bold."""
    rates = {(c.workload, c.engine): c for c in others}
    rows, bold = [], []
    for m in found:
        row = [rates.get((m.workload, engine)) for engine in engines]
        numbers = [m.best, *(0.0 if c is None else c.cpu for c in row)]
        bold.append(1 + numbers.index(max(numbers)))
        rows.append((m.workload, _number(m.best), *(_rate(c) for c in row)))
    return Grid(("workload", "Muntin", *engines), rows, 1, bold)


def fewer_tuples(found: Sequence[Measurement], others: Sequence[Comparison]) -> str:
    """Which engines read fewer tuples than Muntin, and how many; nothing if none does."""
    told = []
    for m in found:
        less = {c.engine: c.tuples for c in others if c.workload == m.workload and c.tuples < m.tuples}
        peers = {n for engine, n in less.items() if engine in PEERS}
        techniques = {n for engine, n in less.items() if engine not in PEERS}
        if peers == techniques:
            parts = [f"{n:,}" for n in peers]
        else:
            parts = [
                f"{n:,} in {who}" for who, ns in (("peers", peers), ("techniques", techniques)) for n in ns
            ]
        if parts:
            told.append(f"{m.workload} {', '.join(parts)}")
    return f"Fewer tuples than Muntin were read in {'; '.join(told)}." if told else ""


def core_legend(found: Sequence[Measurement]) -> str:
    """What the first table shows."""
    tuples, batch = min(m.tuples for m in found), max(m.batch for m in found)
    return (
        f"M/s: million tuples per second of CPU time, the best of {ROUNDS} runs after one that compiles. "
        f"{tuples:,} tuples (W6 twice as many), {PER_SECOND:,} per second of event time (W6: one per key), "
        f"batches of {batch:,} (M1 and M2: {BATCH:,}). reduceat: ours as a part of the rate of "
        "np.add.reduceat over the sorted tuples with the slices known. copy: as a part of the rate "
        "of a copy of the columns. slices: at most, between two batches. combines: per tuple. "
        "MB: growth of resident memory at the peak, results of a batch included. "
        "The windows and the sum of their results were checked for every window of every run that was timed."
    )


def others_legend() -> str:
    """What the second table shows."""
    return (
        "Million tuples per second of CPU time of all threads (of time that passed), the best of "
        f"{OTHER_ROUNDS} runs after a first one, results checked like ours. {' and '.join(PEERS)} read a "
        "finished table; the techniques of the papers read batches as Muntin does, tuple buckets of at most "
        f"{BATCH:,}. "
        "Blank: cannot be expressed, or is not installed."
    )


def _cells(m: Measurement) -> tuple[str, ...]:
    return (
        _number(m.best),
        _number(m.goal),
        _number(m.scotty),
        f"{m.best / m.reduceat:.3f}",
        f"{m.best / m.copy:.3f}",
        f"{m.slices:,}",
        f"{m.windows:,}",
        f"{m.update_combines + m.merge_combines:.3f}",
        "" if m.memory is None else f"{m.memory / 1e6:.0f}",
    )


def _rate(c: Comparison | None) -> str:
    if c is None:
        return ""
    return f"{_number(c.cpu)} ({_number(c.wall)})" if c.engine in PEERS else _number(c.cpu)


def _number(value: float | None) -> str:
    """Three digits, without an exponent.

    >>> _number(1234.5), _number(46.84), _number(0.0684), _number(None)
    ('1234', '46.8', '0.0684', '')
    """
    return "" if value is None else f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"
