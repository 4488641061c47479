"""The library itself: object code and ways in, linked, with a manifest beside it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from muntin.shipped_library import BASELINES, FOLDER, MANIFEST, MODULE, VARIABLE, facts, load
from muntin.shipping.c_source import c_source, distinct

_OBJECTS, _VARIANTS = "kernels.o", "kernels.json"


def obstacle() -> str:
    """Why no library can be made here; empty if one can."""
    if sys.platform != "linux" or facts()["machine"] not in BASELINES:
        return f"no library is made for {sys.platform} on {facts()['machine']}"
    if compiler() is None:
        return "there is no C compiler (cc); on Debian: apt-get install gcc libc6-dev"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "the headers of Python (Python.h) are missing; on Debian: apt-get install python3-dev"
    return ""


def compiler() -> str | None:
    """The path of the C compiler."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")


def digest_of_sources() -> str:
    """A digest of the kernels, of what they import and of this package."""
    package = FOLDER.parent
    kernels = sorted(package.rglob("*_kernels.py"))
    imported = {
        package.parent / f"{name.replace('.', '/')}.py"
        for kernel in kernels
        for name in re.findall(r"^from (muntin[.\w]*) import", kernel.read_text(), re.MULTILINE)
    }
    others = {package / "warming.py", *imported, *(package / "shipping").glob("*.[cp]*")}
    digest = hashlib.sha256(json.dumps(facts(), sort_keys=True).encode())
    for path in sorted({*kernels, *others}):
        if path.exists():  # not a package
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build(folder: Path = FOLDER) -> dict[str, Any]:
    """Make the library and its manifest in a folder; returns the manifest."""
    with tempfile.TemporaryDirectory() as work:
        compile_kernels(Path(work))
        return link(Path(work), folder)


def compile_kernels(work: Path) -> None:
    """Have Numba compile the kernels for the baseline of the CPU, in a process of its own."""
    environment = {
        **os.environ,
        VARIABLE: "always",
        "NUMBA_CPU_NAME": BASELINES[facts()["machine"]][0],
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(work / "cache"),
        "PYTHONPATH": str(FOLDER.parent.parent),
    }
    _run([sys.executable, "-m", "muntin.shipping.object_kernels", _OBJECTS, _VARIANTS], work, environment)


def link(work: Path, folder: Path) -> dict[str, Any]:
    """Link the object code with the ways in, and write the library and its manifest."""
    variants = json.loads((work / _VARIANTS).read_text())
    (work / "entry.c").write_text(c_source(variants))
    library = f"{MODULE}.{facts()['abi']}.so"
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    options = ["-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-Wl,--gc-sections", "-s", "-o", library]
    _run([str(compiler()), *options, *includes, "entry.c", _OBJECTS, "-lm"], work, dict(os.environ))
    made = (work / library).read_bytes()
    cpu, features = BASELINES[facts()["machine"]]
    manifest = {
        **facts(),
        "cpu": cpu,
        "cpu_features": list(features),
        "numba": importlib.metadata.version("numba"),
        "library": library,
        "sha256": hashlib.sha256(made).hexdigest(),
        "sources": digest_of_sources(),
        "kernels": _listed(variants),
    }
    folder.mkdir(exist_ok=True)
    # A process that reads them meanwhile finds the old pair, or two that do not fit together.
    for name, content in ((library, made), (MANIFEST, json.dumps(manifest, indent=1).encode())):
        (folder / f"{name}.new").write_bytes(content)
        (folder / f"{name}.new").replace(folder / name)
    load(folder)
    return manifest


def _listed(variants: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The variants of each kernel."""
    kernels: dict[str, list[dict[str, Any]]] = {}
    for variant in distinct(variants):
        facts = {name: variant[name] for name in ("signature", "symbol", "arguments", "returns")}
        kernels.setdefault(variant["kernel"], []).append(facts)
    return kernels


def _run(command: list[str], work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} failed:\n{done.stderr[-4000:]}")
