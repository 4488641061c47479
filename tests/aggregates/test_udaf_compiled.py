"""Compiled aggregates of users: the results of the interpreter, bit by bit, or no compilation at all."""

import builtins
import math
import operator
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates.compiling import program
from muntin.aggregates.compiling.reading import Reading
from muntin.aggregates.compiling.symbols import RefusedError
from muntin.aggregates.compiling.tracing import Code, trace
from muntin.aggregates.partials.functions import Functions
from muntin.aggregates.udaf import UserDefined
from muntin.errors import InterpretedWarning, QueryError, UserCodeError

sys.path.insert(0, str(Path(__file__).parent))
from bitwise import bits  # beside this file, not installed


def welford(p: Any, q: Any) -> Any:
    n = p[0] + q[0]
    delta = q[1] - p[1]
    return n, p[1] + delta * q[0] / n, p[2] + q[2] + delta * delta * p[0] * q[0] / n


def hashed(p: Any, q: Any) -> Any:
    return (p[0] * q[1] + q[0]) % 1_000_003, p[1] * q[1] % 1_000_003


AGGREGATES: dict[str, dict[str, Any]] = {
    "squares": {
        "columns": ("i",), "lift": lambda v: v * v, "combine": operator.add, "invert": operator.sub,
        "lower": lambda p: p / 3,
    },
    "variance": {
        "columns": ("f",), "lift": lambda v: (1, v, 0), "combine": welford,
        "lower": lambda p: None if p[0] < 2 else p[2] / (p[0] - 1),
    },
    "hash": {
        "columns": ("i", "b"), "lift": lambda i, b: (i % 1009 if b else -i, 31), "combine": hashed,
        "lower": lambda p: p[0], "commutative": False,
    },
    "any": {"columns": ("f",), "lift": lambda v: v > 1, "combine": operator.or_},
    "harmonic": {
        "columns": ("i", "f"), "lift": lambda i, f: (f, f / i), "type": pa.float32(),
        "combine": lambda p, q: (p[0] + q[0], p[1] + q[1]), "lower": lambda p: math.sqrt(p[0] / p[1]),
    },
    "tuples": {"columns": (), "lift": lambda: 1, "combine": lambda p, q: p + q},
}  # fmt: skip


def made(name: str, compile: bool | None) -> UserDefined:
    arguments = dict(AGGREGATES[name])
    return a.aggregate(*arguments.pop("columns"), **arguments, compile=compile)


_ints = st.integers(-3, 9) | st.sampled_from([2**31, 2**53 + 1, 2**62, -(2**63), 2**63 - 1])
_floats = st.sampled_from([0.0, -0.0, math.nan, math.inf, 1e308, -1e308, 0.1]) | st.floats(-5, 5)
_rows = st.fixed_dictionaries(
    {
        "t": st.integers(0, 40),
        "k": st.sampled_from("ab"),
        "i": st.none() | _ints,
        "f": st.none() | _floats,
        "b": st.none() | st.booleans(),
    }
)
SCHEMA = pa.schema(
    [("t", pa.int64()), ("k", pa.string()), ("i", pa.int64()), ("f", pa.float64()), ("b", pa.bool_())]
)
WINDOWS = {
    "plain": {"ten": w.tumbling(10), "slide": w.sliding(12, every=3)},
    "kept": {"three": w.count(3), "visit": w.session(4)},
}


def outcome(step: Callable[..., pa.Table], *args: Any) -> Any:
    try:
        return [{name: bits(value) for name, value in row.items()} for row in step(*args).to_pylist()]
    except UserCodeError as error:
        return str(error), type(error.__cause__)


