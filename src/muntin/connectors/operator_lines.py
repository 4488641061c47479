"""What an operator serves and how far it is, in a few named lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.slicing.binding import kind_of_time
from muntin.timeline import INF, Micros, format_instant

if TYPE_CHECKING:
    from muntin.connectors.buffer import InputBuffer
    from muntin.slicing.operator import SlicingOperator

__all__ = ["operator_lines"]


def operator_lines(engine: SlicingOperator, buffer: InputBuffer) -> list[tuple[str, str]]:
    """The windows, the aggregates, and how far the stream is; reads counters only, and changes nothing."""
    spec, header = engine.spec, engine.header
    waiting, done = buffer.waiting, header.metrics
    tuples = f"{done.tuples + waiting:,}, late {done.late:,}, bad {done.bad:,}"
    lines = [
        ("windows", "\n".join(f"{one.name}: {one.window.describe()}" for one in engine.served.all)),
        ("aggregates", "\n".join(f"{name}: {one.describe()}" for name, one in spec.aggregates)),
        ("watermark", _watermark(engine, buffer.watermark)),
        ("tuples", f"{tuples}; {waiting:,} not sliced yet" if waiting else tuples),
    ]
    if spec.keys:
        number = 0 if engine.plan is None else len(engine.state.keys)
        lines.append(("keys", f"{number:,} of {', '.join(spec.keys)}"))
    return lines


def _watermark(engine: SlicingOperator, watermark: int) -> str:
    if abs(watermark) >= INF:
        return "the end" if watermark > 0 else "none yet"
    if engine.binding is not None:
        is_time = not engine.binding.time.is_integer
    else:
        is_time = kind_of_time(engine.spec, (one.window for one in engine.served.all), None) == "timestamp"
    return str(format_instant(Micros(watermark) if is_time else watermark))
