"""When the functions of an aggregate are compiled, and why they are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.arrays import Bools
from muntin.aggregates.compiling.reading import Reading
from muntin.aggregates.compiling.symbols import RefusedError
from muntin.aggregates.compiling.tracing import Code, trace
from muntin.aggregates.groups import Groups
from muntin.aggregates.partials import cells
from muntin.aggregates.partials.cells import Cells, Numbers
from muntin.aggregates.partials.functions import Functions
from muntin.deferred_import import DeferredImport
from muntin.errors import InterpretedWarning, QueryError, cause_text
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.compiling import fold_kernels
    from muntin.aggregates.compiling.fold_kernels import Kernels
else:
    fold_kernels = DeferredImport("muntin.aggregates.compiling.fold_kernels")

__all__ = ["WORTHWHILE", "Program", "kind_of"]

WORTHWHILE = 50_000
"""Tuples from which on compiling, which takes about a second, is soon repaid."""

_warned: set[tuple[str, str]] = set()
"""Aggregates, and the reasons, of which the user has been warned."""


class Program:
    """How one aggregate over columns of known types is run, from its first tuple on.

    Compiling never changes a result, so it is done when it pays: after some tuples, or at once if
    the user asks for it.
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
        """Whether there is nothing that the user should be warned of."""
        self.tuples = 0
        self.returns = 0
        """How often compiled code had to give back to the interpreter, and why the last time."""
        self.returned = ""
        self._code: Code | None = None
        self._reading = Reading()
        if wanted:
            self.trace()
            if self.reason:
                raise QueryError(
                    f'"{functions.name}" cannot be compiled: {self.reason}; leave out compile=True to run '
                    "it in the interpreter"
                )

    def kernels(self, tuples: int = 0) -> Kernels | None:
        """The compiled loops, if these further tuples make them worthwhile and nothing forbids them."""
        self.tuples += tuples
        if not self.reason and self._code is None and self.tuples >= WORTHWHILE:
            self.trace()
        elif self._code is not None and not self.reason and not self._reading.unchanged():
            self.reason = "a value that its functions read has changed since they were compiled"
        return None if self.reason or self._code is None else fold_kernels.build(self._code)

    def trace(self) -> None:
        """Make the code to compile, or find the reason why there is none."""
        if self.reason or self._code is not None:
            return
        try:
            self._code = trace(self.functions, self.kinds, self._reading)
        except RefusedError as error:
            self.reason = str(error)

    def warn(self, partial: Any) -> None:
        """Say once why it is not compiled, if this partial aggregate lets one expect that it is."""
        parts = partial if isinstance(partial, tuple) else (partial,)
        expected = all(type(part) in (bool, int, float) for part in parts)
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
        """Whether a compiled loop came to its end; if not, the interpreter has to do the same again."""
        try:
            loop(*map(_readonly, args), *out)
        except Exception as error:
            if type(error).__module__.startswith("numba"):  # of a loop, not of a user's function
                raise
            self.returns += 1
            self.returned = cause_text(error)
            return False
        return True

    def joined(self, parts: Sequence[tuple[Cells, Bools | None]]) -> Cells:
        """Cells one after the other, as numbers if all can be; with each, which of its rows are there."""
        kernels = self.kernels()
        if kernels is not None and any(isinstance(part, Numbers) for part, _ in parts):
            numbers = [kernels.code.form.numbers(part, there) for part, there in parts]
            if all(part is not None for part in numbers):
                return cells.joined([part for part in numbers if part is not None])
        return cells.joined([part for part, _ in parts])

    def values(self, g: Groups) -> tuple[npt.NDArray[Any], ...]:
        """The inputs as compiled code takes them."""
        return tuple(_array(g, expr, kind) for expr, kind in zip(self.inputs, self.kinds, strict=True))

    def describe(self, trial: bool) -> str:
        """Whether it is compiled, and why not; a trial finds out whether it can be."""
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
    """How compiled code sees a column: as "bool", "int64", "float64", or not at all."""
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
    """An array, or a tuple of arrays, not to be written to: so that all are of one type for Numba."""
    if isinstance(value, tuple):
        return tuple(map(_readonly, value))
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view
