"""`muntin doctor`: what this machine has for Muntin, what is wrong, and the line that mends it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from muntin.shipped_library import FOLDER, shipped_library

__all__ = ["Finding", "findings"]

_SPARK_NEEDS = ("protobuf", "grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    observed: str
    cure: str = ""
    """The line that mends it; empty where nothing is wrong."""
    optional: bool = False
    """Whether Muntin works without it, embedded."""

    @property
    def state(self) -> str:
        """Whether it is right, wrong, or missing where only some programs need it."""
        if not self.cure:
            return "ok"
        if not self.optional:
            return "wrong"
        return "optional" if self.what == "datasketches" else "for Spark"

    def __str__(self) -> str:
        lines = [f"{self.state:>9}  {self.what}: {self.observed}"]
        return "\n".join([*lines, *([f"{'':>9}  -> {self.cure}"] if self.cure else [])])


def findings() -> Iterator[Finding]:
    """All findings: what every program needs, then what Spark needs."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", python, "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer")
    for package in ("numpy", "pyarrow", "numba"):
        yield _package(package, f"pip install --upgrade {package}")
    yield _compiled()
    yield _package("datasketches", 'pip install "muntin[sketches]"', optional=True)
    yield from _spark()


def _spark() -> Iterator[Finding]:
    spark = _package("pyspark", 'pip install "muntin[spark]"', optional=True)
    if not spark.cure and not spark.observed.startswith("4."):
        spark = Finding("pyspark", spark.observed, 'pip install "muntin[spark]"', optional=True)
    yield spark
    pandas = _package("pandas", 'pip install "pandas>=2.2,<3"', optional=True)
    if not pandas.cure and int(pandas.observed.split(".")[0]) >= 3:
        pandas = Finding(
            "pandas",
            f"{pandas.observed}, with which Spark's streams fail",
            'pip install "pandas>=2.2,<3"',
            True,
        )
    yield pandas
    missing = [name for name in _SPARK_NEEDS if _version(name) is None]
    if missing:
        yield Finding("Spark Connect", f"no {', '.join(missing)}", 'pip install "muntin[spark]"', True)
    yield _java()


def _package(name: str, cure: str, optional: bool = False) -> Finding:
    version = _version(name)
    return Finding(name, version or "not installed", "" if version else cure, optional)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _compiled() -> Finding:
    """The library of kernels that ships; without it where compiled code is kept, and whether there is any."""
    if shipped_library() is not None:
        return Finding("compiled code", f"the library of kernels in {FOLDER}", "")
    folder = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(folder)] if folder else [Path(__file__).parents[1]]
    number = sum(1 for place in places if place.is_dir() for _ in place.rglob("*.nbi"))
    where = f"{number} functions in {places[0]}"
    if not os.access(places[0], os.W_OK):
        return Finding("compiled code", where, f"export NUMBA_CACHE_DIR={Path.home() / '.cache' / 'muntin'}")
    return Finding("compiled code", where, "" if number else "muntin warmup")


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    mend = "sudo apt-get install default-jre-headless"
    if java is None:
        where = f"none in JAVA_HOME, {home}" if home else "none on the PATH"
        return Finding("Java", where, f"unset JAVA_HOME, or {mend}" if home else mend, optional=True)
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)[^"]*"', printed)
    if version is None:
        return Finding("Java", f"{java} does not tell its version", mend, optional=True)
    return Finding("Java", f"{version[1]}, {java}", "" if int(version[1]) >= 17 else mend, optional=True)
