"""What the user asks for, as frozen data without any machinery."""

from muntin.query.policies import AHEAD, EachBatch, Every, OnClose, each_batch, every, on_close
from muntin.query.spec import RESERVED, QuerySpec

__all__ = [
    "AHEAD",
    "RESERVED",
    "EachBatch",
    "Every",
    "OnClose",
    "QuerySpec",
    "each_batch",
    "every",
    "on_close",
]
