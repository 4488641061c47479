"""The library of compiled kernels that ships with the package, checked before it is loaded.

`python -m muntin.shipping` makes the library and its manifest, for one version of Python and a baseline of
the CPU. Where there is none for this process, or where `MUNTIN_COMPILE=always` is set, Numba compiles the
kernels when they are first called.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import logging
import os
import platform
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "shipped"
MANIFEST = "manifest.json"
FORMAT = 1
VARIABLE = "MUNTIN_COMPILE"
MODULE = "muntin_kernels"

BASELINES = {
    "x86_64": (
        "x86-64-v3",
        ("avx", "avx2", "bmi1", "bmi2", "cx16", "f16c", "fma", "movbe", "abm", "popcnt", "ssse3", "sse4_1",
         "sse4_2"),
    ),
    "aarch64": ("generic", ("fp", "asimd")),
}  # fmt: skip
"""For each kind of machine: the CPU that kernels are compiled for, and its features in /proc/cpuinfo."""


@cache
def shipped_library() -> ModuleType | None:
    """The library; None where kernels are compiled."""
    if os.environ.get(VARIABLE) == "always" or not (FOLDER / MANIFEST).exists():
        return None
    try:
        return load(FOLDER)
    except (OSError, ValueError, KeyError, ImportError) as error:
        logging.getLogger("muntin").warning(
            "the compiled kernels in %s are not used (%s); Numba compiles them when they are first called",
            FOLDER,
            error,
        )
        return None


def load(folder: Path) -> ModuleType:
    """Load the library of a folder; raises ValueError where it is not for this process, or not intact."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    here = facts()
    for fact, value in here.items():
        if manifest.get(fact) != value:
            raise ValueError(f"made for {fact} {manifest.get(fact)}, and this is {value}")
    missing = sorted(set(manifest["cpu_features"]) - cpu_features())
    if missing:
        raise ValueError(f"made for {manifest['cpu']}, and this CPU lacks {', '.join(missing)}")
    path = folder / manifest["library"]
    if hashlib.sha256(path.read_bytes()).hexdigest() != manifest["sha256"]:
        raise ValueError("its bytes have changed since it was made")
    loader = importlib.machinery.ExtensionFileLoader(MODULE, str(path))
    specification = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
    assert specification is not None
    library = importlib.util.module_from_spec(specification)
    loader.exec_module(library)
    return library


def facts() -> dict[str, Any]:
    """What must be the same where a library is made and where it is loaded."""
    return {"format": FORMAT, "abi": sysconfig.get_config_var("SOABI"), "machine": platform.machine()}


def cpu_features() -> set[str]:
    """The features of this CPU."""
    with open("/proc/cpuinfo") as lines:  # noqa: PTH123  Path reads it all, which takes long with many CPUs
        for line in lines:
            name, _, values = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return set(values.split())
    return set()
