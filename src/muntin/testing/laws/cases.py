"""Small streams to check the laws on, and the smallest one that breaks a law."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muntin.aggregates.base import Order

__all__ = ["Case", "Tuple", "cases", "smallest"]


@dataclass(frozen=True, slots=True)
class Tuple:
    """The number of its values among the examples, and its place in the stream."""

    value: int
    at: Order


Case = tuple[tuple[Tuple, ...], tuple[Tuple, ...], tuple[Tuple, ...]]
"""The tuples of three slices."""


def cases(examples: int, count: int, in_order: bool) -> Iterator[Case]:
    """About `count` cases over a number of example values: all small ones, then random larger ones.

    With `in_order` all tuples of a slice are before those of the next one.
    """
    few = max(2, round((count / 2) ** (1 / 3)))
    for values in itertools.product(range(min(few, examples)), repeat=3):
        first, second, third = (Tuple(value, (i, i)) for i, value in enumerate(values))
        yield (first,), (second,), (third,)
    rng = random.Random(0)  # the same cases in each run
    for _ in range(count // 2):
        sizes = [rng.choice((0, 1, 1, 2, 3)) for _ in range(3)]
        seqs = rng.sample(range(20), sum(sizes))
        places = [(rng.choice((-2, 0, 0, 1, 3)), seq) for seq in seqs]
        if in_order:
            places.sort()
        tuples = iter([Tuple(rng.randrange(examples), place) for place in places])
        p, q, r = (tuple(itertools.islice(tuples, size)) for size in sizes)
        yield p, q, r


def smallest(case: Case, breaks: Callable[[Case], bool]) -> Case:
    """A smaller case that still breaks the law: fewer tuples, simpler values and times."""
    while True:
        for simpler in _simpler(case):
            if breaks(simpler):
                case = simpler
                break
        else:
            return case


def _simpler(case: Case) -> Iterator[Case]:
    for s, k in _places(case):
        yield _replaced(case, s, (*case[s][:k], *case[s][k + 1 :]))
    for s, k in _places(case):
        for value in range(case[s][k].value):
            yield _replaced(case, s, _with(case[s], k, Tuple(value, case[s][k].at)))
    ordered = sorted(one.at for part in case for one in part)
    plain = {at: (i, i) for i, at in enumerate(ordered)}
    if any(at != place for at, place in plain.items()):
        p, q, r = (tuple(Tuple(one.value, plain[one.at]) for one in part) for part in case)
        yield p, q, r


def _places(case: Case) -> list[tuple[int, int]]:
    return [(s, k) for s, part in enumerate(case) for k in range(len(part))]


def _with(part: Sequence[Any], k: int, one: Tuple) -> tuple[Any, ...]:
    return (*part[:k], one, *part[k + 1 :])


def _replaced(case: Case, s: int, part: tuple[Any, ...]) -> Case:
    p, q, r = (part if i == s else old for i, old in enumerate(case))
    return p, q, r
