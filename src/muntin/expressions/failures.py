"""What went wrong where Arrow could not compute an expression, in the words of the expression."""

from __future__ import annotations

import re

import pyarrow as pa

from muntin.expressions.arrow import operator_of

__all__ = ["failure"]

_NO_KERNEL = re.compile(r"Function '(\w+)' has no kernel matching input types \((.*)\)")
_NO_MEMBER = re.compile(r"Array type doesn't match type of values set: (\S+) vs (\S+)")

_ONE_KIND = "both sides must be of one kind (texts stand in quotes, numbers and True or False without)"
_CURES = {
    "divide by zero": "leave the tuples out where the divisor is 0, or make it null there",
    "overflow": "cast the column to float64 or to a decimal",
}


def failure(text: str, columns: tuple[str, ...], schema: pa.Schema, error: Exception) -> str:
    """The message: the expression, the types of its columns, what does not fit, and the cure.

    >>> error = pa.ArrowInvalid("Function 'greater' has no kernel matching input types (string, int8)")
    >>> failure("kind > 5", ("kind",), pa.schema({"kind": pa.string()}), error)
    'cannot compute "kind > 5" (kind is string): ">" does not take string and int8; both sides must be of \
one kind (texts stand in quotes, numbers and True or False without), or cast the column'
    """
    kinds = ", ".join(f"{name} is {schema.field(name).type}" for name in columns)
    problem, cure = _problem(str(error))
    return f'cannot compute "{text}"{f" ({kinds})" if kinds else ""}: {problem}; {cure}'


def _problem(message: str) -> tuple[str, str]:
    if match := _NO_KERNEL.search(message):
        types = re.split(r", (?![^<]*>)", match[2])
        cure = f"{_ONE_KIND}, or cast the column" if len(types) > 1 else "cast the column"
        return f'"{operator_of(match[1])}" does not take {" and ".join(types)}', cure
    if match := _NO_MEMBER.search(message):
        return f'"in" does not find {match[2]} among {match[1]}', _ONE_KIND
    for words, cure in _CURES.items():
        if words in message:
            return words, cure
    return message, "check the types of the columns"
