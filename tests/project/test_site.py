"""The site: doctests become code, every page is in the navigation, and nothing is fetched."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tools.doctest_fences import fenced

ROOT = Path(__file__).parents[2]


def test_doctests_become_blocks_of_code() -> None:
    docstring = (
        "A sum.\n\n>>> 1 + 1\n2\n>>> 2\n2\n\nThe end.\n\nArgs:\n    x: One.\n\n        >>> 3\n        3"
    )
    assert fenced(docstring).split("\n\n") == [
        "A sum.",
        "```pycon\n>>> 1 + 1\n2\n>>> 2\n2\n```",
        "The end.",
        "Args:\n    x: One.",
        "        ```pycon\n        >>> 3\n        3\n        ```",
    ]


def pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in pages(part)]  # type: ignore[attr-defined]


def site() -> dict[str, object]:
    loaded: dict[str, object] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    return loaded


def test_every_page_stands_in_one_of_four_tabs() -> None:
    navigation = site()["nav"]
    assert isinstance(navigation, list)
    assert [name for tab in navigation for name in tab] == ["Start", "Guides", "Reference", "Internals"]
    found = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(pages(navigation)) == found


def test_the_pages_fetch_nothing() -> None:
    # The offline plugin fetches its own shim unless one of this name is given.
    assert site()["extra"] == {"polyfills": ["javascripts/iframe-worker.js"]}
    assert "http" not in (ROOT / "docs" / "javascripts" / "iframe-worker.js").read_text()


def test_no_power_of_a_page_becomes_bold_text() -> None:
    code = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {page.name: re.findall(r"\d\*\*\d.*", code.sub("", page.read_text())) for page in pages}
    assert {name: powers for name, powers in found.items() if powers} == {}
