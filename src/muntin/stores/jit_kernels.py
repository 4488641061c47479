"""How the kernels of the stores are compiled; loaded, and Numba with it, when the first one is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba import types
from numba.core.errors import NumbaError

from muntin.dispatcher_kernels import njit

if TYPE_CHECKING:
    from muntin.stores.monoids import Monoid

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def jit(function: Any, *, hot: bool = False) -> Any:
    """Compile a function that other kernels call (no fast-math: results must not depend on it).

    Kernels allocate nothing, so the counting of references is left out: it is all atomic operations.
    ``hot``: small and called often, so it becomes part of its callers.
    """
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _one_for_all_values(njit(**_OPTIONS, **without, forceinline=hot)(function))


def _one_for_all_values(kernel: Any) -> Any:
    """Compile `f(x, 0)` and `f(x, 1)` once, as `f(x, integer)`: Numba gives each constant a literal type.

    It spares FiBA a third of its compilations.
    """
    template = kernel.get_call_template

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        return template(tuple(types.unliteral(a) for a in arguments), keywords)

    kernel.get_call_template = get_call_template
    return kernel


def jit_entry(function: Any, *, cache: bool) -> Any:
    """Compile a function that Python calls."""
    without: dict[str, Any] = {"no_cfunc_wrapper": True}
    return njit(**_OPTIONS, **without, cache=cache)(function)


def why_not_compilable(monoid: Monoid) -> str:
    """Empty if Numba compiles the user's functions and their partials keep the declared types."""
    typeof: Any = numba.typeof
    value = typeof(0 if monoid.input == "int64" else 0.0)
    one = typeof(monoid.identity)
    try:
        lifted = jit(monoid.lift)
        lifted.compile((value,))
        combined = jit(monoid.combine)
        combined.compile((one, one))
    except (NumbaError, ValueError, TypeError, RuntimeError, LookupError, AttributeError) as error:
        # Numba reports most of what it cannot compile as its own errors, and the rest as it comes.
        return (str(error) or type(error).__name__).splitlines()[0]
    results = (
        lifted.overloads[(value,)].signature.return_type,
        combined.overloads[(one, one)].signature.return_type,
    )
    wrong = [kind for kind in results if _type_names(kind) != list(monoid.columns)]
    return f"its partial has columns {monoid.columns}, but a function returns {wrong[0]}" if wrong else ""


def _type_names(kind: Any) -> list[str]:
    return [str(getattr(item, "literal_type", item)) for item in getattr(kind, "types", [kind])]
