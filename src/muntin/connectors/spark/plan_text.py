"""What the text of a plan tells about a column: where it comes from, and which watermarks are below that.

Classic Spark and Spark Connect both give the plan as text, one line for each step, its input indented:

    ~Project [sent#8 AS ts#9]
    +- ~MapInArrow function(...)#4, [sent#8, v#7L], false
       +- ~EventTimeWatermark 8c58c609-f3ca-4ab6-81b5-93c5fccf09d9, sent#0: timestamp, 1 seconds
"""

from __future__ import annotations

import re

__all__ = ["carries_through_python", "uneven_union", "watermarks_in"]

_WATERMARK = re.compile(r"EventTimeWatermark (?:[0-9a-f]{8}-[0-9a-f-]{27}, )?(.+)#\d+: ")
_PYTHON = re.compile(r"\b(MapInArrow|MapInPandas|MapPartitions|MapElements|FlatMapGroups|TransformWithState)")
_INDENT = re.compile(r"[ :+\-]*")
_CUT_SHORT = "more fields"
"""Spark leaves columns out of a line that has more than `spark.sql.debug.maxToStringFields`."""


def watermarks_in(plan: str) -> list[str]:
    """The columns on which some step of a plan sets a watermark.

    >>> watermarks_in("+- ~EventTimeWatermark sent#0: timestamp, 1 seconds")
    ['sent']
    """
    return list(dict.fromkeys(_WATERMARK.findall(plan)))


def carries_through_python(plan: str, time: str) -> bool:
    """Whether the only column of a plan, `time`, is one of a function in Python that had the watermark there.

    The function gives it under the name of a column with a watermark, and nothing behind computes it anew.

    >>> plan = '''
    ... ~Project [sent#8 AS ts#9]
    ... +- ~MapInArrow function(...)#4, [sent#8, v#7L], false
    ...    +- ~EventTimeWatermark sent#0: timestamp, 1 seconds'''
    >>> carries_through_python(plan, "ts"), carries_through_python(plan.replace("sent#8", "seen#8"), "ts")
    (True, False)
    """
    lines = [line for line in plan.splitlines() if "#" in line]
    first = re.search(r"Project \[.*#(\d+)", lines[0]) if lines else None
    number = first and first[1]
    for i, line in enumerate(lines):
        if number is None:
            return False
        if _PYTHON.search(line) and (made := re.search(rf"(?:\[|, )([^,\[]+)#{number}\b", line)):
            return made[1] in watermarks_in("\n".join(_below(lines, i)))
        if re.search(rf" AS [^#]*#{number}\b", line):
            plain = re.search(rf"(?:\[|, )[^\s,\[]+#(\d+)(?:-T\w+)? AS [^#]*#{number}\b", line)
            number = plain and plain[1]
    return _CUT_SHORT in plan and bool(_PYTHON.search(plan)) and time in watermarks_in(plan)


def uneven_union(plan: str) -> bool:
    """Whether some part of a union has a watermark, and another part has none.

    >>> uneven_union('''
    ... ~Union false, false
    ... :- ~EventTimeWatermark ts#0: timestamp, 1 seconds
    ... :  +- StreamingRelation FileSource[a], [ts#0]
    ... +- StreamingRelation FileSource[b], [ts#1]''')
    True
    """
    lines = plan.splitlines()
    for i, line in enumerate(lines):
        if not re.match(r"[ :+\-]*~?Union\b", line):
            continue
        below = list(_below(lines, i))
        depth = min((_depth(one) for one in below), default=0)
        starts = [j for j, one in enumerate(below) if _depth(one) == depth]
        parts = ["\n".join(below[j:end]) for j, end in zip(starts, [*starts[1:], None], strict=True)]
        if len({bool(watermarks_in(part)) for part in parts}) > 1:
            return True
    return False


def _below(lines: list[str], place: int) -> list[str]:
    """The lines of the steps that feed the step of a line."""
    found = []
    for line in lines[place + 1 :]:
        if _depth(line) <= _depth(lines[place]):
            break
        found.append(line)
    return found


def _depth(line: str) -> int:
    return len(_INDENT.match(line)[0])  # type: ignore[index]  # it matches every line
