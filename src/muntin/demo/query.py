"""The query of the demonstration: ten windows of many kinds, per carrier and airport."""

from __future__ import annotations

from muntin import aggregates as a
from muntin import windows as w
from muntin.dsl import Query, windows

__all__ = ["ASKED", "LATENESS", "WATERMARK", "ten_windows"]

WATERMARK = "10 minutes"
LATENESS = "2 hours"
NEW_YORK = "America/New_York"

ASKED = {
    "hour": "an hour",
    "smooth": "24 hours, every 6",
    "today": "the day so far",
    "day": "a day in New York",
    "week": "a week in New York",
    "rush": "no pause over 30 min",
    "hundred": "100 flights",
    "recent": "last 20, each day",
    "jam": "3 in a row, 1 h late",
    "miles": "100,000 miles",
}
"""The windows by their names, in words."""


def ten_windows() -> Query:
    """The query of the demonstration."""
    return (
        windows(
            hour=w.tumbling("1 hour"),
            smooth=w.sliding("1 day", every="6 hours"),
            today=w.cumulate("1 day", step="6 hours"),
            day=w.calendar("day", tz=NEW_YORK),
            week=w.calendar("week", tz=NEW_YORK),
            rush=w.session("30 minutes"),
            hundred=w.count(100),
            recent=w.last(20, every="1 day"),
            jam=w.threshold("delay > 60", min_count=3),
            miles=w.until(a.sum("miles"), 100_000),
        )
        .aggregate(
            flights=a.count(),
            cancelled=a.count_if("delay is None"),
            mean_delay=a.mean("delay"),
            p90=a.quantile("delay", 0.9),
            worst=a.max("delay"),
            worst_to=a.arg_max("dest", by="delay"),
            miles=a.sum("miles"),
        )
        .by("carrier", "airport")
        .on("scheduled", allowed_lateness=LATENESS)
    )
