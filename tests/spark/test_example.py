"""The example on Spark prints the output at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "examples" / "on_spark.py"


def test_the_example_prints_what_stands_at_its_end() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    promised = PROGRAM.read_text().partition("\n# Output:\n")[2].replace("# ", "")
    assert done.stdout == promised
