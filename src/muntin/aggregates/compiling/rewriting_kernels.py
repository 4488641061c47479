"""A user's function made safe to compile: checked operators, known calls, frozen values.

Works on Numba's own form of the function, before types are inferred: no source text is needed, so
lambdas and functions typed into a notebook or at a prompt are treated like any others. Whatever is
not known to mean the same in compiled code and in the interpreter is refused.
"""

from __future__ import annotations

import math
import types as python
from collections.abc import Callable
from typing import Any

import numba
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, guard, mk_unique_var
from numba.core.typed_passes import NopythonTypeInference
from numba.core.untyped_passes import IRProcessing

from muntin.aggregates.compiling import calls_kernels  # noqa: F401  fills CHECKED
from muntin.aggregates.compiling.arithmetic_kernels import CHECKED
from muntin.aggregates.compiling.reading import OWNER, recursive
from muntin.aggregates.compiling.refusal_kernels import refusal, refused
from muntin.aggregates.compiling.rounding_kernels import RefuseRounding

_STATEMENTS = (ir.Assign, ir.Jump, ir.Branch, ir.Return, ir.Del, ir.Raise)
_EXPRESSIONS = {
    "build_tuple", "call", "cast", "exhaust_iter", "getitem", "getiter", "iternext",
    "pair_first", "pair_second", "static_getitem",
}  # fmt: skip

_helpers: dict[python.FunctionType, Any] = {}
"""The functions that the function which is being compiled calls."""


def checked_jit(function: Any, arity: int) -> Any:
    """A dispatcher for a function of the user's that raises where it would not do as Python does.

    Of a method the first argument is to be None: what it reads of its object is frozen into it.
    """
    refused.clear()
    _helpers.clear()  # what they read may have changed since they were compiled
    if recursive(function):
        raise refusal("a function that calls itself is not compiled")
    if isinstance(function, python.MethodType):
        bound: Any = _copy(function.__func__)
        setattr(bound, OWNER, function.__self__)
        return _jit(bound)
    function = getattr(function, "py_func", function)
    if isinstance(function, python.FunctionType):
        return _jit(function)
    if not _is_checked(function) or arity >= len(_CALLS):
        raise refusal(f"{_shown(function)} is not a function that can be compiled")
    return _jit(_CALLS[arity](function))


_CALLS: list[Callable[[Any], Any]] = [
    lambda f: lambda: f(),
    lambda f: lambda a: f(a),
    lambda f: lambda a, b: f(a, b),
    lambda f: lambda a, b, c: f(a, b, c),
]
"""Functions of so many arguments that call another, since Numba takes apart only those of Python."""


def _jit(function: Any) -> Any:
    if function.__defaults__ or function.__kwdefaults__:
        raise refusal(f"{_shown(function)} has arguments with defaults")
    return inner_jit(function, pipeline_class=_Checked, error_model="python", forceinline=True)


def inner_jit(function: Any, **options: Any) -> Any:
    """Compile what only compiled code calls: without a way in from Python, which takes longer to make."""
    jit: Any = numba.njit  # its types leave out some of its options
    return jit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)


def _copy(function: Any) -> Any:
    return python.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _shown(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or repr(value))


def _is_checked(value: Any) -> bool:
    return isinstance(value, type | python.BuiltinFunctionType) and value in CHECKED


@register_pass(mutates_CFG=False, analysis_only=False)
class _UseCheckedOperations(FunctionPass):
    """Replace operators and functions by checked ones, and attributes by their values."""

    _name = "muntin_use_checked_operations"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # abstract in Numba, so it must be here

    def run_pass(self, state: Any) -> bool:
        rewriting = _Rewriting(state.func_ir, getattr(state.func_id.func, OWNER, None))
        for block in state.func_ir.blocks.values():
            block.body = [new for old in block.body for new in rewriting.statement(old, block.scope)]
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


