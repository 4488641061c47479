"""`check`: all laws of an aggregate, and the smallest counterexample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from muntin.aggregates.base import Aggregate
from muntin.aggregates.udaf import UserDefined
from muntin.errors import MuntinError, QueryError, cause_text
from muntin.testing.laws.algebra import Algebra, Broken
from muntin.testing.laws.cases import Case, cases, smallest
from muntin.testing.laws.columns import Columns
from muntin.testing.laws.values import Row, default_types, given_rows, rows_of_types, types_of

__all__ = ["LawError", "Report", "check"]


class LawError(MuntinError, AssertionError):
    """An aggregate breaks a law; the message shows the smallest counterexample that was found."""

    law: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The checks of an aggregate that obeys its laws; print it."""

    aggregate: str
    types: tuple[tuple[pa.DataType, ...], ...]
    laws: dict[str, int]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = "; ".join(", ".join(map(str, kinds)) or "no column" for kinds in self.types)
        lines = [f"{self.aggregate} obeys its laws, over {shown}"]
        lines += [f"  {law}: {count} examples" for law, count in self.laws.items()]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def check(
    aggregate: Aggregate,
    values: Any = None,
    *,
    types: Sequence[pa.DataType] | None = None,
    examples: int = 200,
    tolerance: float = 1e-9,
) -> Report:
    """Check the laws of an aggregate on many small streams; raises LawError with a counterexample.

    Args:
        aggregate: one of your own, or any other.
        values: a list of example values (rows of values, for several columns), the simplest first,
            or a hypothesis strategy of them. Left out, a few values of every type that it takes.
        types: the Arrow types of the columns. Left out, those of the values.
        examples: the approximate number of streams.
        tolerance: the relative difference of floats that count as equal.

    >>> from muntin import aggregates as a
    >>> largest = a.aggregate("x", lift=lambda v: v, combine=max, identity=0, name="largest")
    >>> check(largest, values=[1, -1])
    Traceback (most recent call last):
        ...
    muntin.testing.laws.checking.LawError: identity does not hold for aggregate(x, name='largest')
      combine(identity, p)  gives 0
      p                     gives -1
    where
      p = lift(-1)
    """
    if not isinstance(aggregate, Aggregate):
        raise QueryError(f'laws are of aggregates: got {aggregate!r}; write .over("column") behind a class')
    aggregate = replace(aggregate, filter=None)
    if values is not None:
        rows = given_rows(values, len(aggregate.inputs))
        kinds = [tuple(types) if types is not None else types_of(rows, len(aggregate.inputs))]
        pools = [[*rows, (None,) * len(aggregate.inputs)] if aggregate.inputs else rows]
    else:
        kinds = [tuple(types)] if types is not None else default_types(aggregate)
        pools = [rows_of_types(kind) for kind in kinds]
    if not kinds:
        raise QueryError(f"no type of column makes sense to {aggregate}: give values=[...]")
    laws: Counter[str] = Counter()
    notes: dict[str, None] = {}
    for kind, pool in zip(kinds, pools, strict=True):
        _Checking(aggregate, kind, pool, tolerance, laws, notes).run(examples)
    return Report(str(aggregate), tuple(kinds), dict(laws), tuple(notes))


class _Checking:
    """The checks of one aggregate over columns of certain types."""

    def __init__(
        self,
        aggregate: Aggregate,
        types: tuple[pa.DataType, ...],
        rows: list[Row],
        tolerance: float,
        laws: Counter[str],
        notes: dict[str, None],
    ) -> None:
        self.aggregate = aggregate
        self.laws = laws
        self.notes = notes
        self.rows = self._lifted(_as_columns_hold_them(rows, types))
        self.columns = Columns(aggregate, types, self.rows, tolerance)
        self.algebra = Algebra(
            aggregate, self.rows, aggregate.invertible and self.columns.bound.invertible, tolerance
        )

    def _lifted(self, rows: list[Row]) -> list[Row]:
        """The values that the user's lift takes; the others are noted."""
        if not isinstance(self.aggregate, UserDefined):
            return rows
        accepted: list[Row] = []
        for row in rows:
            if self.aggregate.ignore_nulls and None in row:
                accepted.append(row)
                continue
            try:
                self.aggregate.functions.lift(*row)
            except Exception as error:  # noqa: BLE001  its author decides which values it takes
                self.notes[f"lift({_shown(row)}) fails and is left out: {cause_text(error)}"] = None
            else:
                accepted.append(row)
        if not any(None not in row for row in accepted):
            raise QueryError(
                f"lift fails for every value: {next(iter(self.notes), '')}; give others in values="
            )
        return accepted

    def run(self, examples: int) -> None:
        """Check all laws on about `examples` cases."""
        tried_cases = list(cases(len(self.rows), examples, in_order=not self.algebra.commutes))
        for case in tried_cases:
            try:
                self._check_functions(case)
            except Broken as broken:
                self._report(case, broken, self._check_functions)
        try:
            self.columns.check(tried_cases, self.algebra)
        except Broken as broken:
            self._report(tried_cases[broken.case or 0], broken, self._check_columns)
        for law, _ in self.columns.forms:
            self.laws[law] += len(tried_cases)
        if not self.algebra.commutes and all(map(self.algebra.commutes_on, tried_cases)):
            self.notes[
                "combine commuted in every example; if it always does, leave out commutative=False"
            ] = None

    def _check_functions(self, case: Case) -> None:
        for law in self.algebra.check(case):
            self.laws[law] += 1

    def _check_columns(self, case: Case) -> None:
        self.columns.check([case], self.algebra)

    def _report(self, case: Case, broken: Broken, check_one: Callable[[Case], None]) -> None:
        """Raise the LawError, with the smallest case that breaks the same law."""
        last = broken

        def breaks(simpler: Case) -> bool:
            nonlocal last
            try:
                check_one(simpler)
            except Broken as error:
                if error.law == broken.law:
                    last = error
                    return True
            return False

        case = smallest(case, breaks)
        lines = [f"{broken.law} does not hold for {self.aggregate}", *(f"  {side}" for side in last.sides)]
        lines += ["where", *(f"  {line}" for line in self._described(case))]
        error = LawError("\n".join(lines))
        error.law = broken.law
        raise error from last.__cause__

    def _described(self, case: Case) -> list[str]:
        """The definitions of p, q and r."""
        names = iter("pqr")
        lines = []
        for part in case:
            if part or not self.algebra.own:
                lifts = [f"lift({_shown(self.rows[one.value])})" + self._at(one.at) for one in part]
                lines.append(f"{next(names)} = {' then '.join(lifts) or 'identity'}")
        return lines

    def _at(self, at: tuple[int, int]) -> str:
        return "" if self.algebra.own and self.algebra.commutes else f" at {at}"


def _as_columns_hold_them(rows: list[Row], types: tuple[pa.DataType, ...]) -> list[Row]:
    """The rows as Python gets them back from columns of these types."""
    if not types:
        return rows
    columns = [pa.array([row[k] for row in rows], type_).to_pylist() for k, type_ in enumerate(types)]
    return list(zip(*columns, strict=True))


def _shown(row: Row) -> str:
    return ", ".join(f"{value!r:.80}" for value in row)
