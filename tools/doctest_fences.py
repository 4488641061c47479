"""An extension of griffe for the reference: examples with `>>>` become blocks of code.

Outside of a section "Examples:" Markdown reads the lines of a doctest as nested quotations.
"""

from __future__ import annotations

import textwrap
from typing import Any

import griffe

__all__ = ["DoctestFences", "fenced"]


class DoctestFences(griffe.Extension):
    """Fence the doctests of every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The docstring with fences around its doctests, each from `>>>` to the next empty line."""
    return "\n\n".join(_fence(block) for block in docstring.split("\n\n"))


def _fence(block: str) -> str:
    if not block.lstrip().startswith(">>>"):
        return block
    indent = block[: len(block) - len(block.lstrip())].replace("\n", "")
    return textwrap.indent(f"```pycon\n{textwrap.dedent(block).strip()}\n```", indent)
