"""The text of Spark's plan of a DataFrame: the origin of a column, and the columns with watermarks.

Classic Spark and Spark Connect both give the plan as text, one line for each step, its input indented:

    ~Project [sent#8 AS ts#9]
    +- ~MapInArrow function(...)#4, [sent#8, v#7L], false
       +- ~EventTimeWatermark 8c58c609-f3ca-4ab6-81b5-93c5fccf09d9, sent#0: timestamp, 1 seconds
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["has_partial_watermark", "keeps_watermark", "plan_of", "watermarks_in"]

_WATERMARK = re.compile(r"EventTimeWatermark (?:[0-9a-f]{8}-[0-9a-f-]{27}, )?(.+)#\d+: ")
_PYTHON = re.compile(r"\b(MapInArrow|MapInPandas|MapPartitions|MapElements|FlatMapGroups|TransformWithState)")
_INDENT = re.compile(r"[ :+\-]*")
_TRUNCATED = "more fields"
"""Spark omits columns from a line that has more than `spark.sql.debug.maxToStringFields`."""


def plan_of(frame: Any) -> str:
    """The analyzed plan of a DataFrame."""
    if hasattr(frame, "_jdf"):
        return str(frame._jdf.queryExecution().analyzed().toString())
    text = str(frame._explain_string(extended=True))
    return text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]


def watermarks_in(plan: str) -> list[str]:
    """The columns on which some step of a plan sets a watermark.

    >>> watermarks_in("+- ~EventTimeWatermark sent#0: timestamp, 1 seconds")
    ['sent']
    """
    return list(dict.fromkeys(_WATERMARK.findall(plan)))


def keeps_watermark(plan: str, time: str) -> bool:
    """Whether the only column of a plan, `time`, has its watermark still after a Python function.

    The function returns it under the name of a column with a watermark, and no later step computes it anew.

    >>> plan = '''
    ... ~Project [sent#8 AS ts#9]
    ... +- ~MapInArrow function(...)#4, [sent#8, v#7L], false
    ...    +- ~EventTimeWatermark sent#0: timestamp, 1 seconds'''
    >>> keeps_watermark(plan, "ts"), keeps_watermark(plan.replace("sent#8", "seen#8"), "ts")
    (True, False)
    """
    lines = [line for line in plan.splitlines() if "#" in line]
    first = re.search(r"Project \[.*#(\d+)", lines[0]) if lines else None
    number = first and first[1]
    for i, line in enumerate(lines):
        if number is None:
            return False
        if _PYTHON.search(line) and (made := re.search(rf"(?:\[|, )([^,\[]+)#{number}\b", line)):
            return made[1] in watermarks_in("\n".join(_inputs(lines, i)))
        if re.search(rf" AS [^#]*#{number}\b", line):
            plain = re.search(rf"(?:\[|, )[^\s,\[]+#(\d+)(?:-T\w+)? AS [^#]*#{number}\b", line)
            number = plain and plain[1]
    return _TRUNCATED in plan and bool(_PYTHON.search(plan)) and time in watermarks_in(plan)


def has_partial_watermark(plan: str) -> bool:
    """Whether one input of a union has a watermark, and another one has none.

    >>> has_partial_watermark('''
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
        below = _inputs(lines, i)
        depth = min(map(_depth, below), default=0)
        starts = [j for j, one in enumerate(below) if _depth(one) == depth]
        inputs = ["\n".join(below[j:end]) for j, end in zip(starts, [*starts[1:], None], strict=True)]
        if len({bool(watermarks_in(text)) for text in inputs}) > 1:
            return True
    return False


def _inputs(lines: list[str], place: int) -> list[str]:
    """The lines of the steps that feed the step of a line."""
    depth = _depth(lines[place])
    end = (i for i, line in enumerate(lines) if i > place and _depth(line) <= depth)
    return lines[place + 1 : next(end, None)]


def _depth(line: str) -> int:
    return len(_INDENT.match(line)[0])  # type: ignore[index]  # it matches every line
