"""Where bars lie: lanes for windows that overlap, and the scale from time to a place in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin.drawing.observed_run import DrawnWindow

__all__ = ["Scale", "lanes"]


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from times to places.

    >>> Scale(0, 40, 100.0, 500.0).place(10)
    200.0
    """

    low: int
    high: int
    left: float
    right: float

    def place(self, time: int) -> float:
        """The place of a time, with one decimal."""
        share = (time - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 1)

    def inside(self, time: int) -> float:
        """The place of a time, or the nearest margin.

        >>> Scale(0, 40, 100.0, 500.0).inside(50)
        500.0
        """
        return self.place(min(max(time, self.low), self.high))


def lanes(windows: Sequence[DrawnWindow]) -> list[list[DrawnWindow]]:
    """Windows of one name in as few lanes as possible, so that no two of a lane overlap.

    A lane takes the window that starts first after the end of its last one. Retracted windows have
    lanes of their own, above the windows that replace them.

    >>> bars = [DrawnWindow("x", start, start + 20, 1, 1) for start in (0, 10, 20)]
    >>> [[bar.start for bar in lane] for lane in lanes(bars)]
    [[0, 20], [10]]
    """
    filled_lanes: list[list[DrawnWindow]] = []
    for window in sorted(windows, key=lambda w: (not w.retracted, w.start, w.end)):
        for lane in filled_lanes:
            if lane[-1].end <= window.start and lane[-1].retracted == window.retracted:
                lane.append(window)
                break
        else:
            filled_lanes.append([window])
    return filled_lanes
