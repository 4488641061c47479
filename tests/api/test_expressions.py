"""The small expression language, and Arrow expressions as its texts."""

from __future__ import annotations

import datetime as dt
import math
import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import DataError, QueryError
from muntin.expressions import Expr, as_expr, evaluate, parse, types

BATCH = pa.record_batch(
    {
        "a": [7, -7, None, 4],
        "b": [2.5, -2.0, 1.0, 0.5],
        "s": ["x", "Yé", None, "z"],
        "flag": [True, False, None, True],
        "odd name": [1, 2, 3, 4],
    }
)


def value_of(text: str) -> list[object]:
    result: list[object] = evaluate([parse(text)], BATCH)[0].to_pylist()
    return result


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a", [7, -7, None, 4]),
        ("a + 1", [8, -6, None, 5]),
        ("a - 1 * 2", [5, -9, None, 2]),
        ("a / 2", [3.5, -3.5, None, 2.0]),
        ("divide(a, 2)", [3, -3, None, 2]),
        ("a // 2", [3, -4, None, 2]),
        ("a % 3", [1, 2, None, 1]),
        ("b // 0.5", [5.0, -4.0, 2.0, 1.0]),
        ("-a", [-7, 7, None, -4]),
        ("abs(a)", [7, 7, None, 4]),
        ("round(b)", [2.0, -2.0, 1.0, 0.0]),
        ("round(b / 3, 1)", [0.8, -0.7, 0.3, 0.2]),
        ("floor(b)", [2.0, -2.0, 1.0, 0.0]),
        ("ceil(b)", [3.0, -2.0, 1.0, 1.0]),
        ("float(a)", [7.0, -7.0, None, 4.0]),
        ("lower(s)", ["x", "yé", None, "z"]),
        ("upper(s)", ["X", "YÉ", None, "Z"]),
        ("length(s)", [1, 2, None, 1]),
        ("a > 3", [True, False, None, True]),
        ("-8 < a <= 4", [False, True, None, True]),
        ('s == "x"', [True, False, None, False]),
        ("a != 7", [False, True, None, True]),
        ("s in ['x', 'z']", [True, False, False, True]),
        ("s not in ['x', 'z']", [False, True, True, False]),
        ("a in [7, None]", [True, False, True, False]),
        ("a is None", [False, False, True, False]),
        ("a is not None", [True, True, False, True]),
        ("flag", [True, False, None, True]),
        ("not flag", [False, True, None, False]),
        ("a > 3 and b > 2", [True, False, False, False]),
        ("a > 3 or b == 1", [True, False, True, True]),
        ("col('odd name') * 2", [2, 4, 6, 8]),
        ("True", [True] * 4),
        ("1", [1] * 4),
    ],
)
def test_what_expressions_mean(text: str, values: list[object]) -> None:
    assert value_of(text) == values


@given(st.integers(-(2**62), 2**62), st.integers(-100, 100).filter(bool))
def test_integer_division_is_exact_and_as_in_python(a: int, b: int) -> None:
    batch = pa.record_batch({"a": [a], "b": [b]})
    quotient, rest = evaluate([parse("a // b"), parse("a % b")], batch)
    assert (quotient[0].as_py(), rest[0].as_py()) == divmod(a, b)


