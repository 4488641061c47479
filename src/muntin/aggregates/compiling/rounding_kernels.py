"""No integer becomes a float on the way through a compiled function, unless the function says so."""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass

from muntin.aggregates.compiling.arithmetic_kernels import EXACT, is_tuple, is_whole
from muntin.aggregates.compiling.refusal_kernels import refusal

WRITTEN_OUT = "muntin_written_out"
"""In the metadata of a compiled function: which parts of its result are integers written out."""


@register_pass(mutates_CFG=False, analysis_only=True)
class RefuseRounding(FunctionPass):
    """Refuse a variable that is an integer here and a float there: it would be a float everywhere.

    Python would go on exactly with the integer. One that is written out may become a float.
    """

    _name = "muntin_refuse_rounding"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # abstract in Numba, so it must be here

    def run_pass(self, state: Any) -> bool:
        statements = [one for block in state.func_ir.blocks.values() for one in block.body]
        returned = []
        for statement in statements:
            if isinstance(statement, ir.Assign):
                target = state.typemap[statement.target.name]
                for source in _sources(statement.value):
                    _check(None if source is ir.UNDEFINED else state.typemap[source.name], target)
            elif isinstance(statement, ir.Return):
                cast = state.func_ir.get_definition(statement.value)
                returned.append(_written_out(state.typemap[cast.value.name]))
        # Types of results say no longer what was written out.
        state.metadata[WRITTEN_OUT] = tuple(map(all, zip(*returned, strict=False)))
        return False


def _sources(value: Any) -> list[Any]:
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Expr) and value.op == "cast":
        return [value.value]
    if isinstance(value, ir.Expr) and value.op == "phi":
        return list(value.incoming_values)
    return []


def _check(source: Any, target: Any) -> None:
    if source is None:
        raise refusal("a variable may be used before it has a value")
    if _rounds(source, target):
        raise refusal(
            "a value is an integer in one case and a float in another: write float(...) around the integer"
        )


def _rounds(source: Any, target: Any) -> bool:
    """Whether a value of the one type becomes a float of the other."""
    if is_tuple(source) and is_tuple(target):
        return any(map(_rounds, source, target))
    wanted = target.type if isinstance(target, types.Optional) else target
    return isinstance(wanted, types.Float) and is_whole(source) and not _is_small(source)


def _is_small(kind: Any) -> bool:
    """Whether it is an integer that is written out, and a float can hold."""
    return isinstance(kind, types.IntegerLiteral) and abs(kind.literal_value) <= EXACT


def _written_out(kind: Any) -> tuple[bool, ...]:
    """For each part of a result, whether it is always the same integer."""
    parts = kind if is_tuple(kind) else (kind,)
    return tuple(map(_is_small, parts))
