"""`python -m muntin.shipping`: make the library of compiled kernels, unless it is up to date."""

from __future__ import annotations

import json
import sys
import time

from muntin.shipped_library import FOLDER, MANIFEST
from muntin.shipping.library import build, digest_of_sources, obstacle


def main() -> None:
    """Make the library, or say why there is none."""
    path = FOLDER / MANIFEST
    if path.exists() and json.loads(path.read_text()).get("sources") == digest_of_sources():
        return
    if problem := obstacle():
        sys.stdout.write(f"No library of compiled kernels: {problem}. Numba compiles them at first use.\n")
        return
    started = time.perf_counter()
    kernels = build()["kernels"]
    variants = sum(map(len, kernels.values()))
    seconds = time.perf_counter() - started
    sys.stdout.write(f"{len(kernels)} kernels in {variants} variants; {seconds:.0f} s\n")


if __name__ == "__main__":
    main()