LEAVES = st.one_of(
    st.sampled_from(["a", "b", "col('odd name')", "True", "'it\\'s \"x\"'"]),
    st.integers(-(2**63) + 1, 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"]
    operators = st.sampled_from(binary)
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(LEAVES, operators, LEAVES, operators, LEAVES).map(" ".join),
        inner.map(lambda x: f"not ({x})"),
        inner.map(lambda x: f"-({x})"),
        inner.map(lambda x: f"({x}) is not None"),
        inner.map(lambda x: f"({x}) in [1, -2, None]"),
        inner.map(lambda x: f"round({x}, -1)"),
        inner.map(lambda x: f"abs({x})"),
    )


@given(st.recursive(LEAVES, _nested, max_leaves=8))
def test_texts_read_back(text: str) -> None:
    expr = parse(text)
    again = parse(expr.to_text())
    assert again == expr
    assert again.node is not None
    assert expr.node is not None
    assert again.node.same(expr.node)
    assert str(again.expression) == str(expr.expression)


FIELD = pc.field
ARROW = {
    "price": FIELD("price"),
    "price < 10": FIELD("price") < 10,
    "price < 10.0": FIELD("price") < 10.0,
    "divide(qty, 2)": FIELD("qty") / 2,
    "divide(qty, 2.0)": FIELD("qty") / 2.0,
    "divide(float(qty), n)": FIELD("qty").cast("float64") / FIELD("n"),
    "a * 2 + 1 > b and not s in ['x', 'y'] or q is None": (FIELD("a") * 2 + 1 > FIELD("b"))
    & ~FIELD("s").isin(["x", "y"])
    | FIELD("q").is_null(),
    "(a + b) * -2": (FIELD("a") + FIELD("b")) * -2,
    "-a": pc.negate(FIELD("a")),
    "abs(a)": pc.abs(FIELD("a")),
    "round(a, 2)": pc.round(FIELD("a"), 2),
    "upper(s) == 'it\\'s\\n\"x\"'": pc.utf8_upper(FIELD("s")) == 'it\'s\n"x"',
    "a is not None": FIELD("a").is_valid(),
    "col('odd name') == True": FIELD("odd name") == True,  # noqa: E712  # an Arrow expression
    "(a == 1) == (b == 2)": (FIELD("a") == 1) == (FIELD("b") == 2),
}


@pytest.mark.parametrize("text", ARROW)
def test_arrow_expressions_have_texts(text: str) -> None:
    expr = as_expr(ARROW[text])
    assert expr.to_text() == text
    assert parse(text) == expr
    assert hash(parse(text)) == hash(expr)


@pytest.mark.parametrize(
    "expression",
    [
        FIELD("a").cast("int8"),
        pc.if_else(FIELD("a") > 1, 1, 2),
        FIELD("a") < dt.datetime(2024, 1, 1),
        FIELD(("a", "b")) > 1,
        FIELD("a") > math.inf,
        FIELD("a").is_null(nan_is_null=True),
    ],
)
def test_arrow_expressions_beyond_the_language_still_work(expression: pc.Expression) -> None:
    expr = as_expr(expression)
    assert expr == as_expr(expression)
    assert expr.columns == ("a",)
    assert expr.expression.equals(expression)
    with pytest.raises(QueryError, match="has no text form"):
        expr.to_text()


def test_arrow_functions_that_wrap_around_are_refused() -> None:
    assert as_expr(pc.multiply(FIELD("a"), 2)).text == "a * 2"
    with pytest.raises(QueryError, match="must not wrap around: it calls multiply; use multiply_checked"):
        as_expr(pc.if_else(FIELD("a") > 1, pc.multiply(FIELD("a"), 2), 0))
    assert as_expr(pc.if_else(FIELD("a") > 1, FIELD("a") * 2, 0)).columns == ("a",)


def test_literals_of_different_types_are_different_expressions() -> None:
    assert as_expr(FIELD("a") / 2) != as_expr(FIELD("a") / 2.0)
    one, other = (as_expr(pc.if_else(FIELD("a"), number, 2)) for number in (1, 1.0))
    assert one != other


def test_names_of_columns() -> None:
    assert as_expr("price * 2").column == "price * 2"
    assert parse("price * 2").column is None
    assert as_expr("price") == parse("price") == as_expr(FIELD("price")) == as_expr(parse("price"))
    assert as_expr("class").text == "col('class')"
    assert parse("b + a * b").columns == ("b", "a")


def test_expressions_survive_pickling() -> None:
    for expr in (parse("a // 2 > b"), as_expr(FIELD("a").cast("int8"))):
        again = pickle.loads(pickle.dumps(expr))  # noqa: S301  # our own bytes
        assert again == expr
        assert evaluate([again], BATCH)[0].equals(evaluate([expr], BATCH)[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a text"),
        (3, "must be a text"),
        ("a +", "it ends too early"),
        ("a.b", "position 1: an attribute"),
        ("b + f(a)", "position 5: there is no function f"),
        ("lowr(a)", 'Did you mean "lower"?'),
        ("'é' + a.b", "position 7"),
        ("a if b else c", "a conditional"),
        ("lambda: 1", "a lambda"),
        ("a == None", "is None"),
        ("a is 3", "use == or !="),
        ("a in b", "list of literals"),
        ("a in [b]", "literals"),
        ("a in [1, 'x']", "one type"),
        ("[1]", "not part of the expression language"),
        ("__import__('os').system('x')", "this call"),
        ("a[0]", "a subscript"),
        ("f'{a}'", "an f-string"),
        ("a ** 2", "not part"),
        ("a & b", "not part"),
        ("(a := 1)", "not part"),
        ("1j", "literals"),
        ("b'x'", "literals"),
        ("...", "literals"),
        ("a; b", "cannot read"),
        ("9223372036854775808", "64 bits"),
        ("1e999", "too large"),
        ("round(a, b)", "whole number of digits"),
        ("abs()", "takes 1 argument(s), not 0"),
        ("abs(x=a)", "this call"),
        ("col(a)", "takes the name of a column"),
        ("a" + " // a" * 40, "too large"),
        ("-" * 5000 + "a", "too deeply nested"),
        ("(" * 500 + "a" + ")" * 500, "cannot read"),
        ("a\0", "cannot read"),
    ],
)
def test_what_the_language_refuses(text: object, words: str) -> None:
    with pytest.raises(QueryError) as error:
        parse(text)  # type: ignore[arg-type]
    assert words in str(error.value)


def test_what_is_no_column() -> None:
    for wrong in (3, None, "", ["a"]):
        with pytest.raises(QueryError, match="by must be the name of a column"):
            as_expr(wrong, "by")  # type: ignore[arg-type]


def test_plain_columns_are_not_copied() -> None:
    [array] = evaluate([as_expr("b")], BATCH)
    assert array.buffers()[1].address == BATCH.column("b").buffers()[1].address


def test_many_rows_come_out_in_order_and_whole() -> None:
    n = 300_000
    table = pa.table({"a": pa.chunked_array([range(n), range(n, 2 * n)])})
    plain, computed = evaluate([as_expr("a"), parse("a + 1")], table)
    assert isinstance(computed, pa.Array)
    assert plain.to_numpy().tolist() == list(range(2 * n))
    assert computed.to_numpy().tolist() == list(range(1, 2 * n + 1))


def test_types_without_data() -> None:
    exprs = [parse("a / 2"), parse("a > 1"), as_expr("s"), parse("1")]
    assert types(exprs, BATCH.schema) == [pa.float64(), pa.bool_(), pa.string(), pa.int64()]
    assert evaluate(exprs, BATCH.slice(0, 0))[0].to_pylist() == []


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("text", ["x * 0.5", "x * 0.1", "0.75 - x", "x / 0.5"])
def test_a_number_with_a_point_has_64_bits(kind: pa.DataType, text: str) -> None:
    assert types([parse(text)], pa.schema({"x": kind})) == [pa.float64()]


def test_integers_of_up_to_53_bits_meet_numbers_with_a_point() -> None:
    x = 2**53 - 1
    batch = pa.record_batch({"x": [x]})
    ours = evaluate([parse("x * 0.5"), parse("x > 0.5"), as_expr(pc.field("x") * 0.75)], batch)
    assert [array.to_pylist() for array in ours] == [[x * 0.5], [True], [x * 0.75]]


def test_unknown_and_ambiguous_columns() -> None:
    with pytest.raises(DataError, match=r'there is no column "flug"; .*Did you mean "flag"\?'):
        evaluate([as_expr("flug")], BATCH)
    with pytest.raises(DataError, match=r'there is no column "c" \(in c \+ 1\)'):
        evaluate([parse("c + 1")], BATCH)
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match='more than one column "a"'):
        evaluate([as_expr("a")], twice)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a + s", '(a is int64, s is string): "+" does not take int64 and string; both sides'),
        ("s < 1", '(s is string): "<" does not take string and int8; both sides must be of one kind'),
        ("-s == 'x'", '"-" does not take string; cast the column'),
        ("s in [1, 2]", '"in" does not find int64 among string; both sides must be of one kind'),
        ("a // 0", "divide by zero; leave the tuples out where the divisor is 0"),
        ("a * 9223372036854775807", "overflow; cast the column to float64"),
    ],
)
def test_expressions_that_fail_are_named_with_the_cure(text: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        evaluate([parse("a + 1"), parse(text)], BATCH)
    assert f'cannot compute "{text}"' in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("v >", "it ends too early; write for example"),
        ("v = 1", "invalid syntax at position 3; write for example"),
        ("v ** 2", "the operator ** is not part of the expression language; there are"),
        ("sqrt(v)", "there is no function sqrt; use abs, "),
    ],
)
def test_texts_that_are_no_expression_are_told_with_the_cure(text: str, words: str) -> None:
    with pytest.raises(QueryError, match="cannot read the expression") as error:
        parse(text)
    assert words in str(error.value)


def test_an_expression_in_place_of_a_column_is_told() -> None:
    with pytest.raises(DataError, match=r'no column "a \* 2".*in Python write mt.col\("price"\) \* 2'):
        evaluate([as_expr("a * 2")], BATCH)


def test_expr_shows_its_text() -> None:
    assert repr(Expr("a+1")) == "Expr(text='a + 1')"
    assert str(Expr("a+1")) == "a + 1"
