"""The build hook: makes the library of compiled kernels before a wheel is packed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelLibraryHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling finds it by its base
    """Makes the library where that is possible; the wheel is then for one Python and one kind of machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs the files."""
        if version == "editable":  # in a checkout tools/setup makes the library
            return
        source = Path(self.root) / "src"
        environment = {**os.environ, "PYTHONPATH": str(source)}
        subprocess.run([sys.executable, "-m", "muntin.shipping"], env=environment, check=True)
        if (source / "muntin" / "shipped" / "manifest.json").exists():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
