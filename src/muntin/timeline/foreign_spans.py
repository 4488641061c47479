"""Lengths of time as other systems write them, and the same length in our words.

ISO 8601 (`PT5M`), offsets of pandas (`5T`) and polars (`1mo`), intervals of SQL (`INTERVAL 5 MINUTES`) and
clocks (`00:05:00`). None of them is accepted, because `M` means a month in one system and minutes in
another; the error message names our form.
"""

from __future__ import annotations

import re

__all__ = ["in_our_words"]

_ISO = re.compile(
    r"P(?:(?P<year>\d+)Y)?(?:(?P<month>\d+)M)?(?:(?P<week>\d+)W)?(?:(?P<day>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<hour>\d+(?:\.\d+)?)H)?(?:(?P<minute>\d+(?:\.\d+)?)M)?(?:(?P<second>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?P<hour>\d+):(?P<minute>[0-5]?\d)(?::(?P<second>[0-5]?\d(?:\.\d+)?))?")
_OFFSET = re.compile(r"(?P<n>\d*)(?P<unit>[A-Za-z]+)")
_INTERVAL = re.compile(r"interval\s+'?(?P<n>\d+(?:\.\d+)?)'?\s*(?P<unit>[a-z]+?)s?'?", re.IGNORECASE)
_UNITS = {
    "D": "day", "H": "hour", "T": "minute", "S": "second", "L": "millisecond", "U": "microsecond",
    "W": "week", "M": "month", "ME": "month", "MS": "month", "MO": "month", "Y": "year", "YE": "year",
    "YS": "year", "A": "year", "Q": "quarter", "QE": "quarter", "QS": "quarter", "B": "business day",
}  # fmt: skip
"""The offsets of pandas and polars that are not units of ours."""
_CIVIL = ("month", "year")


def in_our_words(text: str) -> str:
    """What to write instead of a length in the form of another system; empty if it has none of these forms.

    >>> in_our_words("PT1H30M"), in_our_words("5T"), in_our_words("P1M")
    ('"1 hour 30 minutes"', '"5 minutes"', 'windows.calendar("month") for civil time')
    """
    text = text.strip()
    terms: list[tuple[str, str]] = []
    if (match_ := _ISO.fullmatch(text)) or (match_ := _CLOCK.fullmatch(text)):
        terms = [(unit, n) for unit, n in match_.groupdict().items() if n is not None and float(n)]
    elif match_ := _INTERVAL.fullmatch(text):
        terms = [(match_["unit"].lower(), match_["n"])]
    elif (match_ := _OFFSET.fullmatch(text)) and (unit := _UNITS.get(match_["unit"].upper())):
        terms = [(unit, match_["n"] or "1")]
    units = [unit for unit, _ in terms]
    if "quarter" in units or "business day" in units:
        return 'windows.calendar("month"), since there is no calendar of quarters or business days'
    civil = next((unit for unit in _CIVIL if unit in units), None)
    if civil is not None:
        return f'windows.calendar("{civil}") for civil time'
    words = " ".join(f"{float(n):g} {unit}{'' if float(n) == 1 else 's'}" for unit, n in terms)
    return f'"{words}"' if words else ""
