"""Rules for arguments, as metadata of fields: `n: int = field(metadata=whole_number("..."))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from muntin.errors import QueryError, value_text

__all__ = [
    "BETWEEN_0_AND_1",
    "FRACTION",
    "Rule",
    "must",
    "number",
    "validate",
    "whole_number",
    "whole_within",
]


class Rule(NamedTuple):
    """A condition on an argument."""

    words: str
    """What the argument must do: "be a whole number"."""
    test: Callable[[Any], bool]
    cure: str = ""


def must(*rules: Rule) -> dict[str, tuple[Rule, ...]]:
    """The metadata of a field whose values obey the rules; a rule may rely on those before it."""
    return {"must": rules}


def validate(name: str, value: object, rules: tuple[Rule, ...]) -> None:
    """A QueryError with the first rule that the value breaks."""
    for rule in rules:
        if not rule.test(value):
            raise QueryError(f"{name} must {rule.words}: got {value_text(value)}{rule.cure}")


def number(value: object, *kinds: type) -> bool:
    """Whether the value has one of these types; bool, a subclass of int, does not count."""
    return isinstance(value, kinds) and not isinstance(value, bool)


FRACTION = Rule("be a number from 0 to 1", lambda q: number(q, int, float) and 0 <= q <= 1)
BETWEEN_0_AND_1 = Rule("be a number between 0 and 1", lambda x: number(x, int, float) and 0 < x < 1)


def whole_number(meaning: str, most: int = 2**31 - 1) -> dict[str, tuple[Rule, ...]]:
    """A positive integer, not above `most`, which is beyond all use."""
    return must(
        Rule(f"be a whole number from 1 on ({meaning})", lambda n: number(n, int) and n >= 1),
        Rule(f"not exceed {most:,} ({meaning})", lambda n: n <= most, "; choose fewer"),
    )


def whole_within(low: int, high: int, words: str) -> dict[str, tuple[Rule, ...]]:
    """An integer from `low` to `high`, called `words`."""
    return must(Rule(f"be a whole number from {words}", lambda n: number(n, int) and low <= n <= high))
