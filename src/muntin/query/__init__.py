"""The user's query as frozen data; other packages run it."""

from muntin.query.policies import (
    MAX_AHEAD,
    MAX_WINDOWS,
    EachBatch,
    Every,
    OnChange,
    OnClose,
    each_batch,
    every,
    on_change,
    on_close,
)
from muntin.query.spec import (
    EDGE_PREFIX,
    FREE_POLICIES,
    ORDINAL,
    RESERVED,
    WINDOW_NAME,
    QuerySpec,
    edge_names,
)

__all__ = [
    "EDGE_PREFIX",
    "FREE_POLICIES",
    "MAX_AHEAD",
    "MAX_WINDOWS",
    "ORDINAL",
    "RESERVED",
    "WINDOW_NAME",
    "EachBatch",
    "Every",
    "OnChange",
    "OnClose",
    "QuerySpec",
    "each_batch",
    "edge_names",
    "every",
    "on_change",
    "on_close",
]
