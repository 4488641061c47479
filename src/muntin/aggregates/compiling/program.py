"""The decision whether the functions of an aggregate are compiled, and the reason if they are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.compiling.reading import Reading
from muntin.aggregates.compiling.symbols import RefusedError
from muntin.aggregates.compiling.tracing import Code, trace
from muntin.aggregates.groups import Groups
from muntin.aggregates.partials import cells
from muntin.aggregates.partials.cells import Cells, Folds, Numbers
from muntin.aggregates.partials.functions import Functions
from muntin.deferred_import import DeferredImport
from muntin.errors import InterpretedWarning, QueryError, cause_text
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.compiling import fold_kernels
    from muntin.aggregates.partials.loop_kernels import Loops
else:
    fold_kernels = DeferredImport("muntin.aggregates.compiling.fold_kernels")

__all__ = ["WORTHWHILE", "Program", "kind_of"]

WORTHWHILE = 50_000
"""The number of tuples after which functions are compiled; compilation takes about a second."""

_warned: set[tuple[str, str]] = set()
"""The warnings that were already logged: aggregate and reason."""


class Program:
    """The execution of one aggregate over columns of known types: interpreted, or compiled.

    Compilation never changes a result. It is done after `WORTHWHILE` tuples, or at once if the user asks
    for it.
    """

    def __init__(
        self,
        functions: Functions,
        inputs: tuple[Expr, ...],
        types: tuple[pa.DataType, ...],
        wanted: bool | None,
    ) -> None:
        self.functions = functions
        self.inputs = inputs
        self.wanted = wanted
        self.kinds = tuple(map(kind_of, types))
        self.reason = "compile=False" if wanted is False else ""
        """Why it is interpreted."""
        for expr, type_, kind in zip(inputs, types, self.kinds, strict=True):
            if not kind and not self.reason:
                self.reason = f'"{expr}" is {type_}, and only booleans, integers and floats are compiled'
        self.silent = bool(self.reason) or wanted is not None
        """Whether no warning is due."""
        self.tuples = 0
        self.returns = 0
        """The number of calls of compiled code that the interpreter had to repeat."""
        self.returned = ""
        """The reason for the last of them."""
        self._code: Code | None = None
        self._reading = Reading()
        if wanted:
            self.trace()
            if self.reason:
                raise QueryError(
                    f'"{functions.name}" cannot be compiled: {self.reason}; leave out compile=True to run '
                    "it in the interpreter"
                )

    def kernels(self, tuples: int = 0) -> Loops | None:
        """The compiled loops, None while interpreted; `tuples` is the number of further tuples."""
        self.tuples += tuples
        if not self.reason and self._code is None and self.tuples >= WORTHWHILE:
            self.trace()
        elif self._code is not None and not self.reason and not self._reading.unchanged():
            self.reason = "a value that its functions read has changed since they were compiled"
        return None if self.reason or self._code is None else fold_kernels.build(self._code)

    @property
    def code(self) -> Code:
        """The traced functions, once `kernels` has returned loops."""
        assert self._code is not None
        return self._code

    def trace(self) -> None:
        """Make the code to compile, or set the reason why there is none."""
        if self.reason or self._code is not None:
            return
        try:
            self._code = trace(self.functions, self.kinds, self._reading)
        except RefusedError as error:
            self.reason = str(error)

    def warn(self, partial: Any) -> None:
        """Warn once that it is not compiled, if this partial aggregate consists of numbers."""
        numbers = partial if isinstance(partial, tuple) else (partial,)
        expected = all(type(number) in (bool, int, float) for number in numbers)
        if self.silent or not self.reason or not expected:
            return
        self.silent = True
        if (self.functions.name, self.reason) in _warned:
            return
        _warned.add((self.functions.name, self.reason))
        warnings.warn(
            f'"{self.functions.name}" runs in the interpreter: {self.reason}; '
            "compile=False says that this is meant",
            InterpretedWarning,
            stacklevel=2,
        )

    def run(self, loop: Callable[..., Any], args: tuple[Any, ...], out: tuple[Any, ...]) -> bool:
        """Run a compiled loop; False if it raised, and the interpreter has to repeat the work."""
        try:
            loop(*map(_readonly, args), *out)
        except Exception as error:
            if type(error).__module__.startswith("numba"):  # an error of the compiler
                raise
            self.returns += 1
            self.returned = cause_text(error)
            return False
        return True

    def fold(self, loop: Callable[..., Any], args: tuple[Any, ...], rows: int) -> Folds | None:
        """The rows that a compiled loop writes; None if it raised."""
        count, value = np.zeros(rows, dtype=np.int64), self.code.form.zeros(rows)
        return Folds(count, value) if self.run(loop, args, ((count, *value.columns),)) else None

    def columns(self, folds: Folds) -> tuple[npt.NDArray[Any], ...] | None:
        """Rows as the columns that compiled loops read; None where one is not of the compiled form."""
        numbers = self.code.form.numbers(folds)
        return None if numbers is None else (folds.count, *numbers.columns)

    def joined(self, states: Sequence[Folds]) -> Cells:
        """The folds of all states in order, as numbers if all can be."""
        values = [state.value for state in states]
        if self.kernels() is not None and any(isinstance(value, Numbers) for value in values):
            numbers = list(map(self.code.form.numbers, states))
            values = [value for value in numbers if value is not None] if all(numbers) else values
        return cells.joined(values)

    def values(self, g: Groups) -> tuple[npt.NDArray[Any], ...]:
        """The inputs as arrays for compiled code."""
        return tuple(_array(g, expr, kind) for expr, kind in zip(self.inputs, self.kinds, strict=True))

    def describe(self, trial: bool) -> str:
        """Whether it is compiled, and the reason if not; a trial traces the functions now."""
        if trial:
            self.trace()
        if self.reason:
            return f"interpreted: {self.reason}"
        if self._code is None:
            return f"interpreted for the first {WORTHWHILE:,} tuples"
        notes = [f"lower interpreted: {self._code.refused}"] if self._code.refused else []
        if self.returns:
            notes.append(f"interpreted {self.returns} times, last for {self.returned}")
        soon = "" if self.wanted or self.tuples >= WORTHWHILE else f" from {WORTHWHILE:,} tuples on"
        return "; ".join([f"compiled{soon}", *notes])


def kind_of(type_: pa.DataType) -> str:
    """The kind of a column in compiled code: "bool", "int64" or "float64"; "" if not supported."""
    if t.is_boolean(type_):
        return "bool"
    if t.is_integer(type_) and not t.is_uint64(type_):
        return "int64"
    return "float64" if t.is_floating(type_) else ""


def _array(g: Groups, expr: Expr, kind: str) -> npt.NDArray[Any]:
    if kind == "float64":
        return g.floats(expr)
    integers = g.integers(expr)
    return integers if kind == "int64" else integers != 0


def _readonly(value: Any) -> Any:
    """Read-only views of an array or a tuple of arrays: Numba compiles writable ones separately."""
    if isinstance(value, tuple):
        return tuple(map(_readonly, value))
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view
