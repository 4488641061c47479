"""Named lines and tables as plain text, and as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

Pairs = Sequence[tuple[str, str]]


def named_lines(pairs: Pairs) -> str:
    """One line per pair, the texts aligned behind the names; further lines of a text are indented.

    >>> print(named_lines([("keys", "shop"), ("watermark", "none yet")]))
    keys       shop
    watermark  none yet
    """
    width = max(len(name) for name, _ in pairs)
    indent = "\n" + " " * (width + 2)
    return "\n".join(f"{name.ljust(width)}  {indent.join(text.splitlines())}" for name, text in pairs)


def html_of_lines(pairs: Pairs) -> str:
    """The same as a table without headings.

    >>> print(html_of_lines([("filter", "v < 1")])[-63:])
    <td style="text-align: left">v &lt; 1</td></tr></tbody></table>
    """
    return html_table((), (False, False), pairs)


def html_table(headings: Sequence[str], right: Sequence[bool], rows: Iterable[Sequence[str]]) -> str:
    """A table; `right` says which columns are aligned to the right."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row, right))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def html_small(text: str) -> str:
    """A remark below a table."""
    return f"<small>{html.escape(text)}</small>"


def html_folded(title: str, text: str) -> str:
    """Preformatted text that a click on its title shows."""
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def _cell(text: str, right: bool) -> str:
    lines = "<br>".join(html.escape(line) for line in text.splitlines())
    return f'<td style="text-align: {"right" if right else "left"}">{lines}</td>'
