"""Where compiled code is kept: Numba's own places, or a temporary folder where neither can be written.

Numba keeps it beside the code, or else in the user's cache folder. Where both are read-only, as in some
containers, it refuses to load functions that are to be kept. Nothing heavy is imported here: this runs
with `import muntin`, before Numba is asked for anything.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

__all__ = ["ensure_cache_folder"]

_BESIDE = Path(__file__).parent / "slicing" / "__pycache__"


def ensure_cache_folder() -> None:
    """Let Numba keep compiled code in a temporary folder if there is no other place; children inherit it."""
    if os.environ.get("NUMBA_CACHE_DIR") or _is_writable(_BESIDE) or _is_writable(_of_user()):
        return
    folder = str(_temporary())
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # which has read its settings already
        sys.modules["numba"].config.CACHE_DIR = folder


def _of_user() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given or Path("~/.cache").expanduser()) / "numba"


def _is_writable(folder: Path) -> bool:
    """Whether the folder can be written to, or made."""
    there = folder
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _temporary() -> Path:
    """A folder that later processes of the same user find again, and nobody else can write to.

    Code is loaded from it, so one that another user has made is not trusted.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"muntin-compiled-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="muntin-compiled-"))
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if hasattr(os, "getuid") and not (private and found.st_uid == os.getuid()):
        return Path(tempfile.mkdtemp(prefix="muntin-compiled-"))
    return folder
