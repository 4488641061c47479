"""The functions of an aggregate as source text that Numba compiles, from calling them with symbols.

A function is called once for each of its branches: a call repeats the decisions of an earlier one and takes
the next branch. The text of a function is a tree of `if`s whose leaves return or raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muntin.aggregates.compiling.reading import Reading
from muntin.aggregates.compiling.symbols import EXACT, NUMBERS, RefusedError, Symbol, cast, kind_of
from muntin.aggregates.partials.cells import Form
from muntin.aggregates.partials.functions import Functions
from muntin.errors import cause_text

__all__ = ["Code", "trace"]

BRANCHES = 64
"""The largest number of branches of a function; a loop whose length depends on a value exceeds it."""
OPERATIONS = 1_000
"""The largest number of operations on one path through a function; loops are unrolled."""
LITERAL = "literal"
"""The kind of a literal integer, which may become a float."""

_CASES = {frozenset(("int64", LITERAL)): "int64", frozenset(("float64", LITERAL)): "float64"}
"""The common kind of the values that one function returns in different branches."""
_STEPS = {**_CASES, frozenset(("bool", "int64")): "int64", frozenset(("bool", LITERAL)): "int64"}
"""The common kind of values of `lift` and `combine`: a sum of booleans is an integer."""
_MISTAKES = (TypeError, AttributeError, NameError, LookupError, ImportError, RecursionError)
"""Exceptions that come from symbols rather than from the user's `raise`."""


@dataclass(frozen=True, slots=True)
class Code:
    """An aggregate over inputs of known kinds, to be compiled; equal for equal programs."""

    form: Form
    """Of the partial aggregates."""
    source: str
    """The functions `lift`, `combine` and, where there are such, `invert` and `lower`.

    Their partial aggregates are tuples of the number of tuples and the numbers of `form`.
    """
    result: str = ""
    """NumPy's name of the type of the results of a compiled `lower`."""
    refused: str = ""
    """Why `lower` is not compiled."""


def trace(functions: Functions, kinds: tuple[str, ...], reading: Reading) -> Code:
    """The code of an aggregate over inputs of these kinds; raises a `RefusedError` with the reason."""
    numbers = [(f"v{i}_", Form(True, (kind,))) for i, kind in enumerate(kinds)]
    lift = _Function("lift", functions.lift, reading, *numbers)
    given = [(step, f) for step, f in (("combine", functions.combine), ("invert", functions.invert)) if f]
    common, form = lift.form, None
    while form != _settled(common):
        form = _settled(common)
        steps = [_Function(step, f, reading, ("p", form), ("q", form)) for step, f in given]
        for step in steps:
            wider = _common(common, step.form, _STEPS)
            if wider is None:
                raise RefusedError(
                    f"lift returns {_shown(common)} where {step.step} returns {_shown(step.form)}: "
                    "let both return the same, for instance with float(...)"
                )
            common = wider
    partial = [f"{letter}{k} = {letter}[{k + 1}]" for letter in "pq" for k in range(len(form.dtypes))]
    before = {"combine": ["if p[0] == 0: return q"], "invert": list[str]()}
    counts = {"combine": "p[0] + q[0]", "invert": "p[0] - q[0]"}
    source = lift.text(", ".join(f"{name}0" for name, _ in numbers), [], form, "1")
    for step in steps:
        empty = [*before[step.step], "if q[0] == 0: return p"]
        source += step.text("p, q", empty + partial, form, counts[step.step])
    if functions.lower is None:
        return Code(form, "\n".join(source))
    try:
        lower = _Function("lower", functions.lower, reading, ("p", form))
        result = _settled(lower.form)
        if not result.scalar:
            raise RefusedError("lower returns a tuple")
    except RefusedError as error:
        if any(other != form for function in (lift, *steps) for other in function.forms):
            raise  # an interpreted `lower` could show 1.0 or 1 where Python has 1 or True
        return Code(form, "\n".join(source), refused=str(error))
    source += lower.text("p", partial[: len(form.dtypes)], result)
    return Code(form, "\n".join(source), result.dtypes[0])


class _UndecidedError(Exception):
    """A call has reached a branch that no call has taken."""


class _Run:
    """One call of a function with symbols; `lines` are its operations since the last branch."""

    def __init__(self, decisions: tuple[bool, ...]) -> None:
        self.ahead = list(decisions)
        self.taken: dict[str, bool] = {}
        self.lines: list[str] = []
        self.operations = 0

    def record(self, kind: str, expression: str) -> Symbol:
        self.operations += 1
        if self.operations > OPERATIONS:
            raise RefusedError(f"a call with more than {OPERATIONS:,} operations is not compiled")
        name = f"{kind[0]}{self.operations}"  # two branches may give one number to values of two kinds
        self.lines.append(f"{name} = {expression}")
        return Symbol(self, kind, name)

    def decide(self, condition: str) -> bool:
        if condition not in self.taken:
            if not self.ahead:
                raise _UndecidedError(condition)
            self.taken[condition] = self.ahead.pop(0)
            self.lines.clear()
        return self.taken[condition]


