"""Checks of what users write: the rule, the value, the cure."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from typing import Any

from muntin.errors import QueryError, value_text
from muntin.expressions import Expr
from muntin.timeline import Micros, format_span, span

LONGEST = 2**60
"""Longest span of a window: start, end and their sums with a time then stay inside int64."""


def shown(value: object) -> str:
    """A value as the user would write it, for messages.

    >>> from muntin.timeline import Micros
    >>> shown(Micros(0)), shown("x"), shown(5)
    ('"0 seconds"', '"x"', '5')
    """
    if isinstance(value, Micros):
        return f'"{format_span(value)}"'
    return f'"{value}"' if isinstance(value, str) else value_text(value)


def text(value: object) -> str:
    """A span or number in words: "1 minute", "10"."""
    return format_span(value) if isinstance(value, int) else str(value)


def plain(value: object) -> object:
    """A parameter as a TOML file has it: text for a duration, else the value itself."""
    return format_span(value) if isinstance(value, Micros) else value


def fail(rule: str, value: object, cure: str) -> QueryError:
    """The error for a value that breaks a rule."""
    return QueryError(f"{rule}: got {shown(value)}; {cure}")


def positive_span(value: object, name: str, cure: str = "") -> int:
    """A length of time above zero."""
    length = span(value, name)
    if length <= 0:
        raise fail(f"{name} must be positive", length, cure or _above_zero(length, '"1 minute"'))
    if length > LONGEST:
        raise fail(f"{name} must not exceed 2**60", length, "use a coarser time column")
    return length


def _above_zero(value: Any, example: str) -> str:
    """A cure for a number that is not positive."""
    return f"did you mean {shown(type(value)(-value))}?" if value < 0 else f"for example {example}"


def time_offset(value: object, name: str = "offset") -> int:
    """A shift of a grid in time, in either direction."""
    offset = span(value, name)
    if abs(offset) > LONGEST:
        raise fail(f"{name} must lie within +-2**60", offset, "one below the length moves the grid as well")
    return offset


def same_kind(**spans: int) -> None:
    """Refuse a mixture of durations ("5 seconds") and plain integers; zero is both."""
    given = {name: value for name, value in spans.items() if value}
    if len({isinstance(value, Micros) for value in given.values()}) > 1:
        names = " and ".join(given)
        values = " and ".join(shown(value) for value in given.values())
        raise QueryError(
            f"{names} must be of one kind: got {values}; "
            'write all of them as durations ("5 seconds") or all as integers of an integer time column'
        )


def spans_of_period(length: object, step: object, name: str, offset: object) -> tuple[int, int, int]:
    """Checked length, slide or step (called `name`) and offset of evenly spaced windows on time."""
    whole = positive_span(length, "length")
    if step is length:  # tumbling
        step = whole
    else:
        step = positive_span(step, name, cure=f"did you mean tumbling({shown(whole)})?")
    offset = time_offset(offset)
    same_kind(**{"length": whole, name: step, "offset": offset})
    return whole, step, offset


def numbers_of_period(
    length: object, step: object, name: str, offset: object, measure: str | None
) -> tuple[Any, Any, Any]:
    """The same on a measure."""
    unit = measured_unit(measure)
    length = positive_number(length, "length", unit)
    cure = f"did you mean tumbling({shown(length)}, measure={shown(measure)})?"
    return length, positive_number(step, name, cure), number(offset, "offset", unit)


def longer_than_gap(gap: Any, max_length: Any) -> None:
    """Refuse a session that ends before its gap can pass: its gap would have no effect."""
    if max_length <= gap:
        swapped = f"; did you mean session({shown(max_length)}, max_length={shown(gap)})?"
        raise QueryError(
            f"max_length must be longer than gap: got {shown(max_length)} and a gap of {shown(gap)}"
            + (swapped if max_length < gap else "; leave it out for no limit")
        )


def whole_number(value: object, name: str, cure: str = "") -> int:
    """A number of tuples, at least one."""
    if not _counts(value) or not isinstance(value, numbers.Integral):
        whole = isinstance(value, float) and value.is_integer()
        meant = f"did you mean {value:.0f}?" if whole else "for example 100"
        raise fail(f"{name} must be a whole number", value, cure or meant)
    count = int(value)
    if count < 1:
        raise fail(f"{name} must be at least 1", count, cure or _above_zero(count, "100"))
    if count > LONGEST:
        raise fail(f"{name} must not exceed 2**60", count, "no key ever has more tuples")
    return count


def _counts(value: object) -> bool:
    """Whether it is a number; bool and NumPy's timedelta64 are registered as one, and are none."""
    return isinstance(value, numbers.Number) and type(value).__name__ not in ("bool", "timedelta64")


def flag(value: object, name: str) -> bool:
    """True or False, and no other value that is equal to one of them."""
    if not isinstance(value, bool):
        raise fail(f"{name} must be True or False", value, f"write {name}=True, or leave it out")
    return value


def empty_on_time(emit_empty: bool, measure: str) -> None:
    """Refuse `emit_empty` on a measure, whose position without a tuple is unknown."""
    column_name(measure)
    if flag(emit_empty, "emit_empty"):
        raise QueryError(
            f'emit_empty must be left out on another measure: got measure="{measure}"; '
            "leave it out, or lay the windows on time"
        )


def number(value: object, name: str, cure: str = "") -> Any:
    """A finite number, as it is; an integral float stays a float."""
    cure = cure or "for example 0.5"
    if isinstance(value, Micros | str | dt.timedelta):
        raise fail(f"{name} must be a plain number", value, cure)
    if not _counts(value) or isinstance(value, complex):
        raise fail(f"{name} must be a number", value, cure)
    try:
        finite = math.isfinite(float(value))  # type: ignore[arg-type]  # it is a number
    except OverflowError:
        finite = False
    if not finite:
        raise fail(f"{name} must be finite", value, cure)
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value  # a Decimal stays one


def positive_number(value: object, name: str, cure: str = "") -> Any:
    """A finite number above zero."""
    checked = number(value, name, cure)
    if checked <= 0:
        raise fail(f"{name} must be positive", value, cure or _above_zero(checked, "0.5"))
    return checked


def column_name(value: object, name: str = "measure") -> str | None:
    """The name of a column, or None."""
    if value is not None and (not isinstance(value, str) or not value):
        raise fail(f"{name} must be the name of a column", value, f'for example {name}="km"')
    return value


def measured_unit(measure: str | None) -> str:
    """Check the name of a measure; returns the cure for lengths on it that are no numbers."""
    if column_name(measure) is None:
        raise fail("measure must be the name of a column", measure, 'for example measure="km"')
    return f'it is in the unit of the column "{measure}", for example 10'


def column_parameter(column: Expr) -> dict[str, object]:
    """A column by name, or a computed one as text under the key that says so."""
    return {"expression": column.to_text()} if column.column is None else {"column": column.column}
