"""The types of a user's functions, and the one type that all its partial aggregates have."""

from __future__ import annotations

from typing import Any

from numba import types

from muntin.aggregates.compiling.arithmetic_kernels import is_tuple
from muntin.aggregates.compiling.refusal_kernels import RefusedError
from muntin.aggregates.compiling.rewriting_kernels import checked_jit, inner_jit
from muntin.aggregates.compiling.rounding_kernels import WRITTEN_OUT

KINDS = {"bool": types.boolean, "int64": types.int64, "float64": types.float64}
NAMES = {kind: name for name, kind in KINDS.items()}
"""How compiled numbers are called by NumPy, and back."""


class Typed:
    """A function of the user's, and what it returns for arguments of given types."""

    def __init__(self, step: str, function: Any, arity: int) -> None:
        self.step = step
        self.jit = checked_jit(function, arity)
        self.method = hasattr(function, "__self__") and hasattr(function, "__func__")
        call = self.jit
        self.call = inner_jit(lambda *args: call(None, *args)) if self.method else call

    def returns(self, *kinds: Any) -> tuple[Any, tuple[bool, ...]]:
        """The type of the result, and which parts of it are integers that are written out."""
        signature = (types.none, *kinds) if self.method else kinds
        self.jit.compile(signature)
        found = self.jit.overloads[signature]
        return types.unliteral(found.signature.return_type), found.metadata[WRITTEN_OUT]


def partial_kind(lift: Typed, kinds: tuple[Any, ...], steps: list[Typed]) -> Any:
    """The type of the partial aggregate: what lift returns, widened until combine returns it too."""
    found, literal = lift.returns(*kinds)
    kind = _checked_partial(found)
    while True:
        wider = kind
        for step in steps:
            result, _ = step.returns(wider, wider)
            wider = _wider(wider, _checked_partial(result), literal, step.step)
        if wider == kind:
            return kind
        kind, literal = wider, (False,) * len(literal)


def _checked_partial(kind: Any) -> Any:
    parts = tuple(map(types.unliteral, kind)) if is_tuple(kind) else (kind,)
    if not parts or not all(part in NAMES for part in parts):
        raise RefusedError(f"a partial aggregate is a number or a tuple of numbers, not {kind}")
    return types.Tuple(parts) if is_tuple(kind) else kind


def _wider(kind: Any, result: Any, literal: tuple[bool, ...], step: str) -> Any:
    if kind == result:
        return kind
    if is_tuple(kind) != is_tuple(result) or (is_tuple(kind) and len(kind) != len(result)):
        raise RefusedError(f"lift returns {kind} and {step} {result}")
    if not is_tuple(kind):
        return _wider_part(kind, result, literal[0], step)
    parts = zip(kind, result, literal, strict=True)
    return types.Tuple(tuple(_wider_part(p, q, written, step) for p, q, written in parts))


def _wider_part(kind: Any, result: Any, written_out: bool, step: str) -> Any:
    if kind == result or (kind, result) == (types.int64, types.boolean):
        return kind
    if (kind, result) == (types.boolean, types.int64):
        return result
    if (kind, result) == (types.int64, types.float64) and written_out:
        return result
    raise RefusedError(
        f"lift returns {NAMES[kind]} where {step} returns {NAMES[result]}: "
        "make them alike, for instance with float(...)"
    )
