"""The user's query as frozen data; other packages run it."""

from muntin.query.policies import (
    MAX_AHEAD,
    MAX_WINDOWS,
    EachBatch,
    Every,
    OnClose,
    each_batch,
    every,
    on_close,
)
from muntin.query.spec import FREE_POLICIES, RESERVED, WINDOW_NAME, QuerySpec

__all__ = [
    "FREE_POLICIES",
    "MAX_AHEAD",
    "MAX_WINDOWS",
    "RESERVED",
    "WINDOW_NAME",
    "EachBatch",
    "Every",
    "OnClose",
    "QuerySpec",
    "each_batch",
    "every",
    "on_close",
]
