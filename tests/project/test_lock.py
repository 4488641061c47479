"""The lock files fit pyproject.toml and would install the same files everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {"requirements.lock": ["dev", "bench"], "requirements-spark.lock": ["spark"]}

PIN = re.compile(r"^(?P<name>[a-z0-9.-]+)==(?P<version>[^\s;]+)(?P<rest>.*)$", re.MULTILINE)

lock_files = pytest.mark.parametrize("lock", EXTRAS)


def pins(lock: str) -> dict[str, set[str]]:
    """The versions that a lock names for each package; several where they depend on the Python."""
    found: dict[str, set[str]] = {}
    for pin in PIN.finditer((ROOT / lock).read_text()):
        found.setdefault(pin["name"], set()).add(pin["version"])
    return found


@lock_files
def test_lock_meets_every_requirement_of_the_project(lock: str) -> None:
    locked = pins(lock)
    extras = PROJECT["optional-dependencies"]
    required = [*PROJECT["dependencies"], *(line for extra in EXTRAS[lock] for line in extras[extra])]
    for requirement in map(Requirement, required):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement} is not in {lock}: run `make lock`"
        assert all(map(requirement.specifier.contains, versions)), f"{requirement}, {lock} has {versions}"


@lock_files
def test_lock_has_a_checksum_for_every_package(lock: str) -> None:
    text = (ROOT / lock).read_text()
    blocks = re.split(r"^(?=[a-z0-9.-]+==)", text, flags=re.MULTILINE)[1:]
    assert blocks
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


@lock_files
def test_lock_names_no_place_to_install_from(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert not re.search(r"://|^--|^\s+--(?!hash)", text, re.MULTILINE)


def test_the_two_locks_agree() -> None:
    main, spark = pins("requirements.lock"), pins("requirements-spark.lock")
    both = main.keys() & spark.keys()
    assert {name: spark[name] for name in both} == {name: main[name] for name in both}
