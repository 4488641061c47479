"""The lock file fits pyproject.toml and would install the same files everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ["dev", "bench", "sketches", "spark", "demo", "dashboard"]
LOCK = (ROOT / "requirements.lock").read_text()

PIN = re.compile(r"^(?P<name>[a-z0-9.-]+)==(?P<version>[^\s;]+)(?P<rest>.*)$", re.MULTILINE)


def pins() -> dict[str, set[str]]:
    """The versions that the lock names for each package; several where they depend on the Python."""
    found: dict[str, set[str]] = {}
    for pin in PIN.finditer(LOCK):
        found.setdefault(pin["name"], set()).add(pin["version"])
    return found


def test_lock_meets_every_requirement_of_the_project() -> None:
    locked = pins()
    extras = PROJECT["optional-dependencies"]
    required = [*PROJECT["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    for requirement in map(Requirement, required):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement} is not in the lock: run `make lock`"
        assert all(map(requirement.specifier.contains, versions)), f"{requirement}, the lock has {versions}"


def test_lock_has_a_checksum_for_every_package() -> None:
    blocks = re.split(r"^(?=[a-z0-9.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert blocks
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_lock_names_no_place_to_install_from() -> None:
    assert not re.search(r"://|^--|^\s+--(?!hash)", LOCK, re.MULTILINE)
