"""A process for what may crash, hang or ask for too much memory: all of that is an answer here."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PATIENCE = 30.0
"""Seconds for one snapshot."""
LOADING = 600.0
"""Seconds to compile what the operators need, where that has not been kept."""


class Worker:
    """A process that restores forged snapshots; a new one takes over where it ends."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.process: subprocess.Popen[str] | None = None

    def ask(self, case: str) -> str:
        """What became of the snapshot."""
        if self.process is None:
            command = [sys.executable, str(self.program)]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
            if self._answer(LOADING) != "ready\n":
                self.close()
                raise AssertionError("the snapshots themselves do not work")
        assert self.process.stdin is not None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self._answer(PATIENCE)
        if answer is None or not answer:
            code = self.close()
            return "WRONG: takes too long" if answer is None else f"WRONG: the process ended ({code})"
        return answer.strip()

    def _answer(self, patience: float) -> str | None:
        """A line; nothing where the process has ended, None where it takes too long."""
        assert self.process is not None
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return self.process.stdout.readline() if selector.select(patience) else None

    def close(self) -> int:
        """End the process; how it ended."""
        if self.process is None:
            return 0
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
        return code

    def wrong(self, what: str, seeds: Iterable[int]) -> list[str]:
        """The forged ones of which something became that must not."""
        found = {f"{what} {seed}": self.ask(f"{what} {seed}") for seed in seeds}
        return [f"{case}: {answer}" for case, answer in found.items() if answer.startswith("WRONG")]
