"""The state of a store as bare pointers, for compiled kernels."""

from __future__ import annotations

from typing import Any

from numba.core import types as numba_types
from numba.extending import intrinsic

types: Any = numba_types  # parts of it are typed, others are not


@intrinsic
def bare(typing_context: Any, parts: Any) -> Any:
    """The parts of a tuple, with every array inside of an inner tuple replaced by its memory.

    Kernels read and write the state of a store through bare pointers: an array is seven machine
    words, each to be handed on at every call, and its positions are tested for those that count
    from the end. Both cost more than what most kernels do themselves.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = [
            _bare_value(context, builder, kind, builder.extract_value(args[0], i), nested=False)
            for i, kind in enumerate(parts.types)
        ]
        return context.make_tuple(builder, signature.return_type, found)

    bared = types.Tuple([_bare_type(kind, nested=False) for kind in parts.types])
    return bared(parts), codegen


def _bare_type(kind: Any, nested: bool) -> Any:
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_bare_type(part, nested=True) for part in kind.types])
    return types.CPointer(kind.dtype) if nested and isinstance(kind, types.Array) else kind


def _bare_value(context: Any, builder: Any, kind: Any, value: Any, nested: bool) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = [
            _bare_value(context, builder, part, builder.extract_value(value, i), nested=True)
            for i, part in enumerate(kind.types)
        ]
        return context.make_tuple(builder, _bare_type(kind, nested), parts)
    if nested and isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    return value
