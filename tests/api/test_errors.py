"""The kinds of error, and the hint."""

from __future__ import annotations

import pytest

from muntin import errors


@pytest.mark.parametrize("name", ["QueryError", "DataError", "SnapshotError", "UserCodeError"])
def test_one_base_catches_all(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.MuntinError)


@pytest.mark.parametrize("kind", [errors.QueryError, errors.DataError])
def test_bad_input_is_a_value_error(kind: type[Exception]) -> None:
    assert issubclass(kind, ValueError)


def test_the_nearest_name() -> None:
    assert errors.nearest("Amuont", ["amount", "shop"]) == ' Did you mean "amount"?'
    assert errors.nearest("x", ["amount", "shop"]) == ""
    assert errors.nearest("x", []) == ""
