"""Types of columns as users give them: a pyarrow type, or the name of one."""

from __future__ import annotations

import pyarrow as pa

from muntin.errors import QueryError, nearest, value_text

__all__ = ["named_type"]

_ALIASES = (
    *(f"int{n}" for n in (8, 16, 32, 64)), *(f"uint{n}" for n in (8, 16, 32, 64)), "float32", "float64",
    "bool", "string", "large_string", "binary", "date32", *(f"timestamp[{u}s]" for u in ("", "m", "u", "n")),
)  # fmt: skip


def named_type(kind: object, what: str) -> pa.DataType:
    """The type; an error calls it `what`.

    >>> named_type("float64", "type"), named_type(pa.int8(), "type")
    (DataType(double), DataType(int8))
    """
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(kind)
    except (ValueError, TypeError, AttributeError):
        hint = nearest(kind if isinstance(kind, str) else getattr(kind, "__name__", ""), _ALIASES)
        raise QueryError(
            f'{what} must be a pyarrow type or the name of one, like "float64": got {value_text(kind)}.{hint}'
        ) from None
