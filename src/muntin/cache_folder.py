"""The cache folder of compiled code: one of Numba's own, or a temporary one where those are read-only.

Numba writes to `__pycache__`, or else to the user's cache folder. Where both are read-only, as in some
containers, it refuses to load cached functions. Nothing heavy is imported here: this runs with
`import muntin`, before Numba is loaded.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

_PYCACHE = Path(__file__).parent / "slicing" / "__pycache__"


def ensure_cache_folder() -> None:
    """Set Numba's cache to a temporary folder if its own are read-only; child processes inherit it."""
    if os.environ.get("NUMBA_CACHE_DIR") or _is_writable(_PYCACHE) or _is_writable(_user_cache()):
        return
    folder = str(_temporary())
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = folder


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given or Path("~/.cache").expanduser()) / "numba"


def _is_writable(folder: Path) -> bool:
    """Whether the folder can be written to, or created."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _temporary() -> Path:
    """A folder that later processes of the same user share, and only that user can write to.

    Code is loaded from it, so a folder that another user created is not trusted.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"muntin-compiled-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="muntin-compiled-"))
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if hasattr(os, "getuid") and not (private and status.st_uid == os.getuid()):
        return Path(tempfile.mkdtemp(prefix="muntin-compiled-"))
    return folder