class _Function:
    """One of the functions as a tree of operations, and the form of what it returns."""

    def __init__(self, step: str, function: Any, reading: Reading, *arguments: tuple[str, Form]) -> None:
        self.step = step
        self.optional = step == "lower"
        """Whether it may return None."""
        self.arguments = arguments
        self.tree: list[tuple[int, Any]] = []
        """Lines with their depth; in place of a `return` a tuple with its value."""
        self.branches = 0
        self.reason = f"{step} returns None"
        self._explore(reading.callable(function), ())
        values = [line[0] for _, line in self.tree if type(line) is tuple]
        forms = [_form_of(step, value) for value in values if value is not None or not self.optional]
        if not forms:
            raise RefusedError(self.reason)
        self.forms = set(map(_settled, forms))
        form = forms[0]
        for other in forms:
            common = _common(form, other, _CASES)
            if common is None:
                raise RefusedError(
                    f"{step} returns {_shown(form)} in one case and {_shown(other)} in another: "
                    "let it always return the same, for instance with float(...)"
                )
            form = common
        self.form = form

    def _explore(self, function: Any, decisions: tuple[bool, ...]) -> None:
        run, depth = _Run(decisions), 1 + sum(decisions)  # the lines of `else` follow those of `if`
        try:
            end: Any = (function(*(_symbols(run, *argument) for argument in self.arguments)),)
        except _UndecidedError as branch:
            self.branches += 1
            if self.branches > BRANCHES:
                raise RefusedError(
                    f"more than {BRANCHES} branches, or a loop whose length depends on a value"
                ) from None
            self.tree += [(depth, line) for line in (*run.lines, f"if {branch}:")]
            for decision in (True, False):
                self._explore(function, (*decisions, decision))
            return
        except RefusedError:
            raise
        except _MISTAKES as error:
            raise RefusedError(cause_text(error)) from error
        except Exception as error:  # noqa: BLE001  the interpreter raises it with its own text
            self.reason = cause_text(error)
            end = "raise ValueError"
        self.tree += [(depth, line) for line in (*run.lines, end)]

    def text(self, parameters: str, before: list[str], form: Form, count: str = "") -> list[str]:
        """Its source: it returns numbers of this form after `count`, or after whether there is a result."""
        lines = [f"def {self.step}({parameters}):", *(f" {line}" for line in before)]
        for depth, line in self.tree:
            if type(line) is tuple:
                there = line[0] is not None
                numbers = _as_tuple(line[0] if there else 0)
                texts = [cast(number, kind) for number, kind in zip(numbers, form.dtypes, strict=True)]
                line = f"return {', '.join([count or str(there), *texts])}"
            lines.append(" " * depth + line)
        return lines


def _symbols(run: _Run, name: str, form: Form) -> Any:
    """A value of this form."""
    symbols = tuple(Symbol(run, kind, f"{name}{k}") for k, kind in enumerate(form.dtypes))
    return symbols[0] if form.scalar else symbols


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if type(value) is tuple else (value,)


def _form_of(step: str, value: Any) -> Form:
    """The form of a value that a function returned."""
    kinds = tuple(
        LITERAL if type(number) is int and abs(number) <= EXACT else kind_of(number)
        for number in _as_tuple(value)
    )
    if not kinds or not set(kinds) <= {*NUMBERS, LITERAL}:
        text = f"({', '.join(kinds)})" if type(value) is tuple else kinds[0]
        raise RefusedError(f"{step} returns {text}, which is no number and no tuple of numbers")
    return Form(type(value) is not tuple, kinds)


def _common(a: Form, b: Form, table: dict[frozenset[str], str]) -> Form | None:
    """The form that represents values of both forms without a difference to Python; None without one."""
    if a.scalar != b.scalar or len(a.dtypes) != len(b.dtypes):
        return None
    pairs = zip(a.dtypes, b.dtypes, strict=True)
    kinds = tuple(p if p == q else table.get(frozenset((p, q)), "") for p, q in pairs)
    return Form(a.scalar, kinds) if all(kinds) else None


def _settled(form: Form) -> Form:
    """The form with integers in place of literals."""
    return Form(form.scalar, tuple("int64" if kind == LITERAL else kind for kind in form.dtypes))


def _shown(form: Form) -> str:
    kinds = ", ".join(_settled(form).dtypes)
    return kinds if form.scalar else f"({kinds})"
