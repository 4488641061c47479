"""The laws of lift, combine, lower, identity and invert, on single Python values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muntin.aggregates.base import Aggregate
from muntin.aggregates.partials.functions import copied, unchanged
from muntin.aggregates.udaf import UserDefined
from muntin.errors import UserCodeError, cause_text
from muntin.testing.laws.cases import Case, Tuple
from muntin.testing.rows import same_value

__all__ = ["Algebra", "Broken", "Outcome"]

Side = tuple[str, Callable[[], Any]]
"""One side of a law: its text, and the function that computes it."""


class Broken(Exception):  # noqa: N818  not an error of the program: caught where it is reported
    """A law that does not hold: its name, and the results of its two sides."""

    def __init__(self, law: str, *sides: str) -> None:
        super().__init__(law)
        self.law = law
        self.sides = sides
        self.case: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result, or the error instead of one."""

    value: Any = None
    error: Exception | None = None

    def same(self, other: Outcome, tolerance: float) -> bool:
        """Whether the two are the same, up to rounding; of errors, whether they are of one kind."""
        return self._kind is other._kind and same_value(self.value, other.value, tolerance)

    @property
    def _kind(self) -> type[Any]:
        error = self.error
        return type(error.__cause__ if isinstance(error, UserCodeError) and error.__cause__ else error)

    def __str__(self) -> str:
        return f"{self.value!r:.200}" if self.error is None else f"{type(self.error).__name__}: {self.error}"


class Algebra:
    """The functions of an aggregate over example values, each call watched for changes in place.

    Of a user-defined aggregate these are the user's own functions, and a partial is of at least one
    tuple. The partials of others carry (time, arrival) where it matters, so all of them commute.
    """

    def __init__(
        self, aggregate: Aggregate, rows: Sequence[tuple[Any, ...]], invertible: bool, tolerance: float
    ) -> None:
        self.aggregate = aggregate
        self.rows = rows
        self.tolerance = tolerance
        self.own = isinstance(aggregate, UserDefined)
        self.functions: Any = aggregate.functions if isinstance(aggregate, UserDefined) else aggregate
        self.ignore_nulls = isinstance(aggregate, UserDefined) and aggregate.ignore_nulls
        self.commutes = aggregate.commutative or not self.own
        self.has_identity = not self.own or self.functions.identity is not None
        self.invertible = invertible

    # The functions. -----------------------------------------------------------------------------------

    def lift(self, one: Tuple) -> Any:
        """The partial of one tuple."""
        values = self.rows[one.value]
        return self.functions.lift(*values) if self.own else self.aggregate.lift(*values, at=one.at)

    def identity(self) -> Any:
        """The partial of no tuple."""
        return self.functions.identity if self.own else self.aggregate.identity()

    def combine(self, p: Any, q: Any) -> Any:
        """Both partials as one."""
        return self._watched("combine", p, q)

    def invert(self, whole: Any, part: Any) -> Any:
        """What remains."""
        return self._watched("invert", whole, part)

    def lower(self, p: Any) -> Outcome:
        """The result."""
        if self.own and self.functions.lower is None:
            return Outcome(p)
        try:
            return Outcome(self._watched("lower", p))
        except Broken:
            raise
        except Exception as error:  # noqa: BLE001  both sides of a law may fail in the same manner
            return Outcome(error=error)

    def _watched(self, step: str, *args: Any) -> Any:
        before = [copied(arg) for arg in args]
        result = getattr(self.functions, step)(*args)
        if not all(map(unchanged, before, args)):
            called = f"{step}({', '.join(f'{arg!r:.80}' for arg in before)})"
            then = ", ".join(f"{arg!r:.80}" for arg in args)
            raise Broken(f"{step} changes nothing", f"before: {called}", f"after:  {step}({then})")
        return result

    def fold(self, tuples: Sequence[Tuple]) -> list[Any]:
        """The partial of these tuples, from left to right; none if none of them counts."""
        counted = [one for one in tuples if not (self.ignore_nulls and None in self.rows[one.value])]
        partial_aggregates = [self.lift(one) for one in counted]
        if not self.own:
            partial_aggregates = [self.identity(), *partial_aggregates]
        return [functools.reduce(self.combine, partial_aggregates)] if partial_aggregates else []

    def result(self, case: Case) -> Outcome:
        """The result over all tuples of a case, in the order of their places."""
        outcomes = self.fold(sorted((one for part in case for one in part), key=lambda one: one.at))
        return self.lower(outcomes[0]) if outcomes else Outcome()

    def commutes_on(self, case: Case) -> bool:
        """Whether the order of the first two slices makes no difference here."""
        p, q = self.fold(case[0]), self.fold(case[1])
        if not p or not q:
            return True
        one, other = self.lower(self.combine(p[0], q[0])), self.lower(self.combine(q[0], p[0]))
        return one.same(other, self.tolerance)

    # The laws. ----------------------------------------------------------------------------------------

    def check(self, case: Case) -> Iterator[str]:
        """Check all laws on a case and yield their names; raises Broken at the first that does not hold."""
        partial_aggregates = [p for part in case for p in self.fold(part)]
        for law, one, other in self._laws(partial_aggregates):
            self._compare(law, one, other)
            yield law

    def _laws(self, partial_aggregates: list[Any]) -> Iterator[tuple[str, Side, Side]]:
        combine, invert = self.combine, self.invert
        if len(partial_aggregates) == 3:
            p, q, r = partial_aggregates
            left = "combine(combine(p, q), r)", lambda: combine(combine(p, q), r)
            yield "associativity", left, ("combine(p, combine(q, r))", lambda: combine(p, combine(q, r)))
        for p in partial_aggregates if self.has_identity else []:
            yield from self._laws_of_identity(p)
        if len(partial_aggregates) < 2:
            return
        p, q = partial_aggregates[:2]
        both: Side = "combine(p, q)", lambda: combine(p, q)
        if self.commutes:
            yield "commutativity", both, ("combine(q, p)", lambda: combine(q, p))
        if self.invertible:
            text = "invert(combine(p, q), q)"
            yield "invertibility", (text, lambda: invert(combine(p, q), q)), ("p", lambda: p)
            again = f"combine({text}, q)", lambda: combine(invert(combine(p, q), q), q)
            yield "invertibility", again, both

    def _laws_of_identity(self, p: Any) -> Iterator[tuple[str, Side, Side]]:
        same: Side = "p", lambda: p
        yield "identity", ("combine(identity, p)", lambda: self.combine(self.identity(), p)), same
        yield "identity", ("combine(p, identity)", lambda: self.combine(p, self.identity())), same

    def _compare(self, law: str, one: Side, other: Side) -> None:
        outcomes = [self._result(law, *side) for side in (one, other)]
        if not outcomes[0].same(outcomes[1], self.tolerance):
            width = max(len(one[0]), len(other[0]))
            sides = zip((one, other), outcomes, strict=True)
            raise Broken(law, *(f"{text:<{width}}  gives {outcome}" for (text, _), outcome in sides))

    def _result(self, law: str, text: str, side: Callable[[], Any]) -> Outcome:
        try:
            partial = side()
        except Broken:
            raise
        except Exception as error:
            raise Broken(law, f"{text} fails: {cause_text(error)}") from error
        return self.lower(partial)
