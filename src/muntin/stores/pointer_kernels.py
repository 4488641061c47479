"""The state of a store as bare pointers, for compiled kernels."""

from __future__ import annotations

from typing import Any

from numba.core import types as numba_types
from numba.extending import intrinsic

types: Any = numba_types  # the module is typed incompletely


@intrinsic
def bare(typing_context: Any, arguments: Any) -> Any:
    """The tuple of arguments, with every array in a nested tuple replaced by a pointer to its memory.

    Kernels access the state of a store through bare pointers. An array would be passed as seven machine
    words at every call, and every index tested for a negative one; both cost more than most kernels.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [
            _bare_value(context, builder, kind, builder.extract_value(args[0], i), nested=False)
            for i, kind in enumerate(arguments.types)
        ]
        return context.make_tuple(builder, signature.return_type, values)

    bared = types.Tuple([_bare_type(kind, nested=False) for kind in arguments.types])
    return bared(arguments), codegen


def _bare_type(kind: Any, nested: bool) -> Any:
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_bare_type(item, nested=True) for item in kind.types])
    return types.CPointer(kind.dtype) if nested and isinstance(kind, types.Array) else kind


def _bare_value(context: Any, builder: Any, kind: Any, value: Any, nested: bool) -> Any:
    if isinstance(kind, types.BaseTuple):
        values = [
            _bare_value(context, builder, item, builder.extract_value(value, i), nested=True)
            for i, item in enumerate(kind.types)
        ]
        return context.make_tuple(builder, _bare_type(kind, nested), values)
    if nested and isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    return value