@pytest.mark.parametrize("names", [["squares", "variance", "hash", "any", "tuples"], ["harmonic"]])
@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_compiled_is_interpreted(names: list[str], data: st.DataObject) -> None:
    in_order = data.draw(st.booleans())
    windows = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    queries = [
        mt.windows(**windows)
        .aggregate(**{name: made(name, compile) for name in names})
        .by("k")
        .on("t", allowed_lateness=5)
        for compile in (True, False)
    ]
    operators = [query.operator(in_order=in_order) for query in queries]
    rows = data.draw(st.lists(_rows, max_size=25))
    if in_order:
        rows.sort(key=lambda row: row["t"])
    seen = -(10**6)
    while rows:
        n = data.draw(st.integers(1, len(rows)))
        batch = pa.RecordBatch.from_pylist(rows[:n], SCHEMA)
        rows = rows[n:]
        seen = max(seen, max(batch.column("t").to_pylist()))
        one, other = (outcome(op.process, batch) for op in operators)
        assert one == other
        if data.draw(st.booleans()) and not in_order:
            one, other = (outcome(op.advance, seen - 8) for op in operators)
            assert one == other
        if data.draw(st.integers(0, 3)) == 0:
            operators = [
                mt.Operator.restore(op.snapshot(), query)
                for op, query in zip(operators, queries, strict=True)
            ]
    one, other = (outcome(op.finish) for op in operators)
    assert one == other
    assert all(how.startswith("compiled") for how in operators[0].stats().aggregates.values())


def numbers(n: int, **columns: Any) -> pa.Table:
    return pa.table({"t": np.arange(n), **{name: np.resize(values, n) for name, values in columns.items()}})


def run(aggregate: UserDefined, table: Any) -> list[Any]:
    return mt.windows(x=w.tumbling(10)).aggregate(r=aggregate).on("t").run(table).column("r").to_pylist()


def test_from_the_interpreter_to_compiled_code_in_the_middle_of_a_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "WORTHWHILE", 30)
    for name in ("squares", "hash"):
        op = mt.windows(x=w.tumbling(1000)).aggregate(r=made(name, None)).on("t").operator()
        table = numbers(100, i=[3, 2**40, -5], b=[True, False, False])
        how = []
        for start in range(0, 100, 10):
            op.process(table.slice(start, 10))
            how.append(op.stats().aggregates["r"])
        assert how[0] == "interpreted for the first 30 tuples"
        assert how[-1].startswith("compiled")
        want = mt.windows(x=w.tumbling(1000)).aggregate(r=made(name, False)).on("t").run(table)
        assert bits(op.finish().column("r").to_pylist()[0]) == bits(want.column("r").to_pylist()[0])


def test_integers_go_beyond_64_bits() -> None:
    total = a.aggregate(
        "i", lift=lambda v: v, combine=lambda p, q: p + q, lower=lambda p: float(p), compile=True
    )
    op = mt.windows(x=w.tumbling(100)).aggregate(r=total).on("t").operator()
    op.process(numbers(20, i=[2**63 - 1]))
    op.process(pa.table({"t": [150, 151], "i": [1, 2]}))
    assert op.stats().aggregates["r"].startswith("compiled; interpreted 1 times, last for OverflowError")
    assert op.finish().column("r").to_pylist() == [20.0 * 2**63, 3.0]


def test_what_a_function_raises_is_told_by_the_interpreter() -> None:
    def positive(v: float) -> float:
        if v <= 0:
            raise ValueError("not positive")
        return v

    aggregate = a.aggregate("f", lift=positive, combine=max, name="largest", compile=True)
    with pytest.raises(
        UserCodeError, match=r'"largest": lift\(-1.0\) failed: ValueError: not positive \(at t=2\)'
    ):
        run(aggregate, numbers(3, f=[2.0, 1.0, -1.0]))


FACTOR = 2


def test_values_that_functions_read_are_not_frozen() -> None:
    global FACTOR
    aggregate = a.aggregate("i", lift=lambda v: v * FACTOR, combine=operator.add, compile=True)
    op = mt.windows(x=w.tumbling(100)).aggregate(r=aggregate).on("t").operator()
    op.process(numbers(3, i=[1]))
    try:
        FACTOR = 10
        op.process(numbers(3, i=[1]))
    finally:
        FACTOR = 2
    assert op.stats().aggregates["r"] == (
        "interpreted: a value that its functions read has changed since they were compiled"
    )
    assert op.finish().column("r").to_pylist() == [36]


def scaled(v: int) -> int:
    return v * FACTOR


