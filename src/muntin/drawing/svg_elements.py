"""SVG as text: elements with escaped attributes, and the style sheet of the pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

__all__ = ["STYLE", "element", "text", "titled"]

NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that no XML file may have, not even escaped."""

LIGHT = {
    "ink": "#1f2937",
    "quiet": "#6b7280",
    "line": "#d1d5db",
    "slice": "#475569",
    "late": "#c2410c",
    "w0": "#0f766e",
    "w1": "#6d28d9",
    "w2": "#1d4ed8",
    "w3": "#a16207",
}
DARK = {
    "ink": "#e5e7eb",
    "quiet": "#9ca3af",
    "line": "#4b5563",
    "slice": "#94a3b8",
    "late": "#fb923c",
    "w0": "#2dd4bf",
    "w1": "#c4b5fd",
    "w2": "#93c5fd",
    "w3": "#fcd34d",
}


def _colours(palette: dict[str, str]) -> str:
    strokes = [f".{name} {{ stroke: {colour}; fill: {colour} }}" for name, colour in palette.items()]
    return " ".join(strokes)


STYLE = f"""
text {{ font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; stroke: none !important }}
.middle {{ text-anchor: middle }} .right {{ text-anchor: end }}
.strong {{ font-weight: 600 }} .small {{ font-size: 11px }} .struck {{ text-decoration: line-through }}
rect {{ fill-opacity: 0.13; stroke-width: 1.2 }} circle {{ fill-opacity: 0.16; stroke-width: 1.2 }}
.gone {{ fill-opacity: 0; stroke-dasharray: 4 3 }} .edge {{ stroke-dasharray: 2 4 }}
{_colours(LIGHT)}
@media (prefers-color-scheme: dark) {{ {_colours(DARK)} }}
"""
"""Colours follow the reader's light or dark scheme."""


def element(name: str, content: str | Iterable[str] = "", **attributes: object) -> str:
    """An element; an underscore in the name of an attribute is written as a hyphen.

    >>> print(element("text", "9", x=1.5, data_name="a & b"))
    <text x="1.5" data-name="a &amp; b">9</text>
    """
    pairs = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_value(value))}"
        for key, value in attributes.items()
    )
    body = content if isinstance(content, str) else "".join(content)
    return f"<{name}{pairs}>{body}</{name}>" if body else f"<{name}{pairs}/>"


def text(words: str, x: float, y: float, class_: str) -> str:
    r"""A line of text.

    >>> text("a < b, \x07", 1, 2, "ink") == '<text x="1" y="2" class="ink">a &lt; b, \ufffd</text>'
    True
    """
    return element("text", escape(_legal(words)), x=x, y=y, class_=class_)


def titled(words: str) -> str:
    """The title of a picture: what a screen reader says."""
    return element("title", escape(_legal(words)))


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else _legal(str(value))


def _legal(words: str) -> str:
    return NOT_XML.sub("\ufffd", words)
