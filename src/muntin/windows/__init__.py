"""Windows: where the edges of a stream lie.

The constructors below make frozen descriptions; the classes at the end are the
interfaces for windows of your own.
"""

from muntin.windows.bands import FixedBand, Landmark, fixed_band, landmark
from muntin.windows.calendar import Calendar, calendar
from muntin.windows.count import Count, count
from muntin.windows.cumulate import Cumulate, MeasuredCumulate, cumulate
from muntin.windows.cutty import Discretize, Trigger, discretize, trigger
from muntin.windows.frames import Boundary, Delta, Threshold, boundary, delta, threshold
from muntin.windows.lookback import Last, SlideByTuple, last, slide_by_tuple
from muntin.windows.periodic import MeasuredPeriodic, Periodic, sliding, tumbling
from muntin.windows.punctuation import Punctuation, punctuation
from muntin.windows.session import CappedSession, MeasuredSession, Session, session
from muntin.windows.until import Until, until
from muntin.windows.user import ContextFree, ForwardContextAware, ForwardContextFree, Record

__all__ = [
    "Boundary",
    "Calendar",
    "CappedSession",
    "ContextFree",
    "Count",
    "Cumulate",
    "Delta",
    "Discretize",
    "FixedBand",
    "ForwardContextAware",
    "ForwardContextFree",
    "Landmark",
    "Last",
    "MeasuredCumulate",
    "MeasuredPeriodic",
    "MeasuredSession",
    "Periodic",
    "Punctuation",
    "Record",
    "Session",
    "SlideByTuple",
    "Threshold",
    "Trigger",
    "Until",
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