def test_functions_that_functions_call_are_not_frozen_either() -> None:
    global FACTOR
    aggregate = a.aggregate("i", lift=lambda v: scaled(v), combine=operator.add, compile=True)
    assert run(aggregate, numbers(3, i=[1])) == [6]
    try:
        FACTOR = 3
        assert run(aggregate, numbers(3, i=[1])) == [9]
    finally:
        FACTOR = 2


def test_a_function_is_its_operations_and_the_values_it_reads() -> None:
    def code(lift: Any) -> Code:
        return trace(Functions("mine", lift, operator.add), ("int64",), Reading())

    def scaled(factor: Any) -> Any:
        return lambda v: v * factor

    assert code(scaled(2)) == code(scaled(2)) != code(scaled(3))
    assert code(scaled(0.0)) != code(scaled(-0.0))
    assert code(scaled(2)) != code(scaled(2.0))
    with pytest.raises(RefusedError, match="it uses factor, a list"):
        code(scaled([1]))
    assert code(lambda v: scaled(1)(v)) == code(scaled(1))

    def endless(v: Any) -> Any:
        return endless(v)

    with pytest.raises(RefusedError, match="a function that calls itself"):
        code(endless)


def test_functions_from_a_prompt_and_a_notebook() -> None:
    code = """
import muntin as mt
from muntin import aggregates as a, windows as w
limit = 3
def lift(v):
    return (v, 1) if v > limit else (0.0, 0)
mean = a.aggregate("v", lift=lift, combine=lambda p, q: (p[0] + q[0], p[1] + q[1]), compile=True,
                   lower=lambda p: p[0] / p[1])
query = mt.windows(x=w.tumbling(10)).aggregate(m=mean).on("t")
print(query.run({"t": [1, 2, 3], "v": [1.0, 4.0, 8.0]})["m"][0])
"""
    done = subprocess.run([sys.executable], input=code, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("6.0\n", "")
    namespace: dict[str, Any] = {}
    exec(compile("lift = lambda v: v + 1", "<ipython-input-3>", "exec"), namespace)  # noqa: S102  a cell
    aggregate = a.aggregate("i", lift=namespace["lift"], combine=max, compile=True)
    assert run(aggregate, numbers(3, i=[1])) == [2]


class Above(a.UserAggregate):
    """How often values are above a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def lift(self, v: float) -> int:
        return 1 if v > self.limit else 0

    def combine(self, p: int, q: int) -> int:
        return p + q


def test_methods_are_compiled_with_what_they_read_of_their_object() -> None:
    above = Above(2)
    aggregate = above.over("f", compile=True)
    assert run(aggregate, numbers(10, f=[1.0, 2.0, 3.0])) == [3]
    above.limit = 1
    assert run(aggregate, numbers(10, f=[1.0, 2.0, 3.0])) == [6]
    assert run(Above(0).over("f", compile=True, filter="f < 3"), numbers(10, f=[1.0, 2.0, 3.0])) == [7]


def factorial(n: int) -> int:
    return 1 if n < 2 else n * factorial(n - 1)


def guarded(v: int) -> int:
    try:
        return 7 // v
    except ZeroDivisionError:
        return 0


def remembering(v: int) -> int:
    global FACTOR
    FACTOR = 2
    return v


def importing(v: int) -> Any:
    import random

    return v + random.random()


def matching(v: Any) -> int:
    match v:
        case int():
            return 1
        case _:
            return 2


def collatz(v: int) -> int:
    steps = 0
    while v > 1:
        v, steps = v // 2 if v % 2 == 0 else 3 * v + 1, steps + 1
    return steps


def added(p: Any, q: Any) -> Any:
    return tuple(x + y for x, y in zip(p, q, strict=True))


@pytest.mark.parametrize(
    ("kwargs", "reason"),
    [
        ({"lift": str, "combine": max}, "str is not a function that can be compiled"),
        ({"lift": lambda v: [v], "combine": operator.add, "lower": len}, "lift returns list, which is no"),
        ({"lift": lambda v: np.sqrt(v), "combine": max}, "it uses np, a module, which is not compiled"),
        ({"lift": lambda v: v, "combine": lambda p, q: p if p > q else 0.5}, "returns int64 in one case"),
        ({"lift": lambda v: v, "combine": lambda p, q: p / q}, "lift returns int64 where combine returns"),
        ({"lift": lambda v: (v, 1), "combine": lambda p, q: p[0]}, r"lift returns .* where combine returns"),
        ({"lift": lambda v, by=2: v, "combine": max}, "arguments with defaults"),
        ({"lift": lambda v: v.bit_length(), "combine": max}, "the attribute bit_length is not compiled"),
        ({"lift": lambda v: builtins.max(v, 1.5), "combine": max}, "it uses builtins, a module"),
        ({"lift": lambda v: max(v, 1.5), "combine": max}, "lift returns float64 in one case and int64"),
        ({"lift": lambda v: (v, (v, v)), "combine": lambda p, q: p}, "which is no number and no tuple"),
        ({"lift": lambda v: hash(v), "combine": max}, "it uses hash"),
        ({"lift": lambda v: v**v, "combine": max}, r"pow\(int64, int64\) is not compiled"),
        ({"lift": lambda v: v | 1.5, "combine": max}, r"or_\(int64, float64\) is not compiled"),
        ({"lift": lambda v: factorial(v), "combine": max}, "a function that calls itself"),
        ({"lift": lambda v: 1 if v is True else 2, "combine": max}, "the operator is is not compiled"),
        ({"lift": lambda v: v.__class__ == v, "combine": max}, "the attribute __class__ is not compiled"),
        ({"lift": lambda v: sum((v, 1)), "combine": max}, "it uses sum"),
        ({"lift": lambda v: v in {1, 2}, "combine": max}, "a value in a set"),
        ({"lift": lambda v: (1, 2)[v], "combine": max}, "a place in a tuple"),
        ({"lift": lambda v: nowhere + v, "combine": max}, "it uses nowhere, which has no value"),  # noqa: F821
        ({"lift": lambda v: round(v, 2), "combine": max}, "round to digits is not compiled"),
        ({"lift": lambda v: pow(v, 2, 7), "combine": max}, "pow with three arguments is not compiled"),
        ({"lift": lambda v: v + 2**64, "combine": max}, "the integer 18446744073709551616 is too large"),
        ({"lift": lambda v: int(f"{v}"), "combine": max}, "a number as text is not compiled"),
        ({"lift": guarded, "combine": max}, "try, or with, is not compiled"),
        ({"lift": remembering, "combine": max}, "a change of a global variable is not compiled"),
        ({"lift": importing, "combine": max}, "an import inside of a function is not compiled"),
        ({"lift": matching, "combine": max}, "match is not compiled"),
        ({"lift": collatz, "combine": max}, "a loop whose length depends on a value"),
        ({"lift": lambda v: (v > 1, 2), "combine": added, "lower": str}, "str is not a function"),
    ],
)  # fmt: skip
def test_what_is_not_compiled_and_why(kwargs: Any, reason: str) -> None:
    with pytest.raises(QueryError, match=rf'"mine" cannot be compiled: .*{reason}.*leave out compile=True'):
        a.aggregate("i", name="mine", type=pa.int64(), compile=True, **kwargs).bind((pa.int64(),))


def clamped(v: Any) -> Any:
    if v != v:
        raise ValueError(f"no number: {v}")
    low, high = -2, 2
    return low if v < low else high if v > high else int(v)


def horner(v: Any) -> Any:
    total = 0.0
    for factor in (1, -2.5, 3):
        total = total * v + factor
    for k in range(3):
        total += k
    return total


def either(v: Any) -> Any:
    return (not v or v > 3) and v < 9, v == 2 or v in (3, 4.5)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"lift": clamped, "combine": operator.add},
        {"lift": horner, "combine": lambda p, q: max(p, q) - min(p, 0.5)},
        {"lift": lambda v: (v, 1), "combine": max, "lower": lambda p: p[0]},
        {"lift": lambda v: (v, 1.0, v > 2), "combine": added, "lower": lambda p: p[-1]},
        {"lift": either, "combine": lambda p, q: (p[0] and q[0], any([p[1], q[1]])), "lower": lambda p: p[1]},
        {"lift": lambda v: sorted([v, 2.0, 2 * v])[1], "combine": lambda p, q: p if p == q else p + q},
        {"lift": lambda v: divmod(v, 3), "combine": max, "lower": lambda p: p[0] if p[1] else None},
        {"lift": lambda v: math.nan if v == 3 else v * 1.0, "combine": min},
        {"lift": lambda v: (math.nan if v == 3 else v * 1.0, v), "combine": max, "lower": lambda p: p[1]},
    ],
)  # fmt: skip
def test_what_is_compiled_is_interpreted(kwargs: Any) -> None:
    values = [3, -1, 0, 2, 3, 5, 4.5, -0.0, 8, math.nan, math.nan, 1e300, 2, 3, math.inf]
    compiled = 0
    for column in ([v for v in values if isinstance(v, int)], list(map(float, values))):
        outcomes = []
        for compile in (True, False):
            try:
                query = mt.windows(x=w.sliding(3, every=1)).aggregate(
                    r=a.aggregate("v", name="mine", compile=compile, **kwargs)
                )
                outcomes.append(outcome(query.on("t").run, numbers(40, v=column)))
                compiled += compile
            except QueryError:
                break
        assert len(outcomes) < 2 or outcomes[0] == outcomes[1]
    assert compiled > 0


@pytest.mark.parametrize("type_", [pa.string(), pa.uint64(), pa.decimal128(5, 2), pa.timestamp("us")])
def test_columns_that_are_not_compiled(type_: pa.DataType) -> None:
    aggregate = a.aggregate("x", lift=lambda v: v, combine=max, compile=True)
    with pytest.raises(QueryError, match=re.escape(f'"x" is {type_}, and only')):
        aggregate.bind((type_,))


def test_a_warning_says_once_why_numbers_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "WORTHWHILE", 5)
    numeric = a.aggregate("i", lift=lambda v: int(str(v)), combine=max, name="digits")
    with pytest.warns(InterpretedWarning, match='"digits" runs in the interpreter: it uses str, a type'):
        assert run(numeric, numbers(10, i=[1, 5])) == [5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(numeric, numbers(10, i=[1]))  # not again
        run(
            a.aggregate("i", lift=lambda v: [v], combine=operator.add, lower=len), numbers(10, i=[1])
        )  # no number
        run(
            a.aggregate("i", lift=lambda v: int(f"{v}"), combine=max, compile=False), numbers(10, i=[1])
        )  # meant


def test_lower_may_stay_in_the_interpreter() -> None:
    text = a.aggregate("i", lift=lambda v: v, combine=operator.add, lower=lambda p: f"<{p}>", compile=True)
    assert run(text, numbers(10, i=[1])) == ["<10>"]
    explained = (
        mt.windows(x=w.tumbling(10)).aggregate(r=text).on("t").explain(schema={"i": "int64"}, verbose=True)
    )
    assert "compiled; lower interpreted: it uses format" in str(explained) or "lower interpreted" in str(
        explained
    )


def test_a_function_of_numba_is_the_python_function_behind_it() -> None:
    twice = numba.njit(lambda v: v * 2)
    aggregate = a.aggregate("i", lift=twice, combine=max, lower=float, compile=False)
    assert run(aggregate, {"t": [1], "i": [2**62]}) == [float(2**63)]


@pytest.mark.parametrize("beyond", [0, 2**62])
def test_the_state_goes_on_when_another_column_gets_its_type(beyond: int) -> None:
    total = a.aggregate("i", lift=lambda v: v, combine=operator.add, lower=lambda p: p / 2, compile=True)
    op = mt.windows(x=w.tumbling(100)).aggregate(r=total, first=a.min("s")).on("t").operator()
    op.process([{"t": t, "i": beyond + t, "s": None} for t in (1, 2)])
    op.process([{"t": 3, "i": 4, "s": "b"}])
    assert op.finish().to_arrow().select(["r", "first"]).to_pylist() == [
        {"r": (2 * beyond + 7) / 2, "first": "b"}
    ]