class _Rewriting:
    """Of one function; `owner` is the object whose method it is, if it is one."""

    def __init__(self, func_ir: Any, owner: Any) -> None:
        self.func_ir = func_ir
        self.owner = owner

    def statement(self, statement: Any, scope: Any) -> list[Any]:
        """The statements that take the place of one."""
        if not isinstance(statement, _STATEMENTS):
            raise refusal(f"a statement of the kind {type(statement).__name__} is not compiled")
        if not isinstance(statement, ir.Assign):
            return [statement]
        value, loc = statement.value, statement.loc
        if isinstance(value, ir.Expr) and value.op in _OPERATORS:
            function, args = _OPERATORS[value.op](value)
            name = ir.Var(scope, mk_unique_var("$checked"), loc)
            stand_in = ir.Global(function.__name__, _stand_in(function), loc)
            return [
                ir.Assign(stand_in, name, loc),
                ir.Assign(ir.Expr.call(name, args, (), loc), statement.target, loc),
            ]
        return [ir.Assign(self._value(value), statement.target, loc)]

    def _value(self, value: Any) -> Any:
        if isinstance(value, ir.Global | ir.FreeVar | ir.Const):
            return _constant(getattr(value, "name", ""), value.value, value.loc)
        if isinstance(value, ir.Expr) and value.op == "getattr":
            return self._attribute(value)
        if isinstance(value, ir.Expr) and value.op not in _EXPRESSIONS:
            raise refusal(f"{value.op.replace('_', ' ')} is not compiled")
        if not isinstance(value, ir.Arg | ir.Var | ir.Expr):
            raise refusal(f"{type(value).__name__} is not compiled")
        return value

    def _attribute(self, expr: Any) -> Any:
        """`math.pi`, `math.sqrt`, and what a method reads of its object."""
        of = guard(self.func_ir.get_definition, expr.value)
        if isinstance(of, ir.Global | ir.FreeVar) and of.value is math:
            return _constant(f"math.{expr.attr}", getattr(math, expr.attr, None), expr.loc)
        if isinstance(of, ir.Arg) and of.index == 0 and self.owner is not None:
            return _constant(f"self.{expr.attr}", getattr(self.owner, expr.attr, None), expr.loc)
        raise refusal(f"the attribute {expr.attr} is not compiled")


_OPERATORS: dict[str, Callable[[Any], tuple[Any, tuple[Any, ...]]]] = {
    "binop": lambda expr: (expr.fn, (expr.lhs, expr.rhs)),
    "inplace_binop": lambda expr: (expr.immutable_fn, (expr.lhs, expr.rhs)),
    "unary": lambda expr: (expr.fn, (expr.value,)),
}


def _stand_in(operator: Any) -> Any:
    if operator not in CHECKED:
        raise refusal(f"the operator {_shown(operator)} is not compiled")
    return CHECKED[operator]


def _constant(name: str, value: Any, loc: Any) -> Any:
    """A value that the function reads, frozen."""
    if value is None or isinstance(value, str) or _is_number(value):
        return ir.Const(value, loc)
    if isinstance(value, tuple) and all(map(_is_number, value)):
        return ir.Global(name, value, loc)
    if _is_checked(value):
        return ir.Global(name, CHECKED[value], loc)
    if value is math or value is range or value is len or _is_exception(value):
        return ir.Global(name, value, loc)
    function = getattr(value, "py_func", value)
    if isinstance(function, python.FunctionType):
        return ir.Global(name, _helper(function), loc)
    raise refusal(f"it uses {name or repr(value)}, a {type(value).__name__}, which is not compiled")


def _is_number(value: Any) -> bool:
    return type(value) in (bool, float) or (type(value) is int and -(2**63) <= value < 2**63)


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _helper(function: python.FunctionType) -> Any:
    if function not in _helpers:
        _helpers[function] = _jit(function)
    return _helpers[function]


class _Checked(CompilerBase):
    """Numba's compiler with two passes of our own."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_UseCheckedOperations, IRProcessing)
        passes.add_pass_after(RefuseRounding, NopythonTypeInference)
        passes.finalize()
        return [passes]
