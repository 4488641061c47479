"""Windows: where the edges of a stream lie.

The functions make frozen descriptions of windows; the classes are the interfaces for windows of your own,
and the record that they see.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from muntin.windows.bands import fixed_band, landmark
from muntin.windows.calendar import calendar
from muntin.windows.count import count
from muntin.windows.cumulate import cumulate
from muntin.windows.cutty import discretize
from muntin.windows.frames import boundary, delta, punctuation, threshold
from muntin.windows.lookback import last, slide_by_tuple
from muntin.windows.moments import Moment
from muntin.windows.periodic import sliding, tumbling
from muntin.windows.records import Record
from muntin.windows.session import session
from muntin.windows.triggers import trigger
from muntin.windows.until import until
from muntin.windows.user import ContextFree, ForwardContextAware, ForwardContextFree

__all__ = [
    "ContextFree",
    "ForwardContextAware",
    "ForwardContextFree",
    "Moment",
    "Record",
    "boundary",
    "calendar",
    "count",
    "cumulate",
    "delta",
    "discretize",
    "fixed_band",
    "landmark",
    "last",
    "punctuation",
    "session",
    "slide_by_tuple",
    "sliding",
    "threshold",
    "trigger",
    "tumbling",
    "until",
]


if not TYPE_CHECKING:  # else type checkers would accept any name

    def __getattr__(name: str) -> Any:
        from muntin import foreign_names

        foreign_names.refuse_submodule(__name__, name)
        raise foreign_names.unknown("muntin.windows", name, __all__, foreign_names.WINDOWS, "w.")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from muntin.windows import moments, records, user

    class Names:
        """The public names for type checkers, which know no module that can be called as `mt.windows` can."""

        ContextFree: TypeAlias = user.ContextFree
        ForwardContextAware: TypeAlias = user.ForwardContextAware
        ForwardContextFree: TypeAlias = user.ForwardContextFree
        Moment: TypeAlias = moments.Moment
        Record: TypeAlias = records.Record
        boundary = staticmethod(boundary)
        calendar = staticmethod(calendar)
        count = staticmethod(count)
        cumulate = staticmethod(cumulate)
        delta = staticmethod(delta)
        discretize = staticmethod(discretize)
        fixed_band = staticmethod(fixed_band)
        landmark = staticmethod(landmark)
        last = staticmethod(last)
        punctuation = staticmethod(punctuation)
        session = staticmethod(session)
        slide_by_tuple = staticmethod(slide_by_tuple)
        sliding = staticmethod(sliding)
        threshold = staticmethod(threshold)
        trigger = staticmethod(trigger)
        tumbling = staticmethod(tumbling)
        until = staticmethod(until)
